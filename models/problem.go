package models

import (
	"errors"
	"fmt"

	"berth/money"
)

// Code names a kind of Problem; scripts rely on it.
type Code string

// The codes. The server maps each to an HTTP status.
const (
	Invalid           Code = "invalid"            // 422: Fields tell which
	NotFound          Code = "not_found"          // 404
	Unauthorized      Code = "unauthorized"       // 401
	Forbidden         Code = "forbidden"          // 403
	Conflict          Code = "conflict"           // 409: not possible in this state
	Stale             Code = "stale"              // 409: somebody was faster; read again
	KeyReused         Code = "idempotency_reused" // 409: the key came with another body
	InsufficientFunds Code = "insufficient_funds" // 402: Have, Need
	AccountFrozen     Code = "account_frozen"     // 402
	NoCapacity        Code = "no_capacity"        // 409: Alternatives
	TooMany           Code = "too_many_requests"  // 429
	Unavailable       Code = "unavailable"        // 503: a node or the payment provider is away
	PaymentFailed     Code = "payment_failed"     // 502: the payment provider refused
)

// Problem is an error meant for a person: what happened and what to do next.
// Anything else that reaches the edge is an internal error.
type Problem struct {
	Code         Code
	What         string            // what happened, a sentence
	Next         string            // what to do next, a sentence; may be empty
	Fields       map[string]string // Invalid: field → what is wrong with it
	Have, Need   *money.Amount     // InsufficientFunds
	Currency     string            // of Have and Need
	Alternatives []string          // NoCapacity: SKU ids that can be placed now
}

func (p *Problem) Error() string { return p.What }

// Is lets errors.Is compare by code: errors.Is(err, &Problem{Code: NotFound}).
func (p *Problem) Is(target error) bool {
	var t *Problem
	return errors.As(target, &t) && t.Code == p.Code
}

// HasCode tells whether err is, or wraps, a Problem with code c.
func HasCode(err error, c Code) bool {
	var p *Problem
	return errors.As(err, &p) && p.Code == c
}

// ErrStale is what the slower of two racing callers gets.
var ErrStale = &Problem{Code: Stale, What: "This changed while you were acting on it.", Next: "Look again, then repeat if it is still what you want."}

// Missing is the Problem for a noun that does not exist, or that the asker may
// not know of: the two look alike on purpose.
func Missing(noun string, id any) *Problem {
	return &Problem{Code: NotFound, What: fmt.Sprintf("There is no %s %v here.", noun, id), Next: "Check the address, or look in the list."}
}

// Fieldset gathers what is wrong with a form or body.
type Fieldset map[string]string

// Add notes the first thing wrong with a field.
func (f Fieldset) Add(field, what string) {
	if _, ok := f[field]; !ok {
		f[field] = what
	}
}

// Problem returns nil when nothing is wrong.
func (f Fieldset) Problem() error {
	if len(f) == 0 {
		return nil
	}
	return &Problem{Code: Invalid, What: "Some fields need another look.", Next: "Correct them and send again; nothing was changed.", Fields: f}
}
