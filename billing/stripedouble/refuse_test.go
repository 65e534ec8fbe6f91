package stripedouble

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v76"
)

// apiErr is the error body as a client without a library reads it.
func apiErr(body map[string]any, field string) string {
	e, _ := body["error"].(map[string]any)
	s, _ := e[field].(string)
	return s
}

// paymentForm is a good request for a payment page; the pairs change it, an
// empty value removes a parameter.
func paymentForm(pairs ...string) string {
	f := url.Values{
		"mode": {"payment"}, "success_url": {"https://berth.example/ok"},
		"line_items[0][quantity]":                        {"1"},
		"line_items[0][price_data][currency]":            {"usd"},
		"line_items[0][price_data][unit_amount]":         {"5000"},
		"line_items[0][price_data][product_data][name]":  {"Credit"},
		"payment_intent_data[metadata][topup_id]":        {"t1"},
		"payment_intent_data[setup_future_usage]":        {"off_session"},
		"line_items[0][price_data][product_data][extra]": nil,
	}
	for i := 0; i < len(pairs); i += 2 {
		if f.Del(pairs[i]); pairs[i+1] != "" {
			f.Set(pairs[i], pairs[i+1])
		}
	}
	return f.Encode()
}

func TestRefusals(t *testing.T) {
	b := newBench(t)
	customer := b.customer().ID
	other := b.save(b.customer().ID, "4242424242424242")
	s := b.session(5000)
	b.pay(s, "4242424242424242")
	pi := b.reload(s.ID).PaymentIntent.ID
	off := "amount=500&currency=usd&off_session=true&confirm=true&payment_method_types[0]=card"

	for name, tc := range map[string]struct {
		path, form  string
		status      int
		code, param string
	}{
		"unknown parameter":            {"/v1/customers", "email=a@b.c&emial=x", 400, "parameter_unknown", "emial"},
		"unknown nested parameter":     {"/v1/checkout/sessions", paymentForm("line_items[0][price_data][unit_ammount]", "1"), 400, "parameter_unknown", "line_items[0][price_data][unit_ammount]"},
		"broken brackets":              {"/v1/customers", "metadata[a=1", 400, "parameter_unknown", "metadata[a"},
		"bad email":                    {"/v1/customers", "email=nobody", 400, "email_invalid", "email"},
		"long metadata":                {"/v1/customers", "metadata[a]=" + strings.Repeat("x", 501), 400, "", "metadata[a]"},
		"no mode":                      {"/v1/checkout/sessions", paymentForm("mode", ""), 400, "parameter_missing", "mode"},
		"bad mode":                     {"/v1/checkout/sessions", paymentForm("mode", "pay"), 400, "", "mode"},
		"no lines":                     {"/v1/checkout/sessions", "mode=payment&success_url=https://b.example/", 400, "parameter_missing", "line_items"},
		"no amount":                    {"/v1/checkout/sessions", paymentForm("line_items[0][price_data][unit_amount]", ""), 400, "parameter_missing", "line_items[0][price_data][unit_amount]"},
		"amount with a point":          {"/v1/checkout/sessions", paymentForm("line_items[0][price_data][unit_amount]", "12.5"), 400, "parameter_invalid_integer", "line_items[0][price_data][unit_amount]"},
		"amount too small":             {"/v1/checkout/sessions", paymentForm("line_items[0][price_data][unit_amount]", "49"), 400, "amount_too_small", "line_items"},
		"amount too large":             {"/v1/checkout/sessions", paymentForm("line_items[0][quantity]", "999999"), 400, "amount_too_large", "line_items"},
		"amount overflowing":           {"/v1/checkout/sessions", paymentForm("line_items[0][price_data][unit_amount]", "99999999999999999999"), 400, "parameter_invalid_integer", "line_items[0][price_data][unit_amount]"},
		"negative quantity":            {"/v1/checkout/sessions", paymentForm("line_items[0][quantity]", "-1"), 400, "parameter_invalid_integer", "line_items[0][quantity]"},
		"currency in upper case":       {"/v1/checkout/sessions", paymentForm("line_items[0][price_data][currency]", "USD"), 400, "", "line_items[0][price_data][currency]"},
		"unknown currency":             {"/v1/checkout/sessions", paymentForm("line_items[0][price_data][currency]", "xyz"), 400, "", "line_items[0][price_data][currency]"},
		"dinar not ending in 0":        {"/v1/checkout/sessions", paymentForm("line_items[0][price_data][currency]", "kwd", "line_items[0][price_data][unit_amount]", "5001"), 400, "", "line_items"},
		"success_url without a scheme": {"/v1/checkout/sessions", paymentForm("success_url", "berth.example/ok"), 400, "url_invalid", "success_url"},
		"unknown customer":             {"/v1/checkout/sessions", paymentForm("customer", "cus_nobody"), 400, "resource_missing", "customer"},
		"expires too soon":             {"/v1/checkout/sessions", paymentForm("expires_at", itoa(time.Now().Add(29*time.Minute).Unix())), 400, "", "expires_at"},
		"expires too late":             {"/v1/checkout/sessions", paymentForm("expires_at", itoa(time.Now().Add(25*time.Hour).Unix())), 400, "", "expires_at"},
		"bad future usage":             {"/v1/checkout/sessions", paymentForm("payment_intent_data[setup_future_usage]", "always"), 400, "", "payment_intent_data[setup_future_usage]"},
		"lines in setup mode":          {"/v1/checkout/sessions", paymentForm("mode", "setup"), 400, "", "line_items"},
		"off-session, amount in words": {"/v1/payment_intents", strings.Replace(off, "500", "abc", 1), 400, "parameter_invalid_integer", "amount"},
		"off-session below 0.50":       {"/v1/payment_intents", strings.Replace(off, "500", "49", 1), 400, "amount_too_small", "amount"},
		"off-session without a card":   {"/v1/payment_intents", off + "&customer=" + customer, 400, "payment_intent_unexpected_state", ""},
		"off-session, somebody's card": {"/v1/payment_intents", off + "&customer=" + customer + "&payment_method=" + other, 400, "", "payment_method"},
		"off-session without confirm":  {"/v1/payment_intents", "amount=500&currency=usd&off_session=true", 400, "", "off_session"},
		"confirm on-session":           {"/v1/payment_intents", "amount=500&currency=usd&confirm=true&customer=" + customer, 400, "payment_intent_unexpected_state", ""},
		"empty amount":                 {"/v1/payment_intents", "amount=&currency=usd", 400, "parameter_invalid_empty", "amount"},
		"refund of nothing":            {"/v1/refunds", "amount=5", 400, "parameter_missing", "payment_intent"},
		"refund of too much":           {"/v1/refunds", "payment_intent=" + pi + "&amount=5001", 400, "", "amount"},
		"refund of zero":               {"/v1/refunds", "payment_intent=" + pi + "&amount=0", 400, "parameter_invalid_integer", "amount"},
		"refund with a bad reason":     {"/v1/refunds", "payment_intent=" + pi + "&reason=regret", 400, "", "reason"},
		"refund of an unknown payment": {"/v1/refunds", "payment_intent=pi_no", 400, "resource_missing", "payment_intent"},
		"portal of nobody":             {"/v1/billing_portal/sessions", "customer=cus_no", 400, "resource_missing", "customer"},
		"detach of an unknown card":    {"/v1/payment_methods/pm_no/detach", "", 404, "resource_missing", "payment_method"},
		"expire of an unknown session": {"/v1/checkout/sessions/cs_no/expire", "", 404, "resource_missing", "session"},
		"expire of a paid session":     {"/v1/checkout/sessions/" + s.ID + "/expire", "", 400, "", ""},
		"cancel of a paid payment":     {"/v1/payment_intents/" + pi + "/cancel", "", 400, "", ""},
		"unknown address":              {"/v1/subscriptions", "customer=" + customer, 404, "", ""},
		"unknown expansion":            {"/v1/customers", "expand[]=friends", 400, "", "expand"},
	} {
		t.Run(name, func(t *testing.T) {
			before := b.state()
			status, body, _ := b.raw("POST", tc.path, tc.form, "Idempotency-Key", "refused:"+name)
			if status != tc.status || apiErr(body, "code") != tc.code || apiErr(body, "param") != tc.param || apiErr(body, "type") != "invalid_request_error" {
				t.Fatalf("got %d %v, want %d %s %s", status, body, tc.status, tc.code, tc.param)
			}
			if after := b.state(); after != before {
				t.Fatalf("a refused request changed the state: %s, before %s", after, before)
			}
		})
	}
}

