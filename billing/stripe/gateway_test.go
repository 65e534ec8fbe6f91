package stripe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v76/webhook"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func TestConfigIsRefused(t *testing.T) {
	secret := []string{"whsec_x"}
	for name, tc := range map[string]struct {
		cfg  Config
		want string // part of the refusal; empty: taken
	}{
		"test key":                     {Config{Key: "sk_test_1", WebhookSecrets: secret}, ""},
		"live key":                     {Config{Key: "sk_live_1", WebhookSecrets: secret}, ""},
		"restricted key":               {Config{Key: "rk_live_1", WebhookSecrets: secret}, ""},
		"two secrets":                  {Config{Key: "sk_test_1", WebhookSecrets: []string{"whsec_a", "whsec_b"}}, ""},
		"double":                       {Config{Key: "sk_test_1", WebhookSecrets: secret, BaseURL: "http://127.0.0.1:8420"}, ""},
		"double, IPv6":                 {Config{Key: "sk_test_1", WebhookSecrets: secret, BaseURL: "http://[::1]:8420"}, ""},
		"double, https":                {Config{Key: "sk_test_1", WebhookSecrets: secret, BaseURL: "https://stripe.test.example"}, ""},
		"no secret":                    {Config{Key: "sk_test_1"}, "no Stripe webhook secret"},
		"empty secret":                 {Config{Key: "sk_test_1", WebhookSecrets: []string{""}}, "webhook secret is empty"},
		"one of two empty":             {Config{Key: "sk_test_1", WebhookSecrets: []string{"whsec_a", " "}}, "webhook secret is empty"},
		"no key":                       {Config{WebhookSecrets: secret}, "neither sk_test"},
		"publishable key":              {Config{Key: "pk_test_1", WebhookSecrets: secret}, "neither sk_test"},
		"live key to the double":       {Config{Key: "sk_live_1", WebhookSecrets: secret, BaseURL: "http://127.0.0.1:8420"}, "live Stripe key"},
		"restricted live to an https":  {Config{Key: "rk_live_1", WebhookSecrets: secret, BaseURL: "https://stripe.test.example"}, "live Stripe key"},
		"plain http beyond":            {Config{Key: "sk_test_1", WebhookSecrets: secret, BaseURL: "http://10.0.0.1"}, "plain http"},
		"plain http to a clever name":  {Config{Key: "sk_test_1", WebhookSecrets: secret, BaseURL: "http://127.0.0.1.example.org"}, "plain http"},
		"not an address":               {Config{Key: "sk_test_1", WebhookSecrets: secret, BaseURL: "localhost:8420"}, "not an http address"},
		"an address of something else": {Config{Key: "sk_test_1", WebhookSecrets: secret, BaseURL: "ftp://127.0.0.1"}, "not an http address"},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := New(tc.cfg, quiet)
			switch {
			case tc.want == "" && (err != nil || g == nil):
				t.Errorf("refused: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "sk_live_1") {
				t.Error("the refusal shows the key")
			}
		})
	}
}

const now = 1_790_000_000

func payload(version string, live bool) []byte {
	return fmt.Appendf(nil, `{"id":"evt_1","object":"event","api_version":%q,"created":%d,"livemode":%t,"type":"payment_intent.succeeded",
		"data":{"object":{"id":"pi_1","object":"payment_intent","amount_received":5000,"currency":"usd","status":"succeeded","metadata":{"topup_id":"top_1"}}}}`,
		version, now-3, live)
}

func sign(body []byte, at int64, secret string) string {
	mac := webhook.ComputeSignature(time.Unix(at, 0), body, secret)
	return fmt.Sprintf("t=%d,v1=%x", at, mac)
}

