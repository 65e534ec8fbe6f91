package stripe

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	sdk "github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/webhook"
)

// tolerance is how far a webhook's timestamp may be from now, either way. The
// library checks the past only.
const tolerance = 300 * time.Second

// ErrSignature says that a webhook is not from our Stripe: refuse it with 400.
var ErrSignature = errors.New("the webhook's signature does not hold")

// Event is something that happened at Stripe.
type Event struct {
	ID, Type string
	ObjectID string
	Created  time.Time
	Object   json.RawMessage // as it was when the event was made
}

// VerifyWebhook checks body against the Stripe-Signature header at the given
// time and reads the event. It fails with ErrSignature, also for a timestamp more
// than five minutes away, and for an event of the other mode (live, test): such
// a one must never touch our wallets.
func (g *Gateway) VerifyWebhook(body []byte, signature string, at time.Time) (Event, error) {
	if err := checkTime(signature, at); err != nil {
		return Event{}, err
	}
	var last error
	for _, secret := range g.secrets {
		ev, err := webhook.ConstructEventWithOptions(body, signature, secret, webhook.ConstructEventOptions{IgnoreTolerance: true})
		if err != nil {
			// Another version is not another secret: say so.
			if last == nil || !errors.Is(err, webhook.ErrNoValidSignature) {
				last = err
			}
			continue
		}
		if ev.Livemode != g.live {
			return Event{}, fmt.Errorf("%w: a live event for a test key, or the other way round; check which endpoint sends here", ErrSignature)
		}
		return event(ev)
	}
	return Event{}, fmt.Errorf("%w: %w (the endpoint must be created with api_version=%s)", ErrSignature, last, APIVersion)
}

// checkTime reads t=… of the header. Every one of them counts: the library signs
// with the last, so a fresh first one would let an old webhook through.
func checkTime(signature string, at time.Time) error {
	seen := false
	for part := range strings.SplitSeq(signature, ",") {
		value, ok := strings.CutPrefix(strings.TrimSpace(part), "t=")
		if !ok {
			continue
		}
		unix, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return fmt.Errorf("%w: its timestamp is not a number", ErrSignature)
		}
		if away := at.Sub(time.Unix(unix, 0)).Abs(); away > tolerance {
			return fmt.Errorf("%w: its timestamp is %s away from now", ErrSignature, away.Round(time.Second))
		}
		seen = true
	}
	if !seen {
		return fmt.Errorf("%w: the header has no timestamp", ErrSignature)
	}
	return nil
}

// ReadEvent reads a body that was verified before, when it came.
func ReadEvent(body []byte) (Event, error) {
	var ev sdk.Event
	if err := json.Unmarshal(body, &ev); err != nil {
		return Event{}, fmt.Errorf("read a stored Stripe event: %w", err)
	}
	return event(ev)
}

func event(ev sdk.Event) (Event, error) {
	if ev.ID == "" || ev.Data == nil || len(ev.Data.Raw) == 0 {
		return Event{}, errors.New("the Stripe event has no id or no object")
	}
	out := Event{ID: ev.ID, Type: string(ev.Type), Created: time.Unix(ev.Created, 0).UTC(), Object: ev.Data.Raw}
	out.ObjectID, _ = ev.Data.Object["id"].(string)
	return out, nil
}

// Checkout reads the object of a checkout.session.* event.
func (e Event) Checkout() (Checkout, error) {
	var s sdk.CheckoutSession
	if err := e.read(&s); err != nil {
		return Checkout{}, err
	}
	return checkout(&s), nil
}

// Intent reads the object of a payment_intent.* event.
func (e Event) Intent() (Intent, error) {
	var p sdk.PaymentIntent
	if err := e.read(&p); err != nil {
		return Intent{}, err
	}
	return intent(&p), nil
}

// Charge is a payment's charge, as far as refunds need it.
type Charge struct {
	ID, Intent string
}

// Charge reads the object of a charge.* event.
func (e Event) Charge() (Charge, error) {
	var c sdk.Charge
	if err := e.read(&c); err != nil {
		return Charge{}, err
	}
	out := Charge{ID: c.ID}
	if c.PaymentIntent != nil {
		out.Intent = c.PaymentIntent.ID
	}
	return out, nil
}

// Refund reads the object of a charge.refund.updated event.
func (e Event) Refund() (Refund, error) {
	var r sdk.Refund
	if err := e.read(&r); err != nil {
		return Refund{}, err
	}
	return refund(&r), nil
}

// States of a dispute that matter.
const (
	DisputeWon    = "won"
	DisputeClosed = "warning_closed" // an inquiry that came to nothing
)

// Dispute is a payment that its payer's bank wants back.
type Dispute struct {
	ID, Status     string
	Charge, Intent string
	Amount         int64
	Currency       string
}

// Inquiry tells that the bank only asks: no money moves.
func (d Dispute) Inquiry() bool { return strings.HasPrefix(d.Status, "warning_") }

// Dispute reads the object of a charge.dispute.* event.
func (e Event) Dispute() (Dispute, error) {
	var d sdk.Dispute
	if err := e.read(&d); err != nil {
		return Dispute{}, err
	}
	out := Dispute{ID: d.ID, Status: string(d.Status), Amount: d.Amount, Currency: string(d.Currency)}
	if d.Charge != nil {
		out.Charge = d.Charge.ID
	}
	if d.PaymentIntent != nil {
		out.Intent = d.PaymentIntent.ID
	}
	return out, nil
}

func (e Event) read(into any) error {
	if err := json.Unmarshal(e.Object, into); err != nil {
		return fmt.Errorf("read the object of %s %s: %w", e.Type, e.ID, err)
	}
	return nil
}
