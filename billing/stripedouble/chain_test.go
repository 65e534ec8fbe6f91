package stripedouble

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v76"
)

// The whole life of a customer, through stripe-go, as Berth's client does it.
func TestTopUpThenOffSessionThenRefund(t *testing.T) {
	b := newBench(t)
	b.run()
	s := b.session(5000)
	if s.PaymentIntent != nil || s.Status != "open" || s.AmountTotal != 5000 || s.URL != b.web.URL+"/c/pay/"+s.ID {
		t.Fatalf("new session: %+v", s)
	}
	a := b.post(s.URL, "card", "4242 4242 4242 4242")
	if want := "http://127.0.0.1:9/wallet?session=" + s.ID; a.status != http.StatusSeeOther || a.location != want {
		t.Fatalf("paying: %d to %q, want 303 to %q", a.status, a.location, want)
	}
	b.hook.await(t, func(es []stripe.Event) bool { return len(es) == 5 })
	want := []string{"payment_intent.created", "payment_method.attached", "charge.succeeded", "payment_intent.succeeded", "checkout.session.completed"}
	if got := b.hook.types(); !slices.Equal(got, want) {
		t.Fatalf("events %v, want %v", got, want)
	}
	var paid stripe.CheckoutSession
	if err := json.Unmarshal(b.hook.last(t, "checkout.session.completed").Data.Raw, &paid); err != nil {
		t.Fatal(err)
	}
	if paid.PaymentStatus != "paid" || paid.Metadata["topup_id"] != "t1" || paid.ClientReferenceID != "acc_1" || paid.PaymentIntent == nil {
		t.Fatalf("completed session: %+v", paid)
	}
	s = b.reload(s.ID)
	if pi := s.PaymentIntent; pi.Status != "succeeded" || pi.AmountReceived != 5000 || pi.Metadata["topup_id"] != "t1" {
		t.Fatalf("expanded payment intent: %+v", pi)
	}

	cards := b.api.Customers.ListPaymentMethods(&stripe.CustomerListPaymentMethodsParams{Customer: stripe.String(s.Customer.ID), Type: stripe.String("card")})
	if !cards.Next() {
		t.Fatalf("no saved card: %v", cards.Err())
	}
	card := cards.PaymentMethod()
	if card.Card.Last4 != "4242" || card.Card.Brand != "visa" || cards.Next() {
		t.Fatalf("saved cards: %+v", card)
	}

	auto := offSession(s.Customer.ID, card.ID, 2000)
	pi, err := b.api.PaymentIntents.New(auto)
	if err != nil || pi.Status != "succeeded" || pi.LatestCharge == nil {
		t.Fatalf("off-session: %+v, %v", pi, err)
	}

	part := &stripe.RefundParams{PaymentIntent: stripe.String(pi.ID), Amount: stripe.Int64(600), Reason: stripe.String("requested_by_customer")}
	part.AddMetadata("refund_id", "r1")
	if _, err := b.api.Refunds.New(part); err != nil {
		t.Fatal(err)
	}
	rest, err := b.api.Refunds.New(&stripe.RefundParams{PaymentIntent: stripe.String(pi.ID)})
	if err != nil || rest.Amount != 1400 || rest.Status != "succeeded" {
		t.Fatalf("refund of the rest: %+v, %v", rest, err)
	}
	b.flush()
	var ch stripe.Charge
	if err := json.Unmarshal(b.hook.last(t, "charge.refunded").Data.Raw, &ch); err != nil {
		t.Fatal(err)
	}
	if ch.AmountRefunded != 2000 || !ch.Refunded { // cumulative, not 1400
		t.Fatalf("charge.refunded carries %d, %v", ch.AmountRefunded, ch.Refunded)
	}
	var listed []int64
	refunds := b.api.Refunds.List(&stripe.RefundListParams{Charge: stripe.String(pi.LatestCharge.ID)})
	for refunds.Next() {
		listed = append(listed, refunds.Refund().Amount)
	}
	if !slices.Equal(listed, []int64{1400, 600}) {
		t.Fatalf("refunds of the charge: %v", listed)
	}
	balance, err := b.api.Balance.Get(nil)
	if err != nil || balance.Available[0].Amount != 5000 {
		t.Fatalf("balance: %+v, %v", balance, err)
	}

	if gone, err := b.api.PaymentMethods.Detach(card.ID, nil); err != nil || gone.Customer != nil {
		t.Fatalf("detach: %+v, %v", gone, err)
	}
	if cards := b.api.PaymentMethods.List(&stripe.PaymentMethodListParams{Customer: stripe.String(s.Customer.ID), Type: stripe.String("card")}); cards.Next() {
		t.Fatal("the card is listed after it was detached")
	}
	b.flush()
	b.hook.last(t, "payment_method.detached")
}

