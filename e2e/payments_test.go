package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"testing"
)

// double calls the control API of the local Stripe double.
func (b *berth) double(method, path string, body, into any) {
	b.t.Helper()
	raw, err := os.ReadFile(filepath.Join(b.dir, "secrets.json"))
	if err != nil {
		b.t.Fatal(err)
	}
	var s struct {
		Key     string `json:"double_key"`
		Address string `json:"double_address"`
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		b.t.Fatal(err)
	}
	c := &caller{t: b.t, base: "http://" + s.Address, token: s.Key, http: &http.Client{Timeout: patience}}
	c.must(http.StatusOK, method, "/_double"+path, body, into)
}

// session is the checkout session of a top-up's payment page.
func (t topup) session() string {
	u, err := url.Parse(t.CheckoutURL)
	if err != nil {
		return ""
	}
	return path.Base(u.Path)
}

func (c *caller) topupState(id, state string) {
	c.t.Helper()
	until(c.t, "top-up to be "+state, func() bool {
		var now topup
		c.must(http.StatusOK, http.MethodGet, "/api/v1/wallet/topups/"+id, nil, &now)
		return now.State == state
	})
}

func (c *caller) balance() int64 {
	c.t.Helper()
	var w walletAnswer
	c.must(http.StatusOK, http.MethodGet, "/api/v1/wallet", nil, &w)
	return w.Balance.Micros
}

// Declined, authenticated, abandoned and late: what reaches the wallet is what
// was paid, once (A5, A7).
func TestTopUpsThatGoOtherwise(t *testing.T) {
	t.Parallel()
	b := up(t)
	ada := b.signUp("ada@example.org")

	declined := ada.startTopUp(10_000_000)
	if status := ada.pay(declined, "4000000000000002"); status != http.StatusPaymentRequired {
		t.Errorf("a declined card: %d", status)
	}
	b.double(http.MethodPost, "/flush", nil, nil)
	if got := ada.balance(); got != 0 {
		t.Errorf("balance %d after a decline", got)
	}
	if status := ada.pay(declined, "4242424242424242"); status != http.StatusSeeOther { // the page is still good
		t.Errorf("another card on the same page: %d", status)
	}
	ada.topupState(declined.ID, "paid")

	asked := ada.startTopUp(10_000_000)
	if status := ada.pay(asked, "4000002500003155"); status != http.StatusSeeOther {
		t.Errorf("a card that asks: %d", status)
	}
	if got := ada.balance(); got != 10_000_000 {
		t.Errorf("balance %d before authentication", got)
	}
	client := &http.Client{Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.PostForm(asked.CheckoutURL, url.Values{"authenticate": {"complete"}})
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	ada.topupState(asked.ID, "paid")

	abandoned := ada.startTopUp(10_000_000)
	var closed topup
	ada.must(http.StatusOK, http.MethodPost, "/api/v1/wallet/topups/"+abandoned.ID+"/cancel", nil, &closed)
	if closed.State != "expired" {
		t.Errorf("a closed page: %s", closed.State)
	}
	if status := ada.pay(abandoned, "4242424242424242"); status != http.StatusGone {
		t.Errorf("paying a closed page: %d", status)
	}

	late := ada.startTopUp(10_000_000)
	ada.pay(late, "delayed_success")
	ada.topupState(late.ID, "processing")
	if got := ada.balance(); got != 20_000_000 {
		t.Errorf("balance %d: completed is not paid", got)
	}
	b.double(http.MethodPost, "/settle/"+late.session(), nil, nil)
	ada.topupState(late.ID, "paid")

	failed := ada.startTopUp(10_000_000)
	ada.pay(failed, "delayed_failure")
	ada.topupState(failed.ID, "processing")
	b.double(http.MethodPost, "/settle/"+failed.session(), nil, nil)
	ada.topupState(failed.ID, "failed")
	if got := ada.balance(); got != 30_000_000 {
		t.Errorf("balance %d, paid 30,000,000", got)
	}
}

// With every fault of the delivery on, and the API failing under way, the ledger
// ends as without any.
func TestTopUpsUnderFaults(t *testing.T) {
	t.Parallel()
	ledger := func(faults map[string]any) (rows []int64) {
		b := up(t)
		ada := b.signUp("ada@example.org")
		b.double(http.MethodPut, "/faults", faults, nil)
		for _, micros := range []int64{10_000_000, 20_000_000, 30_000_000} {
			ada.pay(ada.startTopUp(micros), "4242424242424242")
		}
		until(t, "all payments to arrive", func() bool {
			b.double(http.MethodPost, "/flush", nil, nil)
			return ada.balance() == 60_000_000
		})
		b.double(http.MethodPost, "/flush", nil, nil)
		var list struct {
			Items []struct{ Amount amount }
		}
		ada.must(http.StatusOK, http.MethodGet, "/api/v1/ledger", nil, &list)
		sum := int64(0)
		for _, row := range list.Items {
			rows = append(rows, row.Amount.Micros)
			sum += row.Amount.Micros
		}
		if sum != 60_000_000 || len(rows) != 3 {
			t.Errorf("%v: ledger %v", faults, rows)
		}
		return rows
	}
	ledger(map[string]any{})
	ledger(map[string]any{"duplicate": 3, "reorder": true, "delay_ms": 50, "drop_every": 3, "wrong_signature_every": 4, "stale_timestamp_every": 5,
		"http_503_next": 2, "timeout_after_commit_next": 1})
}
