package stripedouble

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stripe/stripe-go/v76"
)

func TestCheckoutPage(t *testing.T) {
	b := newBench(t)
	s := b.session(5000)
	a := b.get(s.URL)
	if a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	for _, want := range []string{"TEST PAYMENTS", "No real money", "50.00 USD", "Berth credit", `name="card"`, "delayed_success",
		`<a href="http://127.0.0.1:9/wallet">`, "4000 0025 0000 3155"} {
		if !strings.Contains(a.body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	csp := a.header.Get("Content-Security-Policy")
	// The redirect after the form goes to the portal's origin, which form-action must allow.
	if !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "form-action 'self' http://127.0.0.1:9") {
		t.Errorf("policy %q", csp)
	}
	for _, never := range []string{"<script", "style=", "<style", "onclick"} {
		if strings.Contains(a.body, never) {
			t.Errorf("the page has %q", never)
		}
	}
	if css := b.get(b.web.URL + "/c/double.css"); css.status != 200 || !strings.HasPrefix(css.header.Get("Content-Type"), "text/css") {
		t.Errorf("style: %d", css.status)
	}
}

func TestCheckoutPageSteps(t *testing.T) {
	for name, tc := range map[string]struct {
		fields []string
		status int
		says   string
	}{
		"no number":        {[]string{"card", ""}, 422, "Enter a card number."},
		"wrong digits":     {[]string{"card", "4242 4242 4242 4241"}, 422, "Your card number is invalid."},
		"letters":          {[]string{"card", "<script>alert(1)"}, 422, "Your card number is invalid."},
		"a real card":      {[]string{"card", "4012888888881881"}, 422, "This page takes test cards only."},
		"expired date":     {[]string{"card", "4242424242424242", "exp", "01/20"}, 422, "expiration date is in the past"},
		"bad date":         {[]string{"card", "4242424242424242", "exp", "13/40"}, 422, "MM/YY"},
		"short code":       {[]string{"card", "4242424242424242", "cvc", "12"}, 422, "security code is incomplete"},
		"declined":         {[]string{"card", "4000000000000002"}, 402, "Your card was declined."},
		"no money":         {[]string{"card", "4000-0000-0000-9995", "exp", "12 / 2040", "cvc", "123"}, 402, "Your card has insufficient funds."},
		"charge fails":     {[]string{"card", "4000000000000341"}, 402, "Your card was declined."},
		"expired card":     {[]string{"card", "4000000000000069"}, 402, "Your card has expired."},
		"debit, card only": {[]string{"card", "delayed_success"}, 422, "This payment takes cards only."},
		"nothing at all":   {nil, 422, "Enter a card number."},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			p := topUp(b.customer().ID, 5000)
			p.PaymentMethodTypes = []*string{stripe.String("card")}
			s, err := b.api.CheckoutSessions.New(p)
			if err != nil {
				t.Fatal(err)
			}
			a := b.post(s.URL, tc.fields...)
			if a.status != tc.status || !strings.Contains(a.body, tc.says) {
				t.Fatalf("%d %s", a.status, a.body)
			}
			if strings.Contains(a.body, "<script>") {
				t.Fatal("what was typed came back unescaped")
			}
			if after := b.reload(s.ID); after.Status != "open" || after.PaymentStatus != "unpaid" || (after.PaymentIntent != nil) != (tc.status == 402) {
				t.Fatalf("session after: %+v", after)
			}
			b.flush()
			if tc.status == 402 {
				var pi stripe.PaymentIntent
				if err := json.Unmarshal(b.hook.last(t, "payment_intent.payment_failed").Data.Raw, &pi); err != nil || pi.LastPaymentError.Msg != tc.says {
					t.Fatalf("%+v, %v", pi.LastPaymentError, err)
				}
				b.hook.last(t, "charge.failed")
			}
			b.pay(s, "4242424242424242") // the same session can still be paid
			if pi := b.reload(s.ID).PaymentIntent; pi.Status != "succeeded" || pi.LastPaymentError != nil {
				t.Fatalf("%+v", pi)
			}
		})
	}
}

