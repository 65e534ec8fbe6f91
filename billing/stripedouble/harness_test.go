package stripedouble

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/client"
	"github.com/stripe/stripe-go/v76/webhook"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := childDir(); dir != "" {
		runChild(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

const (
	testKey    = "sk_test_double_0123456789"
	testSecret = "whsec_double"
)

// clock is a clock that a test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Now().UTC().Truncate(time.Second)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// receiver is a webhook endpoint that verifies as the portal does.
type receiver struct {
	url string
	web *httptest.Server

	mu      sync.Mutex
	events  []stripe.Event
	refused []string // why a delivery was not accepted
	answer  func(n int) int
	seen    int
	news    chan struct{}
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{news: make(chan struct{}, 1), answer: func(int) int { return 200 }}
	r.web = httptest.NewServer(r)
	r.url = r.web.URL + "/webhooks/stripe"
	t.Cleanup(r.web.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	event, err := webhook.ConstructEvent(body, req.Header.Get("Stripe-Signature"), testSecret)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen++
	status := 400
	if err != nil {
		r.refused = append(r.refused, err.Error())
	} else if status = r.answer(r.seen); status == 200 {
		r.events = append(r.events, event)
	}
	select {
	case r.news <- struct{}{}:
	default:
	}
	w.WriteHeader(status)
}

// answers sets the status of the n-th delivery from now on.
func (r *receiver) answers(status func(n int) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = status
}

func (r *receiver) got() []stripe.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

func (r *receiver) types() []string {
	var out []string
	for _, e := range r.got() {
		out = append(out, string(e.Type))
	}
	return out
}

func (r *receiver) last(t *testing.T, kind string) stripe.Event {
	t.Helper()
	for _, e := range slices.Backward(r.got()) {
		if string(e.Type) == kind {
			return e
		}
	}
	t.Fatalf("no event %s among %v", kind, r.types())
	return stripe.Event{}
}

// await waits until the receiver has what the test wants.
func (r *receiver) await(t *testing.T, want func([]stripe.Event) bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for !want(r.got()) {
		select {
		case <-r.news:
		case <-deadline:
			t.Fatalf("waited in vain; got %v, refused %v", r.types(), r.refused)
		}
	}
}

// bench is a running double, a client of it and an endpoint.
type bench struct {
	*Server
	t    *testing.T
	web  *httptest.Server
	api  *client.API
	hook *receiver
	dir  string
}

func newBench(t *testing.T, change ...func(*Config)) *bench {
	t.Helper()
	b := &bench{t: t, hook: newReceiver(t), dir: t.TempDir()}
	b.start(change...)
	t.Cleanup(b.stop)
	return b
}

func (b *bench) start(change ...func(*Config)) {
	b.t.Helper()
	b.web = httptest.NewUnstartedServer(nil)
	address := "http://" + b.web.Listener.Addr().String()
	cfg := Config{Dir: b.dir, SecretKey: testKey, WebhookSecret: testSecret, WebhookURL: b.hook.url,
		PublicURL: address, SettleAfter: -1, RetryMin: 10 * time.Millisecond, RetryMax: 40 * time.Millisecond}
	for _, f := range change {
		f(&cfg)
	}
	var err error
	if b.Server, err = New(cfg); err != nil {
		b.t.Fatal(err)
	}
	b.web.Config.Handler = b.Server
	b.web.Start()
	b.api = newClient(address, 0)
}

func (b *bench) stop() {
	b.web.Close()
	if err := b.Server.Close(); err != nil {
		b.t.Error(err)
	}
}

// run delivers in the background until the test ends.
func (b *bench) run() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	b.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Error(err)
		}
	})
}

func newClient(address string, retries int64) *client.API {
	be := stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
		URL: stripe.String(address), HTTPClient: &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}},
		MaxNetworkRetries: stripe.Int64(retries), EnableTelemetry: stripe.Bool(false), LeveledLogger: &stripe.LeveledLogger{}})
	return client.New(testKey, &stripe.Backends{API: be, Connect: be, Uploads: be})
}

