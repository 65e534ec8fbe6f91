package stripedouble

import "net/http"

// createIntent is POST /v1/payment_intents. Confirmed ones are off-session only:
// what needs the payer goes through Checkout.
func createIntent(x *tx, c call) (object, error) {
	f := c.form
	p := intent{
		ID: newID("pi_", 24), Status: "requires_payment_method", Amount: f.num("amount"), Currency: f.str("currency"),
		Customer: f.str("customer"), Description: f.str("description"), Metadata: f.pairs("metadata"),
		MethodTypes: f.list("payment_method_types"), Created: x.now.Unix(),
	}
	if err := checkAmount("amount", p.Amount, p.Currency); err != nil {
		return nil, err
	}
	if len(p.MethodTypes) == 0 {
		p.MethodTypes = []string{"card"}
	}
	if _, ok := x.state.customers.get(p.Customer); p.Customer != "" && !ok {
		return nil, missing(http.StatusBadRequest, "customer", p.Customer, "customer")
	}
	m, err := x.methodFor(p, f.str("payment_method"))
	if err != nil {
		return nil, err
	}
	if f.yes("off_session") && !f.yes("confirm") {
		return nil, invalid("", "off_session", "You cannot use `off_session` without `confirm=true`.")
	}
	if f.yes("confirm") {
		switch {
		case m.ID == "":
			return nil, invalid("payment_intent_unexpected_state", "", "You cannot confirm this PaymentIntent because it's missing a payment method. Add payment_method to the request.")
		case !f.yes("off_session"):
			return nil, invalid("", "off_session", "The test payments confirm a PaymentIntent only with off_session=true. A payment that may need its payer goes through a Checkout Session.")
		}
	}
	p.Secret = p.ID + newID("_secret_", 25)
	if m.ID != "" {
		p.Status, p.Method = "requires_confirmation", m.ID
	}
	x.state.intents.put(p.ID, p)
	x.emit("payment_intent.created", x.renderIntent(p), nil)
	if !f.yes("confirm") {
		return x.renderIntent(p), nil
	}
	return x.confirmOffSession(p, m)
}

// methodFor checks that a payment may use the method: it must be of an accepted
// type and belong to the customer.
func (x *tx) methodFor(p intent, id string) (method, error) {
	if id == "" {
		return method{}, nil
	}
	m, ok := x.state.methods.get(id)
	if !ok {
		return method{}, missing(http.StatusBadRequest, "PaymentMethod", id, "payment_method")
	}
	switch {
	case m.Type != "card" || p.MethodTypes[0] != "card" && len(p.MethodTypes) == 1:
		return method{}, invalid("", "payment_method", "The PaymentMethod provided (%s) is not allowed for this PaymentIntent; the test payments charge saved cards only.", m.Type)
	case m.Customer == "":
		return method{}, invalid("payment_method_unexpected_state", "payment_method", "The provided PaymentMethod was never attached to a Customer, or was detached. It may not be used again.")
	case p.Customer == "":
		return method{}, invalid("", "payment_method", "The payment method you provided is attached to a customer, so you must provide the customer in the request.")
	case m.Customer != p.Customer:
		return method{}, invalid("", "payment_method", "The customer does not have a payment method with the ID %s. The payment method must be attached to the customer.", id)
	}
	return m, nil
}

// confirmOffSession charges a saved card with nobody present.
func (x *tx) confirmOffSession(p intent, m method) (object, error) {
	card, _ := findCard(m.Card)
	refusal := card.Decline
	if card.Auth == authAlways {
		refusal = "authentication_required"
	}
	if x.takeDecline() {
		refusal = "generic_decline"
	}
	if refusal == "" {
		return x.renderIntent(x.succeed(p)), nil
	}
	p = x.fail(p, declines[refusal])
	err := cardError(*p.LastError)
	err.PaymentIntent = x.renderIntent(p)
	err.PaymentMethod = x.renderMethod(m)
	return nil, err
}

func cancelIntent(x *tx, c call) (object, error) {
	p, ok := x.state.intents.get(c.id)
	if !ok {
		return nil, missing(http.StatusNotFound, "payment_intent", c.id, "intent")
	}
	switch {
	case p.Session != "":
		return nil, invalid("", "", "You cannot cancel this PaymentIntent because it was created by a Checkout Session. Expire the session instead.")
	case !cancelable(p):
		return nil, invalid("payment_intent_unexpected_state", "", "You cannot cancel this PaymentIntent because it has a status of %s.", p.Status)
	}
	return x.renderIntent(x.cancel(p, c.form.str("cancellation_reason"))), nil
}

// cancelable says whether a payment can still be given up. A bank debit on its
// way cannot.
func cancelable(p intent) bool {
	return p.Status == "requires_payment_method" || p.Status == "requires_confirmation" || p.Status == "requires_action"
}

func (x *tx) cancel(p intent, reason string) intent {
	p.Status, p.CanceledAt, p.CancelReason, p.NextURL = "canceled", x.now.Unix(), reason, ""
	x.state.intents.put(p.ID, p)
	x.emit("payment_intent.canceled", x.renderIntent(p), nil)
	return p
}

// succeed takes the money: the pending charge of a bank debit, or a new one.
func (x *tx) succeed(p intent) intent {
	ch, pending := x.state.charges.get(p.Charge)
	if !pending || ch.Status != "pending" {
		ch = x.newCharge(p)
	}
	ch.Status = "succeeded"
	x.state.charges.put(ch.ID, ch)
	p.Status, p.Received, p.Charge, p.LastError, p.NextURL = "succeeded", p.Amount, ch.ID, nil, ""
	x.state.intents.put(p.ID, p)
	x.emit("charge.succeeded", x.renderCharge(ch), nil)
	x.emit("payment_intent.succeeded", x.renderIntent(p), nil)
	if m, _ := x.state.methods.get(p.Method); m.Type == "card" {
		if card, _ := findCard(m.Card); card.Disputes {
			x.openDispute(ch, ch.Amount, "fraudulent", false)
		}
	}
	return p
}

// fail records a charge that did not go through. The payment stays usable with
// another method, as Stripe's does.
func (x *tx) fail(p intent, f failure) intent {
	ch, pending := x.state.charges.get(p.Charge)
	if !pending || ch.Status != "pending" {
		ch = x.newCharge(p)
	}
	f.Charge, f.Method = ch.ID, p.Method
	ch.Status, ch.Failure = "failed", &f
	x.state.charges.put(ch.ID, ch)
	p.Charge = ch.ID
	x.emit("charge.failed", x.renderCharge(ch), nil)
	return x.refuse(p, f)
}

// refuse sends a payment back to its start without a charge: authentication
// failed before any bank was asked.
func (x *tx) refuse(p intent, f failure) intent {
	f.Method = p.Method
	p.Status, p.LastError, p.Method, p.NextURL = "requires_payment_method", &f, "", ""
	x.state.intents.put(p.ID, p)
	x.emit("payment_intent.payment_failed", x.renderIntent(p), nil)
	return p
}

func (x *tx) newCharge(p intent) charge {
	return charge{
		ID: newID("ch_", 24), Intent: p.ID, Status: "pending", Currency: p.Currency, Amount: p.Amount,
		Customer: p.Customer, Method: p.Method, Description: p.Description, Metadata: p.Metadata, Created: x.now.Unix(),
	}
}
