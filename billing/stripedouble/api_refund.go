package stripedouble

import (
	"fmt"
	"net/http"
)

func createRefund(x *tx, c call) (object, error) {
	ch, err := x.chargeOf(c.form.str("charge"), c.form.str("payment_intent"))
	if err != nil {
		return nil, err
	}
	amount := ch.Amount - ch.Refunded
	if c.form.has("amount") {
		amount = c.form.num("amount")
	}
	r, err := x.refund(ch, amount, c.form.str("reason"), c.form.pairs("metadata"))
	if err != nil {
		return nil, err
	}
	return x.renderRefund(r), nil
}

// chargeOf finds a paid charge by its own id or by its PaymentIntent's.
func (x *tx) chargeOf(chargeID, intentID string) (charge, error) {
	switch {
	case chargeID != "" && intentID != "":
		return charge{}, invalid("", "", "You may only specify one of these parameters: charge, payment_intent.")
	case intentID != "":
		p, ok := x.state.intents.get(intentID)
		if !ok {
			return charge{}, missing(http.StatusBadRequest, "payment_intent", intentID, "payment_intent")
		}
		if p.Status != "succeeded" {
			return charge{}, invalid("", "payment_intent", "This PaymentIntent (%s) does not have a successful charge to refund.", intentID)
		}
		chargeID = p.Charge
	case chargeID == "":
		return charge{}, invalid("parameter_missing", "payment_intent", "One of the following params should be provided for this request: payment_intent or charge.")
	}
	ch, ok := x.state.charges.get(chargeID)
	if !ok {
		return charge{}, missing(http.StatusBadRequest, "charge", chargeID, "charge")
	}
	if ch.Status != "succeeded" {
		return charge{}, invalid("", "charge", "Charge %s has not been paid.", chargeID)
	}
	return ch, nil
}

// refund gives money back at once. charge.refunded carries the cumulative amount
// and no list of refunds, as since Stripe's version 2022-11-15.
func (x *tx) refund(ch charge, amount int64, reason string, meta map[string]string) (refund, error) {
	left := ch.Amount - ch.Refunded
	if d, ok := x.state.disputes.get(ch.Dispute); ok && d.Withdrawn && d.Status != "won" {
		left -= d.Amount
		if left <= 0 {
			return refund{}, invalid("charge_disputed", "", "Charge %s has been charged back; cannot issue a refund.", ch.ID)
		}
	}
	switch {
	case ch.Refunded == ch.Amount:
		return refund{}, invalid("charge_already_refunded", "", "Charge %s has already been refunded.", ch.ID)
	case amount < 1:
		return refund{}, invalid("parameter_invalid_integer", "amount", "This value must be greater than or equal to 1.")
	case amount > left:
		return refund{}, invalid("", "amount", "Refund amount (%s) is greater than unrefunded amount on charge (%s)",
			display(amount, ch.Currency), display(left, ch.Currency))
	}
	r := refund{ID: newID("re_", 24), Charge: ch.ID, Intent: ch.Intent, Currency: ch.Currency, Reason: reason,
		Status: "succeeded", Amount: amount, Metadata: meta, Created: x.now.Unix()}
	x.state.refunds.put(r.ID, r)
	was := object{"amount_refunded": ch.Refunded}
	ch.Refunded += amount
	if ch.Refunded == ch.Amount {
		was["refunded"] = false
	}
	x.state.charges.put(ch.ID, ch)
	x.emit("charge.refunded", x.renderCharge(ch), was)
	return r, nil
}

// failRefund is the bank sending a refund back: the card no longer exists.
func (x *tx) failRefund(r refund) (refund, error) {
	if r.Status != "succeeded" {
		return r, fmt.Errorf("refund %s has already failed", r.ID)
	}
	r.Status, r.FailureReason = "failed", "lost_or_stolen_card"
	x.state.refunds.put(r.ID, r)
	ch, _ := x.state.charges.get(r.Charge)
	ch.Refunded -= r.Amount
	x.state.charges.put(ch.ID, ch)
	x.emit("charge.refund.updated", x.renderRefund(r), object{"status": "succeeded"})
	return r, nil
}

func listRefunds(x *tx, c call) (object, error) {
	ch, pi := c.form.str("charge"), c.form.str("payment_intent")
	if _, ok := x.state.charges.get(ch); ch != "" && !ok {
		return nil, missing(http.StatusBadRequest, "charge", ch, "charge")
	}
	if _, ok := x.state.intents.get(pi); pi != "" && !ok {
		return nil, missing(http.StatusBadRequest, "payment_intent", pi, "payment_intent")
	}
	return page(c.form, "/v1/refunds", x.state.refunds, func(r refund) bool {
		return (ch == "" || r.Charge == ch) && (pi == "" || r.Intent == pi)
	}, x.renderRefund)
}

// openDispute is the payer's bank asking for the money back. An inquiry asks
// only; a dispute takes the money at once.
func (x *tx) openDispute(ch charge, amount int64, reason string, inquiry bool) dispute {
	d := dispute{ID: newID("dp_", 24), Charge: ch.ID, Intent: ch.Intent, Currency: ch.Currency, Reason: reason,
		Status: "needs_response", Amount: amount, Withdrawn: !inquiry, Created: x.now.Unix()}
	if inquiry {
		d.Status = "warning_needs_response"
	}
	x.state.disputes.put(d.ID, d)
	ch.Dispute = d.ID
	x.state.charges.put(ch.ID, ch)
	x.emit("charge.dispute.created", x.renderDispute(d), nil)
	if d.Withdrawn {
		x.emit("charge.dispute.funds_withdrawn", x.renderDispute(d), nil)
	}
	return d
}

// closeDispute ends a dispute. A won one brings the money back.
func (x *tx) closeDispute(d dispute, won bool) (dispute, error) {
	was := d.Status
	switch {
	case was == "warning_needs_response":
		d.Status = "warning_closed"
		if !won {
			d.Status, d.Withdrawn = "lost", true
		}
	case was != "needs_response":
		return d, fmt.Errorf("dispute %s is already closed: %s", d.ID, was)
	case won:
		d.Status, d.Reinstated = "won", true
	default:
		d.Status = "lost"
	}
	x.state.disputes.put(d.ID, d)
	if was == "warning_needs_response" && d.Withdrawn {
		x.emit("charge.dispute.funds_withdrawn", x.renderDispute(d), nil)
	}
	if d.Reinstated {
		x.emit("charge.dispute.funds_reinstated", x.renderDispute(d), nil)
	}
	x.emit("charge.dispute.closed", x.renderDispute(d), object{"status": was})
	return d, nil
}