func (b *bench) flush() FlushResult {
	b.t.Helper()
	out, err := b.Flush(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	if out.Pending != 0 {
		b.t.Fatalf("flush left %d events", out.Pending)
	}
	return out
}

func (b *bench) customer() *stripe.Customer {
	b.t.Helper()
	p := &stripe.CustomerParams{Email: stripe.String("ada@example.com"), Name: stripe.String("Ada")}
	p.AddMetadata("berth_user", "u1")
	c, err := b.api.Customers.New(p)
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// topUp is the portal's request for a payment page.
func topUp(customer string, amount int64) *stripe.CheckoutSessionParams {
	p := &stripe.CheckoutSessionParams{
		Mode: stripe.String("payment"), Customer: stripe.String(customer), ClientReferenceID: stripe.String("acc_1"),
		SuccessURL: stripe.String("http://127.0.0.1:9/wallet?session={CHECKOUT_SESSION_ID}"),
		CancelURL:  stripe.String("http://127.0.0.1:9/wallet"),
		LineItems: []*stripe.CheckoutSessionLineItemParams{{Quantity: stripe.Int64(1),
			PriceData: &stripe.CheckoutSessionLineItemPriceDataParams{Currency: stripe.String("usd"), UnitAmount: stripe.Int64(amount),
				ProductData: &stripe.CheckoutSessionLineItemPriceDataProductDataParams{Name: stripe.String("Berth credit")}}}},
		PaymentIntentData: &stripe.CheckoutSessionPaymentIntentDataParams{SetupFutureUsage: stripe.String("off_session")},
	}
	p.AddMetadata("topup_id", "t1")
	p.PaymentIntentData.AddMetadata("topup_id", "t1")
	return p
}

func (b *bench) session(amount int64) *stripe.CheckoutSession {
	b.t.Helper()
	s, err := b.api.CheckoutSessions.New(topUp(b.customer().ID, amount))
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func (b *bench) setupSession(customer string) *stripe.CheckoutSession {
	b.t.Helper()
	s, err := b.api.CheckoutSessions.New(&stripe.CheckoutSessionParams{Mode: stripe.String("setup"), Customer: stripe.String(customer),
		SuccessURL: stripe.String("http://127.0.0.1:9/wallet"), PaymentMethodTypes: []*string{stripe.String("card")}})
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func (b *bench) reload(id string) *stripe.CheckoutSession {
	b.t.Helper()
	p := &stripe.CheckoutSessionParams{}
	p.AddExpand("payment_intent")
	p.AddExpand("setup_intent")
	s, err := b.api.CheckoutSessions.Get(id, p)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// answer is a page or a redirect as a browser without script gets it.
type answer struct {
	status   int
	location string
	body     string
	header   http.Header
}

// post sends a form as a browser does, without following the redirect.
func (b *bench) post(address string, fields ...string) answer {
	b.t.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	req, _ := http.NewRequest(http.MethodPost, address, strings.NewReader(form.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return b.do(req)
}

func (b *bench) get(address string) answer {
	b.t.Helper()
	req, _ := http.NewRequest(http.MethodGet, address, nil)
	return b.do(req)
}

func (b *bench) do(req *http.Request) answer {
	b.t.Helper()
	c := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := c.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header.Get("Location"), string(body), res.Header}
}

// pay pays a session with a card that needs nothing more.
func (b *bench) pay(s *stripe.CheckoutSession, card string) {
	b.t.Helper()
	if a := b.post(s.URL, "card", card); a.status != http.StatusSeeOther {
		b.t.Fatalf("paying with %s: %d %s", card, a.status, a.body)
	}
}

// control calls the control API and decodes its answer into out, when given.
func (b *bench) control(method, path string, in, out any) int {
	b.t.Helper()
	body, _ := json.Marshal(in)
	if in == nil {
		body = nil
	}
	req, _ := http.NewRequest(method, b.web.URL+"/_double/"+path, bytes.NewReader(body))
	req.Header.Set("Authorization", "Bearer "+testKey)
	a := b.do(req)
	if out != nil {
		if err := json.Unmarshal([]byte(a.body), out); err != nil {
			b.t.Fatalf("%s %s: %v in %s", method, path, err, a.body)
		}
	}
	return a.status
}

// raw sends one API request as it is, and gives status and decoded body.
func (b *bench) raw(method, path, form string, header ...string) (int, map[string]any, http.Header) {
	b.t.Helper()
	req, _ := http.NewRequest(method, b.web.URL+path, strings.NewReader(form))
	req.Header.Set("Authorization", "Bearer "+testKey)
	req.Header.Set("Stripe-Version", apiVersion)
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	a := b.do(req)
	var body map[string]any
	if err := json.Unmarshal([]byte(a.body), &body); err != nil {
		b.t.Fatalf("%s %s: %v in %q", method, path, err, a.body)
	}
	return a.status, body, a.header
}
