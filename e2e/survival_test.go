package e2e

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// absence is how long a killed part stays away: short, or as long as the promise
// says with BERTH_LONG=1.
func absence(short, long time.Duration) time.Duration {
	if os.Getenv("BERTH_LONG") != "" {
		return long
	}
	return short
}

// kill -9 of the portal, of the agent, of both: the process in the instance goes
// on and is adopted, its shell keeps its variables, and the meter has no gap.
func TestKillNine(t *testing.T) {
	t.Parallel()
	p := apart(t)
	ada := p.signUp("ada@example.org")
	ada.topUp(25_000_000, "4242424242424242")
	in := ada.launch("a100-80gb.1g.10gb")
	began := time.Now()

	ws := ada.dial(in.ID, "terminal")
	command(t, ws, "kept=$((40+2)); echo pid=$$=$kept=", "=42=")
	shell := between(command(t, ws, "echo pid=$$-$((1+1))", "-2"), "pid=", "-2")
	_ = ws.Close()
	same := func(after string) {
		t.Helper()
		ada.await(in.ID, "running")
		until(t, "the node to be back after "+after, func() bool {
			ws, res, err := ada.tryDial(in.ID, "terminal")
			if err != nil {
				if res != nil {
					_ = res.Body.Close()
				}
				return false
			}
			defer ws.Close()
			shown := command(t, ws, "echo pid=$$-$kept", "-42")
			if got := between(shown, "pid=", "-42"); got != shell && !strings.Contains(shown, "pid="+shell+"-42") {
				t.Errorf("after %s the shell is process %q, not %q", after, got, shell)
			}
			return true
		})
		until(t, "the meter to catch up after "+after, func() bool {
			gap := time.Since(began).Seconds() - float64(ada.get(in.ID).Seconds)
			return gap < 4 && gap > -1
		})
	}

	address := strings.TrimPrefix(p.base, "http://")
	p.up.kill()
	<-time.After(absence(6*time.Second, time.Minute))
	p.serve(address)
	same("the portal's absence")

	p.agent.kill()
	<-time.After(absence(7*time.Second, 7*time.Second))
	p.restartAgent()
	same("the agent's absence")

	p.up.kill()
	p.agent.kill()
	<-time.After(absence(3*time.Second, 30*time.Second))
	p.serve(address)
	p.restartAgent()
	same("the absence of both")

	ada.must(http.StatusAccepted, http.MethodPost, "/api/v1/instances/"+in.ID+"/stop", nil, nil)
	ended := time.Since(began).Seconds()
	stopped := ada.await(in.ID, "stopped")
	if gap := ended - float64(stopped.Seconds); gap > 2 || gap < -1 {
		t.Errorf("charged %d s of %.1f s", stopped.Seconds, ended)
	}
	t.Logf("charged %d s of %.1f s by the wall clock, through three kills", stopped.Seconds, ended)
	if want := stopped.PricePerHour.Micros * stopped.Seconds / 3600; stopped.Charged.Micros != want {
		t.Errorf("charged %d, want %d", stopped.Charged.Micros, want)
	}
	var spans struct{ Items []struct{ ID string } }
	ada.must(http.StatusOK, http.MethodGet, "/api/v1/usage?instance="+in.ID, nil, &spans)
	if len(spans.Items) != 1 {
		t.Errorf("%d usage spans for one run", len(spans.Items))
	}
	p.cardsFree()
}

// between returns what stands between two marks, the last time they occur.
func between(s, from, to string) string {
	i := strings.LastIndex(s, to)
	if i < 0 {
		return ""
	}
	_, after, _ := strings.Cut(s[max(0, strings.LastIndex(s[:i], from)):i], from)
	return after
}

// cardsFree waits until no card holds a slice, by leases and by offers alike.
func (b *berth) cardsFree() {
	b.t.Helper()
	until(b.t, "all cards to be free", func() bool {
		var devices struct {
			Items []struct{ Slices []struct{ Instance string } }
		}
		b.operator().must(http.StatusOK, http.MethodGet, "/api/v1/devices", nil, &devices)
		for _, d := range devices.Items {
			if len(d.Slices) > 0 {
				return false
			}
		}
		return true
	})
}

// Launches, stops and terminations with kills at random in between: in the end no
// card is busy, the wallet is what was paid less what was charged, and each
// charge is its floor.
func TestKillNineAtAnyMoment(t *testing.T) {
	t.Parallel()
	p := apart(t)
	ada := p.signUp("ada@example.org")
	ada.topUp(25_000_000, "4242424242424242")
	address := strings.TrimPrefix(p.base, "http://")
	var ids []string
	for round := range 8 {
		p.untilOnline()
		var in instance
		until(t, fmt.Sprintf("launch %d", round), func() bool { // the node may be seen to be gone only now
			status, text := ada.call(http.MethodPost, "/api/v1/instances", map[string]any{"sku": "a100-80gb.1g.10gb", "name": fmt.Sprintf("kill-%d", round)}, &in,
				"Idempotency-Key", fmt.Sprintf("k%d", round))
			if status != http.StatusCreated && status != http.StatusConflict {
				t.Fatalf("launch %d: %d %s", round, status, text)
			}
			return status == http.StatusCreated
		})
		ids = append(ids, in.ID)
		<-time.After(time.Duration(round*137%700) * time.Millisecond) // anywhere between placing and running
		if round%3 != 2 {
			p.up.kill()
		}
		if round%2 == 0 {
			p.agent.kill()
			p.restartAgent()
		}
		if round%3 != 2 {
			p.serve(address)
		}
		switch round % 3 {
		case 0:
			ada.must(http.StatusAccepted, http.MethodPost, "/api/v1/instances/"+in.ID+"/terminate", nil, nil)
		case 1:
			ada.await(in.ID, "running")
		}
	}
	for _, id := range ids {
		if in := ada.get(id); in.State != "terminated" {
			ada.call(http.MethodPost, "/api/v1/instances/"+id+"/terminate", nil, nil)
		}
	}
	var charged int64
	for _, id := range ids {
		in := ada.await(id, "terminated")
		if want := in.PricePerHour.Micros * in.Seconds / 3600; in.Charged.Micros != want {
			t.Errorf("%s charged %d for %d s, want %d", in.Name, in.Charged.Micros, in.Seconds, want)
		}
		charged += in.Charged.Micros
	}
	p.cardsFree()
	var w walletAnswer
	until(t, "the wallet to settle", func() bool {
		ada.must(http.StatusOK, http.MethodGet, "/api/v1/wallet", nil, &w)
		return w.Held.Micros == 0 && w.Accrued.Micros == 0
	})
	if w.Balance.Micros != 25_000_000-charged {
		t.Errorf("balance %d, paid 25,000,000, charged %d", w.Balance.Micros, charged)
	}
	until(t, "no shim to be left", func() bool { return len(shims(t, p.dir)) == 0 })
}

// shims lists the processes above instances of a data directory.
func shims(t testing.TB, dir string) (pids []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err == nil && strings.Contains(string(line), dir) && strings.Contains(string(line), "shim") {
			pids = append(pids, e.Name())
		}
	}
	return pids
}
