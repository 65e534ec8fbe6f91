package stripedouble

import (
	"errors"
	"fmt"
	"net/http"
)

// Faults are the ways in which the double misbehaves when asked to, each one a
// thing that Stripe or the network does. The zero value is good behaviour. They
// survive a restart, so that a test may restart in the middle of them.
type Faults struct {
	Duplicate int  `json:"duplicate"`  // each event is sent this many times more, at the same moment
	Reorder   bool `json:"reorder"`    // events that are due together go newest first, and each may wait up to 200 ms
	DelayMS   int  `json:"delay_ms"`   // each event waits this long before its first attempt
	DropEvery int  `json:"drop_every"` // every n-th attempt is not sent at all; the retry brings it

	WrongSignatureEvery int `json:"wrong_signature_every"` // every n-th attempt is signed with another secret
	StaleTimestampEvery int `json:"stale_timestamp_every"` // every n-th attempt carries a signature ten minutes old

	HTTP503Next            int `json:"http_503_next"`             // the next n API requests are answered 503 and do nothing
	HTTP409Next            int `json:"http_409_next"`             // the next n API requests are answered 409 and do nothing
	TimeoutAfterCommitNext int `json:"timeout_after_commit_next"` // the next n POSTs act, and their connection ends without an answer
	DeclineNext            int `json:"decline_next"`              // the next n charges are declined, whatever the card
}

func (f Faults) check() error {
	for name, n := range map[string]int{
		"duplicate": f.Duplicate, "delay_ms": f.DelayMS, "drop_every": f.DropEvery,
		"wrong_signature_every": f.WrongSignatureEvery, "stale_timestamp_every": f.StaleTimestampEvery,
		"http_503_next": f.HTTP503Next, "http_409_next": f.HTTP409Next,
		"timeout_after_commit_next": f.TimeoutAfterCommitNext, "decline_next": f.DeclineNext,
	} {
		if n < 0 {
			return fmt.Errorf("%s must not be negative", name)
		}
	}
	if f.Duplicate > 20 {
		return errors.New("duplicate must be at most 20")
	}
	return nil
}

// tally counts what the delivery did, for tests and for people.
type tally struct {
	Attempts       int `json:"attempts"`        // tries to deliver, faults included
	Sent           int `json:"sent"`            // requests that really went out, copies included
	Delivered      int `json:"delivered"`       // events answered 2xx
	Dropped        int `json:"dropped"`         // attempts swallowed by drop_every
	WrongSignature int `json:"wrong_signature"` // attempts spoilt by wrong_signature_every
	StaleTimestamp int `json:"stale_timestamp"` // attempts spoilt by stale_timestamp_every

	// SpoiltAccepted is how often the endpoint answered 2xx to an attempt with a bad
	// signature or a stale one. Anything but zero is a fault of the endpoint.
	SpoiltAccepted int `json:"spoilt_accepted"`
}

// only is the id of the single row that faults and tallies have.
const only = "now"

// Faults gives the knobs as they stand; the "next" ones count down.
func (s *Server) Faults() Faults {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, _ := s.state.faults.get(only)
	return f
}

// SetFaults replaces all knobs. Negative numbers are an error and change nothing.
func (s *Server) SetFaults(f Faults) error {
	if err := f.check(); err != nil {
		return err
	}
	return s.update(func(x *tx) error {
		x.state.faults.put(only, f)
		return nil
	})
}

// takeRefusal uses up one ordered 503 or 409. It is a change of its own, since
// the request it refuses makes none.
func (s *Server) takeRefusal() (refusal *apiError) {
	err := s.update(func(x *tx) error {
		f, _ := x.state.faults.get(only)
		switch {
		case f.HTTP503Next > 0:
			f.HTTP503Next--
			refusal = wentWrong(http.StatusServiceUnavailable, "The test payments were told to be unavailable.")
		case f.HTTP409Next > 0:
			f.HTTP409Next--
			refusal = invalid("idempotency_key_in_use", "", "There is currently another in-progress request using this Idempotent Key (that probably means you submitted twice, and the other request is still going through).")
			refusal.status = http.StatusConflict
		default:
			return errNothing
		}
		x.state.faults.put(only, f)
		return nil
	})
	if err != nil && !errors.Is(err, errNothing) {
		return wentWrong(http.StatusInternalServerError, "The test payments could not answer: "+err.Error())
	}
	return refusal
}

// takeHangUp uses up one ordered time-out after commit.
func (x *tx) takeHangUp(method string) bool {
	f, _ := x.state.faults.get(only)
	if method == http.MethodGet || f.TimeoutAfterCommitNext == 0 {
		return false
	}
	f.TimeoutAfterCommitNext--
	x.state.faults.put(only, f)
	return true
}

// takeDecline uses up one ordered decline.
func (x *tx) takeDecline() bool {
	f, _ := x.state.faults.get(only)
	if f.DeclineNext == 0 {
		return false
	}
	f.DeclineNext--
	x.state.faults.put(only, f)
	return true
}
