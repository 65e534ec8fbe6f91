package stripedouble

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
)

// The control API is what Stripe's dashboard, the payer's bank and bad luck do.
// It takes JSON and the same key as the API; its errors are Stripe's.

// control wraps one control request. in is what the body is decoded into, fresh
// for each request; an empty body leaves it at zero.
func control[T any](s *Server, do func(r *http.Request, in T) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := s.authorize(r); err != nil {
			writeJSON(w, err.status, errorBody(err))
			return
		}
		var in T
		body := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
		body.DisallowUnknownFields()
		if err := body.Decode(&in); err != nil && !errors.Is(err, io.EOF) {
			bad := invalid("", "", "The body is not the JSON this request takes: %s", err)
			writeJSON(w, bad.status, errorBody(bad))
			return
		}
		out, err := do(r, in)
		var bad *apiError
		switch {
		case err == nil:
			writeJSON(w, http.StatusOK, mustJSON(out))
		case errors.As(err, &bad):
			writeJSON(w, bad.status, errorBody(bad))
		default:
			bad = invalid("", "", "%s", err)
			writeJSON(w, bad.status, errorBody(bad))
		}
	}
}

// paymentChoice names a charge, itself or by its PaymentIntent.
type paymentChoice struct {
	Charge        string `json:"charge"`
	PaymentIntent string `json:"payment_intent"`
	Amount        int64  `json:"amount"` // zero: all that is left
	Reason        string `json:"reason"`
	Inquiry       bool   `json:"inquiry"` // disputes only: the bank asks and takes no money
}

func (s *Server) controlRefund(_ *http.Request, in paymentChoice) (out any, err error) {
	err = s.update(func(x *tx) error {
		ch, err := x.chargeOf(in.Charge, in.PaymentIntent)
		if err != nil {
			return err
		}
		if in.Amount == 0 {
			in.Amount = ch.Amount - ch.Refunded
		}
		r, err := x.refund(ch, in.Amount, in.Reason, nil)
		out = x.renderRefund(r)
		return err
	})
	return out, err
}

func (s *Server) controlFailRefund(r *http.Request, _ struct{}) (out any, err error) {
	err = s.update(func(x *tx) error {
		re, ok := x.state.refunds.get(r.PathValue("id"))
		if !ok {
			return missing(http.StatusNotFound, "refund", r.PathValue("id"), "id")
		}
		re, err := x.failRefund(re)
		out = x.renderRefund(re)
		return err
	})
	return out, err
}

var disputeReasons = []string{"bank_cannot_process", "check_returned", "credit_not_processed", "customer_initiated",
	"debit_not_authorized", "duplicate", "fraudulent", "general", "incorrect_account_details", "insufficient_funds",
	"product_not_received", "product_unacceptable", "subscription_canceled", "unrecognized"}

func (s *Server) controlDispute(_ *http.Request, in paymentChoice) (out any, err error) {
	err = s.update(func(x *tx) error {
		ch, err := x.chargeOf(in.Charge, in.PaymentIntent)
		if err != nil {
			return err
		}
		left := ch.Amount - ch.Refunded
		if in.Amount == 0 {
			in.Amount = left
		}
		if in.Reason == "" {
			in.Reason = "fraudulent"
		}
		switch {
		case ch.Dispute != "":
			return invalid("", "charge", "Charge %s is already disputed: %s.", ch.ID, ch.Dispute)
		case in.Amount < 1 || in.Amount > left:
			return invalid("", "amount", "A dispute of this charge must be between 1 and %d.", left)
		case !slices.Contains(disputeReasons, in.Reason):
			return invalid("", "reason", "Stripe knows no dispute reason %q.", in.Reason)
		}
		out = x.renderDispute(x.openDispute(ch, in.Amount, in.Reason, in.Inquiry))
		return nil
	})
	return out, err
}