func TestThreeDSecure(t *testing.T) {
	b := newBench(t)
	s := b.session(5000)
	a := b.post(s.URL, "card", "4000002760003184")
	if a.status != http.StatusSeeOther || a.location != s.ID {
		t.Fatalf("%d to %q", a.status, a.location)
	}
	if a := b.get(s.URL); !strings.Contains(a.body, "3D Secure test page") {
		t.Fatal(a.body)
	}
	if pi := b.reload(s.ID).PaymentIntent; pi.Status != "requires_action" || pi.NextAction.RedirectToURL.URL != s.URL {
		t.Fatalf("%+v", pi)
	}
	if a := b.post(s.URL, "card", "4242424242424242"); a.status != 422 {
		t.Fatalf("another card in the middle: %d", a.status)
	}
	if a := b.post(s.URL, "authenticate", "fail"); a.status != 402 || !strings.Contains(a.body, "unable to authenticate") || !strings.Contains(a.body, `name="card"`) {
		t.Fatalf("%d %s", a.status, a.body)
	}
	b.post(s.URL, "card", "4000002500003155")
	if a := b.post(s.URL, "authenticate", "complete"); a.status != http.StatusSeeOther {
		t.Fatalf("%d", a.status)
	}
	done := b.reload(s.ID)
	if done.PaymentStatus != "paid" {
		t.Fatalf("%+v", done)
	}
	b.flush()
	b.hook.last(t, "payment_intent.requires_action")
	b.hook.last(t, "payment_intent.payment_failed")

	setup := b.setupSession(done.Customer.ID)
	b.post(setup.URL, "card", "4000002500003155")
	if a := b.post(setup.URL, "authenticate", "fail"); a.status != 402 {
		t.Fatalf("%d", a.status)
	}
	if a := b.post(setup.URL, "card", "4000000000000002"); a.status != 402 {
		t.Fatalf("a declining card was saved: %d", a.status)
	}
	b.pay(setup, "4242424242424242")
}

func TestEndedPages(t *testing.T) {
	b := newBench(t)
	paid, debit, expired := b.session(5000), b.session(5000), b.session(5000)
	saved := b.setupSession(paid.Customer.ID)
	b.pay(paid, "4242424242424242")
	b.pay(debit, "delayed_failure")
	b.pay(saved, "4242424242424242")
	if _, err := b.api.CheckoutSessions.Expire(expired.ID, nil); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]struct {
		status int
		says   string
	}{
		paid.URL:                    {200, "This payment is complete"},
		debit.URL:                   {200, "Your bank debit is on its way"},
		saved.URL:                   {200, "Your card is saved"},
		expired.URL:                 {410, "This payment page has expired"},
		b.web.URL + "/c/pay/cs_no":  {404, "No such payment"},
		b.web.URL + "/p/session/no": {404, "No such page"},
	} {
		if a := b.get(address); a.status != want.status || !strings.Contains(a.body, want.says) || !strings.Contains(a.body, "TEST PAYMENTS") {
			t.Errorf("%s: %d %s", address, a.status, a.body)
		}
	}
	before := b.readState().Objects["charge"]
	if a := b.post(paid.URL, "card", "4242424242424242"); a.status != http.StatusSeeOther || !strings.HasSuffix(a.location, paid.ID) {
		t.Errorf("a second click: %d", a.status)
	}
	if b.readState().Objects["charge"] != before {
		t.Error("a second click charged again")
	}
	b.control("POST", "settle/"+debit.ID, nil, nil)
	if a := b.get(debit.URL); !strings.Contains(a.body, "Your bank returned the debit") {
		t.Error(a.body)
	}
}

func TestPortalPage(t *testing.T) {
	b := newBench(t)
	customer := b.customer().ID
	card := b.save(customer, "5555555555554444")
	stranger := b.save(b.customer().ID, "4242424242424242")
	p, err := b.api.BillingPortalSessions.New(&stripe.BillingPortalSessionParams{Customer: stripe.String(customer), ReturnURL: stripe.String("http://127.0.0.1:9/wallet")})
	if err != nil {
		t.Fatal(err)
	}
	if a := b.get(p.URL); a.status != 200 || !strings.Contains(a.body, "Mastercard ending 4444") || !strings.Contains(a.body, "http://127.0.0.1:9/wallet") {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if a := b.post(p.URL, "remove", stranger); a.status != 200 || !strings.Contains(a.body, "not saved any more") {
		t.Fatalf("somebody else's card: %d", a.status)
	}
	if a := b.post(p.URL, "remove", card); a.status != http.StatusSeeOther || a.location != p.ID {
		t.Fatalf("%d to %q", a.status, a.location)
	}
	if a := b.get(p.URL); !strings.Contains(a.body, "No card is saved.") {
		t.Fatal(a.body)
	}
	b.flush()
	b.hook.last(t, "payment_method.detached")
}

func TestDisplay(t *testing.T) {
	for want, tc := range map[string]struct {
		n    int64
		code string
	}{"0.05 USD": {5, "usd"}, "50.00 USD": {5000, "usd"}, "150 JPY": {150, "jpy"}, "1.230 KWD": {1230, "kwd"}, "0.010 KWD": {10, "kwd"}} {
		if got := display(tc.n, tc.code); got != want {
			t.Errorf("%d %s: %q, want %q", tc.n, tc.code, got, want)
		}
	}
}