func TestVerifyWebhook(t *testing.T) {
	body := payload(APIVersion, false)
	good := sign(body, now, "whsec_new")
	for name, tc := range map[string]struct {
		body   []byte
		header string
		ok     bool
	}{
		"good":                       {body, good, true},
		"by the old secret":          {body, sign(body, now, "whsec_old"), true},
		"299 s old":                  {body, sign(body, now-299, "whsec_new"), true},
		"299 s ahead":                {body, sign(body, now+299, "whsec_new"), true},
		"second of two values right": {body, strings.Replace(good, "v1=", "v1=00,v1=", 1), true},
		"301 s old":                  {body, sign(body, now-301, "whsec_new"), false},
		"301 s ahead":                {body, sign(body, now+301, "whsec_new"), false},
		"an hour ahead":              {body, sign(body, now+3600, "whsec_new"), false},
		"a byte more":                {append([]byte{' '}, body...), good, false},
		"another secret":             {body, sign(body, now, "whsec_wrong"), false},
		"an empty secret":            {body, sign(body, now, ""), false},
		"only v0":                    {body, strings.Replace(good, "v1=", "v0=", 1), false},
		"no header":                  {body, "", false},
		"no timestamp":               {body, good[strings.Index(good, "v1="):], false},
		"timestamp of letters":       {body, "t=now," + good[strings.Index(good, "v1="):], false},
		"two timestamps":             {body, fmt.Sprintf("t=%d,%s", now, sign(body, now-9000, "whsec_new")), false},
		"live event, test key":       {payload(APIVersion, true), sign(payload(APIVersion, true), now, "whsec_new"), false},
		"another API version":        {payload("2024-04-10", false), sign(payload("2024-04-10", false), now, "whsec_new"), false},
		"no JSON":                    {[]byte("{"), sign([]byte("{"), now, "whsec_new"), false},
		"an event without an object": {[]byte(`{"id":"evt_1","api_version":"2023-10-16"}`), sign([]byte(`{"id":"evt_1","api_version":"2023-10-16"}`), now, "whsec_new"), false},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := New(Config{Key: "sk_test_1", WebhookSecrets: []string{"whsec_new", "whsec_old"}}, quiet)
			if err != nil {
				t.Fatal(err)
			}
			ev, err := g.VerifyWebhook(tc.body, tc.header, time.Unix(now, 0))
			if tc.ok != (err == nil) {
				t.Fatalf("got %v", err)
			}
			if !tc.ok {
				return
			}
			if ev.ID != "evt_1" || ev.ObjectID != "pi_1" || ev.Type != "payment_intent.succeeded" || ev.Created.Unix() != now-3 {
				t.Errorf("read as %+v", ev)
			}
			if in, err := ev.Intent(); err != nil || in != (Intent{ID: "pi_1", Status: IntentSucceeded, AmountReceived: 5000, Currency: "usd", TopupID: "top_1"}) {
				t.Errorf("payment read as %+v, %v", in, err)
			}
		})
	}
}

// What Stripe answers becomes a kind that says what can be done.
func TestErrorsAreExplained(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		body   string
		kind   Kind
	}{
		"declined":      {402, `{"error":{"type":"card_error","code":"card_declined","message":"Your card was declined."}}`, Declined},
		"bad field":     {400, `{"error":{"type":"invalid_request_error","code":"parameter_unknown","message":"Received unknown parameter: x"}}`, Refused},
		"other bytes":   {400, `{"error":{"type":"idempotency_error","message":"Keys for idempotent requests can only be used with the same parameters"}}`, KeyReused},
		"no such page":  {404, `{"error":{"type":"invalid_request_error","code":"resource_missing","message":"No such checkout session"}}`, Unknown},
		"bad key":       {401, `{"error":{"type":"invalid_request_error","message":"Invalid API Key provided"}}`, BadKey},
		"too many":      {429, `{"error":{"type":"invalid_request_error","message":"Too many requests"}}`, Away},
		"their mistake": {500, `{"error":{"type":"api_error","message":"Something went wrong"}}`, Away},
		"no JSON":       {502, `<html>bad gateway</html>`, Away},
	} {
		t.Run(name, func(t *testing.T) {
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Request-Id", "req_1")
				w.Header().Set("Stripe-Should-Retry", "false")
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			}))
			defer web.Close()
			g, err := New(Config{Key: "sk_test_1", WebhookSecrets: []string{"whsec_x"}, BaseURL: web.URL}, quiet)
			if err != nil {
				t.Fatal(err)
			}
			_, err = g.CreateCheckout(context.Background(), "topup:1", CheckoutRequest{})
			var e *Error
			if !errors.As(err, &e) || e.Kind != tc.kind {
				t.Fatalf("got %v (%+v), want kind %d", err, e, tc.kind)
			}
			if IsAway(err) != (tc.kind == Away) {
				t.Error("IsAway disagrees")
			}
		})
	}
	t.Run("nobody there", func(t *testing.T) {
		web := httptest.NewServer(nil)
		web.Close()
		g, err := New(Config{Key: "sk_test_1", WebhookSecrets: []string{"whsec_x"}, BaseURL: web.URL}, quiet)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Balance(context.Background()); !IsAway(err) {
			t.Errorf("got %v", err)
		}
	})
}