func TestGetRefusals(t *testing.T) {
	b := newBench(t)
	for path, want := range map[string]int{
		"/v1/customers/cus_no":                                             404,
		"/v1/checkout/sessions/cus_no":                                     404,
		"/v1/customers/cus_no/payment_methods":                             404,
		"/v1/payment_methods?customer=cus_no":                              400,
		"/v1/payment_methods?type=cash":                                    400,
		"/v1/payment_methods":                                              200,
		"/v1/refunds?charge=ch_no":                                         400,
		"/v1/refunds?limit=101":                                            400,
		"/v1/events?starting_after=evt_no":                                 400,
		"/v1/events?delivery_success=maybe":                                400,
		"/v1/events?types[]=a&types[]=b":                                   200,
		"/v1/events?created[gte]=1&created[lt]=" + itoa(time.Now().Unix()): 200,
		"/v1/balance":                                                      200,
		"/v1/":                                                             404,
	} {
		if status, body, _ := b.raw("GET", path, ""); status != want {
			t.Errorf("%s: %d %v, want %d", path, status, body, want)
		}
	}
}

func TestKeyVersionAndBody(t *testing.T) {
	b := newBench(t)
	for name, tc := range map[string]struct {
		header, value string
		want          int
	}{
		"no key":           {"Authorization", "", 401},
		"wrong key":        {"Authorization", "Bearer sk_test_somebody_else_0", 401},
		"basic, right key": {"Authorization", "Basic c2tfdGVzdF9kb3VibGVfMDEyMzQ1Njc4OTo=", 200},
		"newer version":    {"Stripe-Version", "2024-04-10", 400},
		"no version":       {"Stripe-Version", "", 200},
		"JSON":             {"Content-Type", "application/json", 400},
		"long key":         {"Idempotency-Key", strings.Repeat("k", 256), 400},
	} {
		if status, body, _ := b.raw("POST", "/v1/customers", "name=Ada", tc.header, tc.value); status != tc.want {
			t.Errorf("%s: %d %v, want %d", name, status, body, tc.want)
		}
	}
	if status, body, _ := b.raw("POST", "/v1/customers", "name="+strings.Repeat("x", maxBody)); status != 400 {
		t.Errorf("oversized body: %d %v", status, body)
	}
	if got := b.controlWithKey("nobody"); got != 401 {
		t.Errorf("control API without the key: %d", got)
	}
	if status, _, h := b.raw("POST", "/v1/customers", "name=Ada"); status != 200 || h.Get("Request-Id") == "" {
		t.Errorf("a good request: %d, request id %q", status, h.Get("Request-Id"))
	}
}