func offSession(customer, card string, amount int64) *stripe.PaymentIntentParams {
	p := &stripe.PaymentIntentParams{Amount: stripe.Int64(amount), Currency: stripe.String("usd"), Customer: stripe.String(customer),
		PaymentMethod: stripe.String(card), OffSession: stripe.Bool(true), Confirm: stripe.Bool(true),
		PaymentMethodTypes: []*string{stripe.String("card")}, Description: stripe.String("Automatic top-up")}
	p.AddMetadata("topup_id", "t2")
	p.AddMetadata("kind", "auto")
	return p
}

// save pays a setup session and gives the saved card.
func (b *bench) save(customer, number string) string {
	b.t.Helper()
	s := b.setupSession(customer)
	a := b.post(s.URL, "card", number)
	if a.status == http.StatusSeeOther && a.location == s.ID {
		a = b.post(s.URL, "authenticate", "complete")
	}
	if a.status != http.StatusSeeOther {
		b.t.Fatalf("saving %s: %d %s", number, a.status, a.body)
	}
	done := b.reload(s.ID)
	if done.Status != "complete" || done.PaymentStatus != "no_payment_required" || done.SetupIntent.PaymentMethod == nil {
		b.t.Fatalf("setup session: %+v", done)
	}
	return done.SetupIntent.PaymentMethod.ID
}

func TestOffSessionByCard(t *testing.T) {
	b := newBench(t)
	for name, tc := range map[string]struct {
		number, code, decline string // code empty: succeeds
	}{
		"plain":                             {"4242424242424242", "", ""},
		"authentication once, set up":       {"4000002500003155", "", ""},
		"authentication always":             {"4000002760003184", "authentication_required", "authentication_required"},
		"saved, but every charge fails":     {"4000000000000341", "card_declined", "generic_decline"},
		"disputed afterwards, charged fine": {"4000000000000259", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			customer := b.customer().ID
			card := b.save(customer, tc.number)
			p := offSession(customer, card, 1500)
			p.SetIdempotencyKey("auto:" + name)
			pi, err := b.api.PaymentIntents.New(p)
			if tc.code == "" {
				if err != nil || pi.Status != "succeeded" {
					t.Fatalf("got %+v, %v", pi, err)
				}
				return
			}
			var se *stripe.Error
			if !errors.As(err, &se) {
				t.Fatalf("got %v, want a decline", err)
			}
			if se.HTTPStatusCode != 402 || se.Type != stripe.ErrorTypeCard || string(se.Code) != tc.code || string(se.DeclineCode) != tc.decline {
				t.Fatalf("decline: %+v", se)
			}
			if se.PaymentIntent == nil || se.PaymentIntent.Status != "requires_payment_method" || se.PaymentIntent.LastPaymentError == nil || se.ChargeID == "" {
				t.Fatalf("the decline lacks its payment intent or charge: %+v", se)
			}
			_, again := b.api.PaymentIntents.New(p) // the same key repeats the decline and charges nothing
			var se2 *stripe.Error
			if !errors.As(again, &se2) || se2.PaymentIntent.ID != se.PaymentIntent.ID {
				t.Fatalf("repeated: %v", again)
			}
			b.flush()
			b.hook.last(t, "payment_intent.payment_failed")
		})
	}
}

