package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A wallet worth 60 s stops its instance at the sixtieth second: with the portal
// there, and with the portal dead from the moment it runs.
func TestWalletWorthAMinute(t *testing.T) {
	for name, dead := range map[string]bool{"portal alive": false, "portal dead": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := apart(t)
			p.operator().must(http.StatusCreated, http.MethodPost, "/api/v1/prices",
				map[string]any{"sku": "a100-80gb.1g.10gb", "price_per_hour": amount{Micros: 300_000_000, Currency: "USD"}}, nil)
			ada := p.signUp("ada@example.org")
			ada.topUp(5_000_000, "4242424242424242") // 60 s at 300.00 per hour
			in := ada.launch("a100-80gb.1g.10gb")
			began := time.Now()
			if dead {
				p.up.kill()
			} else {
				var w struct {
					RunsOutAt time.Time `json:"runs_out_at"`
				}
				ada.must(http.StatusOK, http.MethodGet, "/api/v1/wallet", nil, &w)
				if off := time.Until(w.RunsOutAt) - time.Minute + time.Since(began); off > 2*time.Second || off < -2*time.Second {
					t.Errorf("the wallet runs out at %s, a minute from %s", w.RunsOutAt, began.UTC())
				}
			}
			deadline := began.Add(2 * time.Minute)
			for len(shims(t, p.dir)) > 0 && time.Now().Before(deadline) {
				<-time.After(50 * time.Millisecond)
			}
			lived := time.Since(began)
			if lived < 58*time.Second || lived > 66*time.Second {
				t.Errorf("it lived %s, not a minute", lived)
			}
			if dead {
				p.serve(strings.TrimPrefix(p.base, "http://"))
			}
			in = ada.await(in.ID, "stopped")
			if in.Seconds != 60 || in.Charged.Micros != 5_000_000 || in.Reason != "paid_until" {
				t.Errorf("%d s for %d micro-units, reason %q", in.Seconds, in.Charged.Micros, in.Reason)
			}
			var w walletAnswer
			ada.must(http.StatusOK, http.MethodGet, "/api/v1/wallet", nil, &w)
			if w.Available.Micros != 0 || w.Balance.Micros != 0 {
				t.Errorf("wallet %+v", w)
			}
			t.Logf("lived %.1f s by the wall clock, charged %d s", lived.Seconds(), in.Seconds)
			if status, text := ada.call(http.MethodPost, "/api/v1/instances/"+in.ID+"/start", nil, nil); status != http.StatusPaymentRequired {
				t.Errorf("started without money: %d %s", status, text)
			}
		})
	}
}

// A hundred launches at the same moment against one wallet and against one last
// slice: exactly what fits succeeds, the others are told why, nothing leaks.
func TestHundredLaunchesAtOnce(t *testing.T) {
	t.Parallel()
	b := up(t, "--simulate", "a100-80gb:2")
	b.operator().must(http.StatusCreated, http.MethodPost, "/api/v1/prices",
		map[string]any{"sku": "a100-80gb.1g.10gb", "price_per_hour": amount{Micros: 60_000_000, Currency: "USD"}}, nil)

	ada := b.signUp("ada@example.org")
	ada.topUp(5_000_000, "4242424242424242") // five holds of a minute at 60.00 per hour
	ids, refused := ada.storm("a100-80gb.1g.10gb")
	if len(ids) != 5 || refused["insufficient_funds"] != 95 {
		t.Errorf("one wallet worth five: %d launched, refused %v", len(ids), refused)
	}
	ada.endAll(ids)
	b.cardsFree()
	var w walletAnswer
	until(t, "holds to be gone", func() bool {
		ada.must(http.StatusOK, http.MethodGet, "/api/v1/wallet", nil, &w)
		return w.Held.Micros == 0 && w.Accrued.Micros == 0
	})
	if w.Available.Micros < 0 {
		t.Errorf("available %d", w.Available.Micros)
	}

	bob := b.signUp("bob@example.org")
	bob.topUp(500_000_000, "4242424242424242")
	bob.launch("a100-80gb")         // one card whole
	bob.launch("a100-80gb.4g.40gb") // and of the other all but 3g at 4
	ids, refused = bob.storm("a100-80gb.3g.40gb")
	if len(ids) != 1 || refused["no_capacity"] != 99 {
		t.Errorf("one last slice: %d launched, refused %v", len(ids), refused)
	}
	bob.await(ids[0], "running")
}

// storm launches sku a hundred times at once and counts what became of it.
func (c *caller) storm(sku string) (ids []string, refused map[string]int) {
	type outcome struct{ id, code string }
	results := make(chan outcome)
	for i := range 100 {
		go func() {
			var in instance
			status, text := c.call(http.MethodPost, "/api/v1/instances", map[string]any{"sku": sku, "name": fmt.Sprintf("storm-%d", i)}, &in)
			_, code, _ := strings.Cut(text, `"code":"`)
			code, _, _ = strings.Cut(code, `"`)
			if status != http.StatusCreated && code == "" {
				code = fmt.Sprint(status)
			}
			results <- outcome{in.ID, code}
		}()
	}
	refused = map[string]int{}
	for range 100 {
		if r := <-results; r.id != "" {
			ids = append(ids, r.id)
		} else {
			refused[r.code]++
		}
	}
	return ids, refused
}

// endAll terminates instances and waits until they are gone.
func (c *caller) endAll(ids []string) {
	for _, id := range ids {
		c.must(http.StatusAccepted, http.MethodPost, "/api/v1/instances/"+id+"/terminate", nil, nil)
	}
	for _, id := range ids {
		c.await(id, "terminated")
	}
}
