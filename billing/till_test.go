package billing_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"berth/billing"
	"berth/billing/stripe"
	"berth/billing/stripedouble"
	"berth/models"
	"berth/models/store"
	"berth/money"
)

const (
	tillKey    = "sk_test_double_0123456789"
	tillSecret = "whsec_double"
)

// till is a bench whose provider is the double, with the webhook endpoint that a
// portal has.
type till struct {
	*bench
	double  *stripedouble.Server
	address string
	browser *http.Client
}

func newTill(t *testing.T, st *store.Store) *till {
	t.Helper()
	x := &till{bench: &bench{t: t, st: st}, browser: &http.Client{Timeout: 20 * time.Second,
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	hooks := httptest.NewServer(http.HandlerFunc(x.webhook))
	t.Cleanup(hooks.Close)
	pages := httptest.NewUnstartedServer(nil)
	x.address = "http://" + pages.Listener.Addr().String()
	var err error
	x.double, err = stripedouble.New(stripedouble.Config{Dir: t.TempDir(), SecretKey: tillKey, WebhookSecret: tillSecret,
		WebhookURL: hooks.URL, PublicURL: x.address, SettleAfter: -1, RetryMin: 10 * time.Millisecond, RetryMax: 40 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	pages.Config.Handler = x.double
	pages.Start()
	t.Cleanup(func() {
		pages.Close()
		if err := x.double.Close(); err != nil {
			t.Error(err)
		}
	})
	x.restart()
	t.Cleanup(x.verify)
	return x
}

// restart is a new portal process on the same database.
func (x *till) restart() {
	x.t.Helper()
	gw, err := stripe.New(stripe.Config{Key: tillKey, WebhookSecrets: []string{tillSecret}, BaseURL: x.address}, quiet)
	if err != nil {
		x.t.Fatal(err)
	}
	x.Service = billing.New(x.st, gw, billing.Config{TestPayments: true}, quiet)
}

func (x *till) webhook(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<10))
	if err == nil {
		err = x.ReceiveWebhook(r.Context(), body, r.Header.Get("Stripe-Signature"), models.At(time.Now()))
	}
	switch {
	case models.HasCode(err, models.Invalid):
		w.WriteHeader(http.StatusBadRequest)
	case err != nil:
		w.WriteHeader(http.StatusInternalServerError)
	}
}

func rightNow() models.Instant { return models.At(time.Now()) }

// deliver brings all webhooks in and processes them, also those that were early.
func (x *till) deliver() {
	x.t.Helper()
	for round := 0; ; round++ { // faults can spoil a whole flush
		out, err := x.double.Flush(context.Background())
		if err == nil && out.Pending == 0 {
			break
		}
		if err != nil || round == 20 {
			x.t.Fatalf("flush: %+v, %v", out, err)
		}
	}
	for hour := range 3 { // those postponed are due by then
		if _, err := x.ProcessWebhooks(context.Background(), rightNow().Add(time.Duration(hour)*2*time.Hour)); err != nil {
			x.t.Fatal(err)
		}
	}
}

func (x *till) topup(account models.AccountID, amount money.Amount) models.Topup {
	x.t.Helper()
	top, err := x.start(account, amount, "")
	if err != nil {
		x.t.Fatal(err)
	}
	return top
}

func (x *till) start(account models.AccountID, amount money.Amount, key string) (models.Topup, error) {
	user := models.UserID(strings.Replace(string(account), "acc", "usr", 1))
	return x.StartTopup(context.Background(), account, user, amount, key, "http://127.0.0.1:9/wallet", rightNow())
}

// post sends a form to the payment page and returns the answer's status.
func (x *till) post(top models.Topup, field, value string) (status int, location string) {
	x.t.Helper()
	res, err := x.browser.PostForm(top.CheckoutURL, url.Values{field: {value}})
	if err != nil {
		x.t.Fatal(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode, res.Header.Get("Location")
}

// card pays a top-up with a card that needs nothing more.
func (x *till) card(top models.Topup, number string) {
	x.t.Helper()
	if status, _ := x.post(top, "card", number); status != http.StatusSeeOther {
		x.t.Fatalf("paying answered %d", status)
	}
}

// control is the double's dashboard.
func (x *till) control(path string, in any) (out map[string]any) {
	x.t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		x.t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, x.address+"/_double/"+path, strings.NewReader(string(body)))
	if err != nil {
		x.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+tillKey)
	res, err := x.browser.Do(req)
	if err != nil {
		x.t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err = errors.Join(err, json.Unmarshal(answer, &out)); err != nil || res.StatusCode != http.StatusOK {
		x.t.Fatalf("%s: %d %s (%v)", path, res.StatusCode, answer, err)
	}
	return out
}

func (x *till) state(top models.Topup) models.Topup {
	x.t.Helper()
	top, err := x.Topup(context.Background(), top.AccountID, top.ID)
	if err != nil {
		x.t.Fatal(err)
	}
	return top
}

func (x *till) balance(account models.AccountID) money.Amount {
	x.t.Helper()
	return x.wallet(account, rightNow()).Balance
}

// signed is a webhook made by hand: what the double would not send.
func (x *till) signed(id, kind string, object map[string]any) (body []byte, header string) {
	x.t.Helper()
	body, err := json.Marshal(map[string]any{"id": id, "object": "event", "api_version": stripe.APIVersion, "created": time.Now().Unix(),
		"livemode": false, "type": kind, "data": map[string]any{"object": object}})
	if err != nil {
		x.t.Fatal(err)
	}
	at := time.Now().Unix()
	mac := hmac.New(sha256.New, []byte(tillSecret))
	fmt.Fprintf(mac, "%d.%s", at, body)
	return body, fmt.Sprintf("t=%d,v1=%s", at, hex.EncodeToString(mac.Sum(nil)))
}

func (x *till) forge(id, kind string, object map[string]any) {
	x.t.Helper()
	body, header := x.signed(id, kind, object)
	if err := x.ReceiveWebhook(context.Background(), body, header, rightNow()); err != nil {
		x.t.Errorf("webhook %s: %v", id, err)
	}
}

func session(top models.Topup, intent string, minor int64, currency, payment string) map[string]any {
	return map[string]any{"id": top.SessionID, "object": "checkout.session", "status": "complete", "payment_status": payment,
		"amount_total": minor, "currency": currency, "payment_intent": intent, "metadata": map[string]any{"topup_id": string(top.ID)}}
}

func payment(top models.Topup, intent string, minor int64, currency string) map[string]any {
	return map[string]any{"id": intent, "object": "payment_intent", "status": "succeeded", "amount": minor, "amount_received": minor,
		"currency": currency, "metadata": map[string]any{"topup_id": string(top.ID)}}
}