func TestBankDebitSettlesLater(t *testing.T) {
	for name, tc := range map[string]struct {
		choice, override  string
		event, paid, intt string
	}{
		"paid":                 {"delayed_success", "", "checkout.session.async_payment_succeeded", "paid", "succeeded"},
		"returned":             {"delayed_failure", "", "checkout.session.async_payment_failed", "unpaid", "requires_payment_method"},
		"paid, told to return": {"delayed_success", "failed", "checkout.session.async_payment_failed", "unpaid", "requires_payment_method"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s := b.session(10000)
			b.pay(s, tc.choice)
			b.flush()
			var done stripe.CheckoutSession
			if err := json.Unmarshal(b.hook.last(t, "checkout.session.completed").Data.Raw, &done); err != nil {
				t.Fatal(err)
			}
			if done.PaymentStatus != "unpaid" || b.reload(s.ID).PaymentIntent.Status != "processing" {
				t.Fatalf("completed: %+v", done)
			}
			var in any
			if tc.override != "" {
				in = settleChoice{Result: tc.override}
			}
			if got := b.control("POST", "settle/"+s.ID, in, nil); got != 200 {
				t.Fatalf("settle answered %d", got)
			}
			if got := b.control("POST", "settle/"+s.ID, nil, nil); got != 400 {
				t.Fatalf("a second settle answered %d", got)
			}
			b.flush()
			b.hook.last(t, tc.event)
			after := b.reload(s.ID)
			if string(after.PaymentStatus) != tc.paid || string(after.PaymentIntent.Status) != tc.intt {
				t.Fatalf("after: %s, %s", after.PaymentStatus, after.PaymentIntent.Status)
			}
		})
	}
}

func TestTimersSettleAndExpire(t *testing.T) {
	now := newClock()
	b := newBench(t, func(c *Config) { c.Clock, c.SettleAfter = now.now, 0 })
	debit, card := b.session(5000), b.session(700)
	b.pay(debit, "delayed_success")
	if a := b.post(card.URL, "card", "4000000000000002"); a.status != 402 {
		t.Fatalf("declined card: %d", a.status)
	}
	now.add(time.Minute - time.Second)
	if s := b.reload(debit.ID); s.PaymentStatus != "unpaid" {
		t.Fatalf("settled too early: %s", s.PaymentStatus)
	}
	now.add(2 * time.Second)
	if s := b.reload(debit.ID); s.PaymentStatus != "paid" {
		t.Fatalf("not settled: %s", s.PaymentStatus)
	}
	now.add(24 * time.Hour)
	s := b.reload(card.ID)
	if s.Status != "expired" || s.PaymentIntent.Status != "canceled" || s.URL != "" {
		t.Fatalf("not expired: %s, %s", s.Status, s.PaymentIntent.Status)
	}
	if a := b.post(card.URL, "card", "4242424242424242"); a.status != http.StatusGone {
		t.Fatalf("paying an expired session: %d", a.status)
	}
	b.flush()
	b.hook.last(t, "checkout.session.expired")
	b.hook.last(t, "payment_intent.canceled")
	b.hook.last(t, "checkout.session.async_payment_succeeded")
}

func TestExpireByRequest(t *testing.T) {
	b := newBench(t)
	s := b.session(5000)
	if gone, err := b.api.CheckoutSessions.Expire(s.ID, nil); err != nil || gone.Status != "expired" {
		t.Fatalf("%+v, %v", gone, err)
	}
	_, err := b.api.CheckoutSessions.Expire(s.ID, nil)
	var se *stripe.Error
	if !errors.As(err, &se) || se.HTTPStatusCode != 400 {
		t.Fatalf("a second expire: %v", err)
	}
}