func (s *Server) controlCloseDispute(won bool) func(*http.Request, struct{}) (any, error) {
	return func(r *http.Request, _ struct{}) (out any, err error) {
		err = s.update(func(x *tx) error {
			d, ok := x.state.disputes.get(r.PathValue("id"))
			if !ok {
				return missing(http.StatusNotFound, "dispute", r.PathValue("id"), "id")
			}
			d, err := x.closeDispute(d, won)
			out = x.renderDispute(d)
			return err
		})
		return out, err
	}
}

// settleChoice overrides what the payer chose on the page; empty keeps it.
type settleChoice struct {
	Result string `json:"result"` // succeeded or failed
}

func (s *Server) controlSettle(r *http.Request, in settleChoice) (out any, err error) {
	id := r.PathValue("id")
	err = s.update(func(x *tx) error {
		ses, ok := x.state.sessions.get(id)
		switch {
		case !ok:
			return missing(http.StatusNotFound, "checkout.session", id, "id")
		case ses.Settle == nil:
			return invalid("", "", "Session %s has no bank debit on its way: its status is %s, its payment %s.", id, ses.Status, ses.PaymentStatus)
		}
		succeed := ses.Settle.Succeed
		switch in.Result {
		case "":
		case "succeeded":
			succeed = true
		case "failed":
			succeed = false
		default:
			return invalid("", "result", "result must be succeeded or failed.")
		}
		if err := x.settle(ses, succeed); err != nil {
			return err
		}
		ses, _ = x.state.sessions.get(id)
		out = x.renderSession(ses)
		return nil
	})
	return out, err
}

// controlResend sends an event again that was delivered before, as the
// dashboard's "resend" does.
func (s *Server) controlResend(r *http.Request, _ struct{}) (out any, err error) {
	err = s.update(func(x *tx) error {
		e, ok := x.state.events.get(r.PathValue("id"))
		if !ok {
			return missing(http.StatusNotFound, "event", r.PathValue("id"), "id")
		}
		e.Pending, e.Delivered, e.NextAt = true, false, x.now
		x.state.events.put(e.ID, e)
		out = x.renderEvent(e)
		return nil
	})
	return out, err
}

func (s *Server) controlSetFaults(_ *http.Request, in Faults) (any, error) {
	if err := s.SetFaults(in); err != nil {
		return nil, err
	}
	return s.Faults(), nil
}

// waitingEvent is one line of the state's list of undelivered events.
type waitingEvent struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Attempts int    `json:"attempts"`
	LastTry  string `json:"last_try"`
}

func (s *Server) controlState(*http.Request, struct{}) (out any, err error) {
	err = s.update(func(x *tx) error { // update runs the timers, so nothing due is missing
		out = x.summary()
		return errNothing
	})
	if errors.Is(err, errNothing) {
		err = nil
	}
	return out, err
}

func (x *tx) summary() object {
	counts := map[string]int{}
	for _, t := range []anyTable{x.state.customers, x.state.sessions, x.state.setups, x.state.intents, x.state.charges,
		x.state.refunds, x.state.disputes, x.state.methods, x.state.events} {
		counts[t.tableName()] = t.size()
	}
	byType := map[string]int{}
	waiting := []waitingEvent{}
	for _, id := range x.state.events.order {
		e := x.state.events.rows[id]
		byType[e.Type]++
		if e.Pending {
			waiting = append(waiting, waitingEvent{e.ID, e.Type, e.Attempts, e.LastTry})
		}
	}
	paid := map[string]int64{}
	for _, c := range x.state.charges.rows {
		if c.Status == "succeeded" {
			paid[c.Currency] += c.Amount
		}
	}
	back := map[string]int64{}
	for _, r := range x.state.refunds.rows {
		if r.Status == "succeeded" {
			back[r.Currency] += r.Amount
		}
	}
	t, _ := x.state.tallies.get(only)
	return object{"objects": counts, "events": byType, "pending": waiting, "deliveries": t,
		"paid": paid, "refunded": back, "webhook_url": x.webhookURL}
}
