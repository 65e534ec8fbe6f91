package stripedouble

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v76"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// doubleState is what GET /_double/state says.
type doubleState struct {
	Objects    map[string]int   `json:"objects"`
	Events     map[string]int   `json:"events"`
	Pending    []waitingEvent   `json:"pending"`
	Deliveries tally            `json:"deliveries"`
	Paid       map[string]int64 `json:"paid"`
	Refunded   map[string]int64 `json:"refunded"`
}

func (b *bench) readState() (out doubleState) {
	b.t.Helper()
	if got := b.control("GET", "state", nil, &out); got != 200 {
		b.t.Fatalf("state: %d", got)
	}
	return out
}

// state is the part that a refused request must not change, as one comparable text.
func (b *bench) state() string {
	s := b.readState()
	return fmt.Sprint(s.Objects, s.Events, s.Paid, s.Refunded)
}

func (b *bench) faults(f Faults) {
	b.t.Helper()
	var got Faults
	if status := b.control("PUT", "faults", f, &got); status != 200 || got != f {
		b.t.Fatalf("faults: %d %+v", status, got)
	}
}

// inOrder is what two payments say, in the order it happened.
var inOrder = slices.Repeat([]string{
	"payment_intent.created", "payment_method.attached", "charge.succeeded", "payment_intent.succeeded", "checkout.session.completed",
}, 2)

// Whatever a delivery knob spoils, in the end every event has arrived, each as
// often as the knob says.
func TestDeliveryFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		faults Faults
		check  func(t *testing.T, b *bench, s doubleState)
	}{
		"none": {Faults{}, func(t *testing.T, b *bench, s doubleState) {
			if s.Deliveries.Sent != 10 || !slices.Equal(b.hook.types(), inOrder) {
				t.Errorf("sent %d: %v", s.Deliveries.Sent, b.hook.types())
			}
		}},
		"duplicate": {Faults{Duplicate: 2}, func(t *testing.T, b *bench, s doubleState) {
			if len(b.hook.got()) != 30 {
				t.Errorf("%d deliveries, want each of 10 three times", len(b.hook.got()))
			}
		}},
		"reorder": {Faults{Reorder: true}, func(t *testing.T, b *bench, s doubleState) {
			if slices.Equal(b.hook.types(), inOrder) {
				t.Errorf("order unchanged: %v", b.hook.types())
			}
		}},
		"drop": {Faults{DropEvery: 3}, func(t *testing.T, b *bench, s doubleState) {
			if s.Deliveries.Dropped == 0 || s.Deliveries.Attempts != 10+s.Deliveries.Dropped {
				t.Errorf("%+v", s.Deliveries)
			}
		}},
		"wrong signature": {Faults{WrongSignatureEvery: 2}, func(t *testing.T, b *bench, s doubleState) {
			if s.Deliveries.WrongSignature == 0 || len(b.hook.refused) != s.Deliveries.WrongSignature || s.Deliveries.SpoiltAccepted != 0 {
				t.Errorf("%+v, refused %v", s.Deliveries, b.hook.refused)
			}
		}},
		"stale timestamp": {Faults{StaleTimestampEvery: 2}, func(t *testing.T, b *bench, s doubleState) {
			if s.Deliveries.StaleTimestamp == 0 || len(b.hook.refused) != s.Deliveries.StaleTimestamp || !strings.Contains(b.hook.refused[0], "timestamp") {
				t.Errorf("%+v, refused %v", s.Deliveries, b.hook.refused)
			}
		}},
		"all at once": {Faults{Duplicate: 1, Reorder: true, DelayMS: 5, DropEvery: 3, WrongSignatureEvery: 4, StaleTimestampEvery: 5}, func(t *testing.T, b *bench, s doubleState) {}},
	} {
		t.Run(name, func(t *testing.T) {
			for how, deliver := range map[string]func(b *bench){
				"flushed": func(b *bench) { b.flush() },
				"by run": func(b *bench) {
					b.run()
					b.hook.await(b.t, func(es []stripe.Event) bool { return distinct(es) == 10 })
					b.flush() // what is still on its way has been recorded after this
				},
			} {
				t.Run(how, func(t *testing.T) {
					b := newBench(t)
					b.faults(tc.faults)
					b.pay(b.session(5000), "4242424242424242")
					b.pay(b.session(5000), "4242424242424242")
					deliver(b)
					if n := distinct(b.hook.got()); n != 10 {
						t.Fatalf("%d different events arrived, want 10", n)
					}
					s := b.readState()
					if s.Deliveries.Delivered != 10 || len(s.Pending) != 0 {
						t.Fatalf("%+v", s)
					}
					tc.check(t, b, s)
				})
			}
		})
	}
}

func distinct(es []stripe.Event) int {
	ids := map[string]bool{}
	for _, e := range es {
		ids[e.ID] = true
	}
	return len(ids)
}