func TestDisputesAndRefundsFromOutside(t *testing.T) {
	b := newBench(t)
	s := b.session(5000)
	b.pay(s, "4242424242424242")
	pi := b.reload(s.ID).PaymentIntent.ID
	var refund, dp struct{ ID, Status string }
	if got := b.control("POST", "refunds", paymentChoice{PaymentIntent: pi, Amount: 2000}, &refund); got != 200 {
		t.Fatalf("dashboard refund: %d", got)
	}
	if got := b.control("POST", "disputes", paymentChoice{PaymentIntent: pi, Amount: 3001}, nil); got != 400 {
		t.Fatalf("a dispute of more than is left: %d", got)
	}
	if got := b.control("POST", "disputes", paymentChoice{PaymentIntent: pi}, &dp); got != 200 || dp.Status != "needs_response" {
		t.Fatalf("dispute: %d, %+v", got, dp)
	}
	if _, err := b.api.Refunds.New(&stripe.RefundParams{PaymentIntent: stripe.String(pi)}); err == nil {
		t.Fatal("a charged back charge was refunded")
	}
	if got := b.control("POST", "disputes/"+dp.ID+"/win", nil, &dp); got != 200 || dp.Status != "won" {
		t.Fatalf("win: %d, %+v", got, dp)
	}
	if got := b.control("POST", "disputes/"+dp.ID+"/lose", nil, nil); got != 400 {
		t.Fatalf("losing a won dispute: %d", got)
	}
	if got := b.control("POST", "refunds/"+refund.ID+"/fail", nil, &refund); got != 200 || refund.Status != "failed" {
		t.Fatalf("failing the refund: %d, %+v", got, refund)
	}
	b.flush()
	for _, kind := range []string{"charge.refunded", "charge.dispute.created", "charge.dispute.funds_withdrawn",
		"charge.dispute.funds_reinstated", "charge.dispute.closed", "charge.refund.updated"} {
		b.hook.last(t, kind)
	}
	var ch stripe.Charge
	if err := json.Unmarshal(b.hook.last(t, "charge.refunded").Data.Raw, &ch); err != nil || ch.AmountRefunded != 2000 {
		t.Fatalf("charge: %+v, %v", ch, err)
	}
	d, err := b.api.Disputes.Get(dp.ID, nil)
	if err != nil || len(d.BalanceTransactions) != 2 || d.BalanceTransactions[0].Amount != -3000 {
		t.Fatalf("dispute: %+v, %v", d, err)
	}

	// An inquiry takes no money; the card that disputes by itself does.
	s2 := b.session(800)
	b.pay(s2, "4242424242424242")
	var inquiry struct{ ID, Status string }
	b.control("POST", "disputes", paymentChoice{PaymentIntent: b.reload(s2.ID).PaymentIntent.ID, Inquiry: true}, &inquiry)
	b.flush()
	before := len(b.hook.got())
	b.control("POST", "disputes/"+inquiry.ID+"/win", nil, &inquiry)
	b.flush()
	if got := b.hook.types()[before:]; inquiry.Status != "warning_closed" || !slices.Equal(got, []string{"charge.dispute.closed"}) {
		t.Fatalf("inquiry: %+v, %v", inquiry, got)
	}
	before = len(b.hook.got())
	b.pay(b.session(900), "4000000000000259")
	b.flush()
	if got := b.hook.types()[before:]; !slices.Contains(got, "charge.dispute.funds_withdrawn") {
		t.Fatalf("the disputing card: %v", got)
	}
}

func TestEventsList(t *testing.T) {
	b := newBench(t)
	b.hook.answers(func(int) int { return 500 })
	b.pay(b.session(5000), "4242424242424242")
	if _, err := b.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	list := func(p *stripe.EventListParams) (out []string) {
		it := b.api.Events.List(p)
		for it.Next() {
			out = append(out, string(it.Event().Type))
		}
		if it.Err() != nil {
			t.Fatal(it.Err())
		}
		return out
	}
	missed := &stripe.EventListParams{DeliverySuccess: stripe.Bool(false), Types: []*string{stripe.String("checkout.session.completed"), stripe.String("charge.*")}}
	if got := list(missed); !slices.Equal(got, []string{"checkout.session.completed", "charge.succeeded"}) {
		t.Fatalf("missed events: %v", got)
	}
	all := &stripe.EventListParams{}
	all.Limit = stripe.Int64(2) // the iterator turns three pages
	if got := list(all); len(got) != 5 || got[0] != "checkout.session.completed" || got[4] != "payment_intent.created" {
		t.Fatalf("paged events: %v", got)
	}
	b.hook.answers(func(int) int { return 204 })
	b.flush()
	if got := list(missed); len(got) != 0 {
		t.Fatalf("missed after delivery: %v", got)
	}
}
