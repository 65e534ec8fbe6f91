package server

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"berth/models"
)

// signature signs a body as Stripe does, at a time, with each of the secrets.
func signature(body string, at time.Time, secrets ...string) string {
	out := fmt.Sprintf("t=%d", at.Unix())
	for _, s := range secrets {
		mac := hmac.New(sha256.New, []byte(s))
		fmt.Fprintf(mac, "%d.%s", at.Unix(), body)
		out += ",v1=" + hex.EncodeToString(mac.Sum(nil))
	}
	return out
}

// D14: an old, altered, unsigned or foreign webhook is refused; 64 kB is the most.
func TestWebhooksAreBelievedOnlyWhenSignedNow(t *testing.T) {
	w := newWorld(t)
	event := func(id string) string {
		return fmt.Sprintf(`{"id":%q,"object":"event","api_version":"2023-10-16","created":%d,"livemode":false,"type":"customer.created","data":{"object":{"id":"cus_1","object":"customer"}}}`, id, time.Now().Unix())
	}
	now := time.Now()
	for name, tc := range map[string]struct {
		body, signature string
		status          int
	}{
		"right":          {event("evt_1"), signature(event("evt_1"), now, webhookSecret), http.StatusNoContent},
		"again":          {event("evt_1"), signature(event("evt_1"), now, webhookSecret), http.StatusNoContent},
		"secret rotated": {event("evt_2"), signature(event("evt_2"), now, "whsec_another_secret", webhookSecret), http.StatusNoContent},
		"too old":        {event("evt_3"), signature(event("evt_3"), now.Add(-301*time.Second), webhookSecret), http.StatusBadRequest},
		"too new":        {event("evt_4"), signature(event("evt_4"), now.Add(302*time.Second), webhookSecret), http.StatusBadRequest},
		"a space more":   {event("evt_5") + " ", signature(event("evt_5"), now, webhookSecret), http.StatusBadRequest},
		"another secret": {event("evt_6"), signature(event("evt_6"), now, "whsec_another_secret"), http.StatusBadRequest},
		"unsigned":       {event("evt_7"), "", http.StatusBadRequest},
		"nonsense":       {"{", signature("{", now, webhookSecret), http.StatusBadRequest},
		"too large":      {strings.Repeat("a", webhookMax+1), "t=1,v1=00", http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			b := w.browser()
			b.head = http.Header{"Origin": {"https://stripe.example"}, "Sec-Fetch-Site": {"cross-site"}, "Stripe-Signature": {tc.signature}, "Content-Type": {"application/json"}}
			b.do(http.MethodPost, webhookPath, strings.NewReader(tc.body), nil).wants(t, tc.status)
		})
	}
}

func TestTopUpByTheFormUntilTheBalanceShows(t *testing.T) {
	w := newWorld(t)
	b := w.signUp("ada@example.org")
	b.get("/wallet?amount=25.00").wants(t, http.StatusOK, `value="25.00"`, "From $5.00 to $5,000.00.")
	for typed, says := range map[string]string{"": "Write an amount", "abc": "Write an amount", "-5": "Write an amount", "10.005": "Write an amount", "1e3": "Write an amount",
		"99999999999999999999": "Write an amount", "4.99": "The least is $5.00.", "5000.01": "The most at once is $5,000.00."} {
		res := b.post("/wallet/topups", "amount", typed, "idempotency_key", "k"+typed).wants(t, http.StatusUnprocessableEntity, says)
		if !strings.Contains(res.body, `value="`+typed+`"`) {
			t.Errorf("what was typed (%q) is gone", typed)
		}
	}
	s := b.live()
	first := b.post("/wallet/topups", "amount", "25.00", "idempotency_key", "key-1").wants(t, http.StatusSeeOther)
	checkout := first.Header.Get("Location")
	if !strings.HasPrefix(checkout, w.server.cfg.CheckoutOrigin) {
		t.Fatalf("the form leads to %s", checkout)
	}
	b.post("/wallet/topups", "amount", "25.00", "idempotency_key", "key-1").leadsTo(t, checkout)
	b.post("/wallet/topups", "amount", "50.00", "idempotency_key", "key-1").wants(t, http.StatusConflict, "came with another amount")
	_, a := w.who("ada@example.org")
	topups, _, err := w.billing.Topups(context.Background(), a.ID, "", 10)
	w.must(err)
	if len(topups) != 1 {
		t.Fatalf("top-ups: %v", topups)
	}

	paid := b.post(checkout, "card", "4242424242424242").wants(t, http.StatusSeeOther)
	u, err := url.Parse(paid.Header.Get("Location"))
	w.must(err)
	if u.Path != "/wallet" || u.Query().Get("topup") != string(topups[0].ID) {
		t.Fatalf("back at %s", u)
	}
	b.get(u.RequestURI()).wants(t, http.StatusOK, "$25", "Paid", "+25.00")
	s.waitFor("data: wallet")
	w.within("the webhook to be worked off", func() bool {
		wallet, err := w.billing.Wallet(context.Background(), a.ID, models.At(time.Now()))
		return err == nil && wallet.Balance == 25_000_000
	})
	// Another tenant does not see it, whatever address they type.
	eve := w.signUp("eve@example.org")
	if res := eve.get(u.RequestURI()).wants(t, http.StatusOK); strings.Contains(res.body, "Paid") {
		t.Error("another's top-up is shown")
	}
}