func TestRetryBacksOffAndGivesUp(t *testing.T) {
	now := newClock()
	b := newBench(t, func(c *Config) { c.Clock, c.RetryMin, c.RetryMax = now.now, time.Minute, 5*time.Minute })
	b.hook.answers(func(int) int { return 503 })
	if _, err := b.api.PaymentIntents.New(&stripe.PaymentIntentParams{Amount: stripe.Int64(500), Currency: stripe.String("usd")}); err != nil {
		t.Fatal(err)
	}
	attempts := func() int { // one round at this moment
		if err := b.round(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		return b.readState().Deliveries.Attempts
	}
	// Tries at 0, 1, 3, 7 minutes, then every five.
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {59 * time.Second, 1}, {time.Second, 2}, {time.Minute, 2}, {time.Minute, 3}, {4 * time.Minute, 4}, {5 * time.Minute, 5}, {5 * time.Minute, 6}} {
		now.add(step.after)
		if got := attempts(); got != step.want {
			t.Fatalf("after %s more: %d attempts, want %d", step.after, got, step.want)
		}
	}
	if s := b.readState(); len(s.Pending) != 1 || s.Pending[0].LastTry != "503 Service Unavailable" {
		t.Fatalf("pending: %+v", s.Pending)
	}
	now.add(72 * time.Hour)
	attempts()
	if s := b.readState(); len(s.Pending) != 0 {
		t.Fatalf("still tried after three days: %+v", s.Pending)
	}
	var again struct{ ID string }
	b.hook.answers(func(int) int { return 200 })
	missed := b.api.Events.List(&stripe.EventListParams{DeliverySuccess: stripe.Bool(false)})
	if !missed.Next() {
		t.Fatal("a given up event is not among the missed ones")
	}
	if got := b.control("POST", "events/"+missed.Event().ID+"/resend", nil, &again); got != 200 || again.ID != missed.Event().ID {
		t.Fatalf("resend: %d", got)
	}
	b.flush()
	b.hook.last(t, "payment_intent.created")
}

func TestEventsWaitForAnAddress(t *testing.T) {
	b := newBench(t, func(c *Config) { c.WebhookURL = "" })
	b.run()
	b.pay(b.session(5000), "4242424242424242")
	if s := b.readState(); len(s.Pending) != 5 || s.Deliveries.Attempts != 0 {
		t.Fatalf("without an address: %+v", s)
	}
	if err := b.SetWebhookURL(b.hook.url); err != nil {
		t.Fatal(err)
	}
	b.hook.await(t, func(es []stripe.Event) bool { return len(es) == 5 })
}

func TestRequestFaults(t *testing.T) {
	b := newBench(t)
	patient := newClient(b.web.URL, 2)
	for name, f := range map[string]Faults{"503": {HTTP503Next: 1}, "409": {HTTP409Next: 1}, "time-out after commit": {TimeoutAfterCommitNext: 1}} {
		t.Run(name, func(t *testing.T) {
			before := b.readState().Objects["customer"]
			b.faults(f)
			p := &stripe.CustomerParams{Name: stripe.String("Ada")}
			p.SetIdempotencyKey("fault:" + name)
			first, err := patient.Customers.New(p) // retried by the library under the same key
			if err != nil {
				t.Fatal(err)
			}
			again, err := patient.Customers.New(p)
			if err != nil || again.ID != first.ID {
				t.Fatalf("%v, %v", again, err)
			}
			if got := b.readState().Objects["customer"]; got != before+1 {
				t.Fatalf("%d customers were made, want 1", got-before)
			}
			if b.Faults() != (Faults{}) {
				t.Fatalf("the knob was not used up: %+v", b.Faults())
			}
		})
	}
	t.Run("seen without retries", func(t *testing.T) {
		b.faults(Faults{HTTP503Next: 1, HTTP409Next: 1, TimeoutAfterCommitNext: 1})
		var se *stripe.Error
		if _, err := b.api.Balance.Get(nil); !errors.As(err, &se) || se.HTTPStatusCode != 503 {
			t.Fatalf("%v", err)
		}
		if _, err := b.api.Balance.Get(nil); !errors.As(err, &se) || se.HTTPStatusCode != 409 {
			t.Fatalf("%v", err)
		}
		if _, err := b.api.Balance.Get(nil); err != nil { // a GET commits nothing
			t.Fatalf("%v", err)
		}
		before := b.readState().Objects["customer"]
		if _, err := b.api.Customers.New(&stripe.CustomerParams{}); err == nil || errors.As(err, new(*stripe.Error)) {
			t.Fatalf("an answer came back: %v", err)
		}
		if got := b.readState().Objects["customer"]; got != before+1 {
			t.Fatal("the request that timed out did nothing")
		}
	})
	t.Run("decline", func(t *testing.T) {
		customer := b.customer().ID
		card := b.save(customer, "4242424242424242")
		b.faults(Faults{DeclineNext: 2})
		var se *stripe.Error
		if _, err := b.api.PaymentIntents.New(offSession(customer, card, 500)); !errors.As(err, &se) || se.HTTPStatusCode != 402 {
			t.Fatalf("%v", err)
		}
		s := b.session(5000)
		if a := b.post(s.URL, "card", "4242424242424242"); a.status != http.StatusPaymentRequired {
			t.Fatalf("%d", a.status)
		}
		b.pay(s, "4242424242424242")
	})
	t.Run("bad knobs", func(t *testing.T) {
		for _, in := range []any{map[string]int{"duplicate": -1}, map[string]int{"dupicate": 1}, map[string]string{"duplicate": "x"}, []int{1}} {
			if got := b.control("PUT", "faults", in, nil); got != 400 {
				t.Errorf("%v: %d", in, got)
			}
		}
	})
	if kinds := b.hook.types(); slices.Contains(kinds, "") {
		t.Fatal(kinds)
	}
}
