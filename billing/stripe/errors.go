package stripe

import (
	"errors"
	"fmt"
	"net/http"

	sdk "github.com/stripe/stripe-go/v76"
)

// Kind is what can be done about an Error.
type Kind int

// The kinds of errors.
const (
	Away      Kind = iota // no answer, or not now: the same request may be sent again
	Declined              // the bank refused; Message is for the payer
	Refused               // the request itself is wrong: sending it again changes nothing
	KeyReused             // the idempotency key came with other bytes before
	Unknown               // there is no such object
	BadKey                // Stripe does not accept the API key
)

// Error is what Stripe answered instead of what was asked for, or that it did not
// answer.
type Error struct {
	Kind      Kind
	Doing     string // what was being done
	Message   string // Stripe's own sentence; empty without an answer
	Code      string // card_declined, resource_missing …
	RequestID string // for Stripe's support
	Err       error
}

func (e *Error) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("%s: %v", e.Doing, e.Err)
	}
	return fmt.Sprintf("%s: %s (%s, request %s)", e.Doing, e.Message, e.Code, e.RequestID)
}

func (e *Error) Unwrap() error { return e.Err }

// IsAway tells that err may pass: the same request should be sent again later.
func IsAway(err error) bool { var e *Error; return errors.As(err, &e) && e.Kind == Away }

// explain turns an error of the library into an *Error.
func explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	out := &Error{Kind: Away, Doing: doing, Err: err}
	var se *sdk.Error
	if !errors.As(err, &se) {
		return out
	}
	out.Message, out.Code, out.RequestID = se.Msg, string(se.Code), se.RequestID
	switch status := se.HTTPStatusCode; {
	case se.Type == sdk.ErrorTypeIdempotency && status == http.StatusBadRequest:
		out.Kind = KeyReused
	case se.Type == sdk.ErrorTypeCard:
		out.Kind = Declined
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		out.Kind = BadKey
	case status == http.StatusNotFound || se.Code == sdk.ErrorCodeResourceMissing:
		out.Kind = Unknown
	case status == http.StatusConflict || status == http.StatusTooManyRequests || status >= 500:
		out.Kind = Away
	default:
		out.Kind = Refused
	}
	return out
}