func (b *bench) controlWithKey(key string) int {
	req, _ := http.NewRequest("GET", b.web.URL+"/_double/state", nil)
	req.Header.Set("Authorization", "Bearer "+key)
	return b.do(req).status
}

func TestIdempotency(t *testing.T) {
	now := newClock()
	b := newBench(t, func(c *Config) { c.Clock = now.now })
	post := func(path, form, key string) (int, map[string]any, http.Header) {
		return b.raw("POST", path, form, "Idempotency-Key", key)
	}
	_, first, _ := post("/v1/customers", "name=Ada&email=a@b.c", "k1")
	status, again, h := post("/v1/customers", "email=a@b.c&name=Ada", "k1") // the order of parameters does not matter
	if status != 200 || again["id"] != first["id"] || h.Get("Idempotent-Replayed") != "true" {
		t.Fatalf("replay: %d %v, first %v", status, again, first)
	}
	for form, path := range map[string]string{"name=Eve&email=a@b.c": "/v1/customers", "name=Ada&email=a@b.c": "/v1/customers/" + first["id"].(string)} {
		if status, body, _ := post(path, form, "k1"); status != 400 || apiErr(body, "type") != "idempotency_error" {
			t.Fatalf("another request under the key: %d %v", status, body)
		}
	}
	// A validation error is not stored: the corrected request may use the key.
	if status, _, _ := post("/v1/customers", "emial=x", "k2"); status != 400 {
		t.Fatal("unknown parameter accepted")
	}
	if status, _, _ := post("/v1/customers", "email=a@b.c", "k2"); status != 200 {
		t.Fatalf("after a 400 the key is spent: %d", status)
	}
	b.stop()
	b.start(func(c *Config) { c.Clock = now.now })
	if _, again, _ := post("/v1/customers", "name=Ada&email=a@b.c", "k1"); again["id"] != first["id"] {
		t.Fatal("the key was forgotten over a restart")
	}
	now.add(25 * time.Hour)
	if _, fresh, _ := post("/v1/customers", "name=Ada&email=a@b.c", "k1"); fresh["id"] == first["id"] {
		t.Fatal("the key outlived its day")
	}
}

func TestRefusedConfigurations(t *testing.T) {
	good := Config{Dir: t.TempDir(), SecretKey: testKey, WebhookSecret: testSecret, PublicURL: "http://127.0.0.1:1"}
	for name, change := range map[string]func(*Config){
		"live key":             func(c *Config) { c.SecretKey = "sk_live_0123456789" },
		"restricted live key":  func(c *Config) { c.SecretKey = "rk_live_0123456789" },
		"empty key":            func(c *Config) { c.SecretKey = "" },
		"empty webhook secret": func(c *Config) { c.WebhookSecret = "" },
		"no directory":         func(c *Config) { c.Dir = "" },
		"no public address":    func(c *Config) { c.PublicURL = "127.0.0.1:80" },
		"bad webhook address":  func(c *Config) { c.WebhookURL = "ftp://x" },
	} {
		cfg := good
		change(&cfg)
		if s, err := New(cfg); err == nil {
			s.Close()
			t.Errorf("%s was accepted", name)
		}
	}
	s, err := New(good)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if second, err := New(good); err == nil {
		second.Close()
		t.Error("two servers hold one directory")
	}
	if s.SetWebhookURL("nowhere") == nil || s.SetFaults(Faults{DropEvery: -1}) == nil {
		t.Error("a bad webhook address or knob was accepted")
	}
}

func TestUnsavedPaymentIntentCanBeCanceled(t *testing.T) {
	b := newBench(t)
	pi, err := b.api.PaymentIntents.New(&stripe.PaymentIntentParams{Amount: stripe.Int64(500), Currency: stripe.String("usd")})
	if err != nil || pi.Status != "requires_payment_method" {
		t.Fatalf("%+v, %v", pi, err)
	}
	pi, err = b.api.PaymentIntents.Cancel(pi.ID, &stripe.PaymentIntentCancelParams{CancellationReason: stripe.String("abandoned")})
	if err != nil || pi.Status != "canceled" {
		t.Fatalf("%+v, %v", pi, err)
	}
	b.flush()
	b.hook.last(t, "payment_intent.canceled")
}

func TestOneKeyInParallelActsOnce(t *testing.T) {
	b := newBench(t)
	customer := b.customer().ID
	card := b.save(customer, "4242424242424242")
	ids := make(chan string, 20)
	for range cap(ids) {
		go func() {
			p := offSession(customer, card, 1500)
			p.SetIdempotencyKey("auto:w1:1:1")
			pi, err := b.api.PaymentIntents.New(p)
			if err != nil {
				ids <- err.Error()
				return
			}
			ids <- pi.ID
		}()
	}
	first := <-ids
	for range cap(ids) - 1 {
		if id := <-ids; id != first {
			t.Errorf("got %s beside %s", id, first)
		}
	}
	if got := b.readState().Paid["usd"]; got != 1500 {
		t.Errorf("%d was paid, want 1500", got)
	}
}
