package stripedouble

import (
	"fmt"
	"net/http"
	"time"
)

func createSession(x *tx, c call) (object, error) {
	f := c.form
	s := session{
		ID: newID("cs_test_", 58), Mode: f.str("mode"), Status: "open", PaymentStatus: "unpaid",
		Customer: f.str("customer"), CustomerEmail: f.str("customer_email"), ClientReference: f.str("client_reference_id"),
		SuccessURL: f.str("success_url"), CancelURL: f.str("cancel_url"), Currency: f.str("currency"),
		MethodTypes: f.list("payment_method_types"), Metadata: f.pairs("metadata"),
		Created: x.now.Unix(), ExpiresAt: x.now.Add(24 * time.Hour).Unix(),
	}
	if s.Customer != "" {
		if s.CustomerEmail != "" {
			return nil, invalid("", "customer_email", "You may only specify one of these parameters: customer, customer_email.")
		}
		if _, ok := x.state.customers.get(s.Customer); !ok {
			return nil, missing(http.StatusBadRequest, "customer", s.Customer, "customer")
		}
	}
	if f.has("expires_at") {
		s.ExpiresAt = f.num("expires_at")
		if life := time.Duration(s.ExpiresAt-s.Created) * time.Second; life < 30*time.Minute || life > 24*time.Hour {
			return nil, invalid("", "expires_at", "The `expires_at` timestamp must be between 30 minutes and 24 hours from Checkout Session creation.")
		}
	}
	switch s.Mode {
	case "payment":
		if err := s.readPayment(f); err != nil {
			return nil, err
		}
	case "setup":
		if err := s.readSetup(f); err != nil {
			return nil, err
		}
		si := setupIntent{
			ID: newID("seti_", 24), Status: "requires_payment_method", Customer: s.Customer, Session: s.ID,
			Description: f.str("setup_intent_data[description]"), Metadata: f.pairs("setup_intent_data[metadata]"),
			MethodTypes: s.MethodTypes, Created: s.Created,
		}
		si.Secret = si.ID + newID("_secret_", 24)
		s.SetupIntent, s.PaymentStatus = si.ID, "no_payment_required"
		x.state.setups.put(si.ID, si)
	default:
		return nil, invalid("", "mode", "The test payments know the modes payment and setup.")
	}
	x.state.sessions.put(s.ID, s)
	return x.renderSession(s), nil
}

// readPayment fills in what a payment session needs: lines, sum, methods.
func (s *session) readPayment(f form) error {
	for _, i := range f.indexes("line_items") {
		at := "line_items[" + i + "]"
		for _, need := range []string{"[quantity]", "[price_data][currency]", "[price_data][unit_amount]", "[price_data][product_data][name]"} {
			if !f.has(at + need) {
				return missingParam(at + need)
			}
		}
		l := line{Name: f.str(at + "[price_data][product_data][name]"), Description: f.str(at + "[price_data][product_data][description]"),
			UnitAmount: f.num(at + "[price_data][unit_amount]"), Quantity: f.num(at + "[quantity]")}
		if l.Quantity < 1 || l.Quantity > 999_999 {
			return invalid("parameter_invalid_integer", at+"[quantity]", "This value must be between 1 and 999999.")
		}
		if l.UnitAmount < 0 || l.UnitAmount > 99_999_999 {
			return invalid("parameter_invalid_integer", at+"[price_data][unit_amount]", "Invalid non-negative integer, or more than 99999999.")
		}
		code := f.str(at + "[price_data][currency]")
		if s.Currency != "" && s.Currency != code {
			return invalid("", at+"[price_data][currency]", "The price specified has the currency %s, the session or another line has %s; they must match.", code, s.Currency)
		}
		s.Currency = code
		s.AmountTotal += l.UnitAmount * l.Quantity
		s.Lines = append(s.Lines, l)
	}
	if len(s.Lines) == 0 {
		return missingParam("line_items")
	}
	if len(s.Lines) > 100 {
		return invalid("", "line_items", "A Checkout Session takes at most 100 line items.")
	}
	if err := checkAmount("line_items", s.AmountTotal, s.Currency); err != nil {
		if err.Code == "amount_too_small" {
			err.Message = "The Checkout Session's total amount due must add up to at least " + display(minimums[s.Currency].least, s.Currency)
		}
		return err
	}
	if len(f.indexes("setup_intent_data")) > 0 {
		return invalid("", "setup_intent_data", "You can not pass `setup_intent_data` in `payment` mode.")
	}
	if len(s.MethodTypes) == 0 { // as an account that has switched bank debits on
		s.MethodTypes = []string{"card"}
		if kind := debitKind(s.Currency); kind != "" {
			s.MethodTypes = append(s.MethodTypes, kind)
		}
	}
	for _, kind := range s.MethodTypes {
		if kind != "card" && kind != debitKind(s.Currency) {
			return invalid("", "payment_method_types", "The payment method type provided: %s is invalid for the currency %s.", kind, s.Currency)
		}
	}
	s.FutureUsage = f.str("payment_intent_data[setup_future_usage]")
	s.IntentDescription = f.str("payment_intent_data[description]")
	s.IntentMetadata = f.pairs("payment_intent_data[metadata]")
	return nil
}

// debitKind is the bank debit of a currency; empty when there is none.
func debitKind(code string) string {
	return map[string]string{"usd": "us_bank_account", "eur": "sepa_debit"}[code]
}

func (s *session) readSetup(f form) error {
	for _, other := range []string{"line_items", "payment_intent_data"} {
		if len(f.indexes(other)) > 0 {
			return invalid("", other, "You can not pass `%s` in `setup` mode.", other)
		}
	}
	if len(s.MethodTypes) == 0 {
		if s.Currency == "" {
			return missingParam("currency")
		}
		s.MethodTypes = []string{"card"}
	}
	for _, kind := range s.MethodTypes {
		if kind != "card" {
			return invalid("", "payment_method_types", "The test payments save cards only, not %s.", kind)
		}
	}
	return nil
}

func expireSession(x *tx, c call) (object, error) {
	s, ok := x.state.sessions.get(c.id)
	if !ok {
		return nil, missing(http.StatusNotFound, "checkout.session", c.id, "session")
	}
	if s.Status != "open" {
		return nil, invalid("", "", "Only Checkout Sessions with a status in [\"open\"] can be expired. This Checkout Session has a status of %s.", s.Status)
	}
	return x.renderSession(x.expire(s)), nil
}

// expire ends an open session; a payment begun in it is given up.
func (x *tx) expire(s session) session {
	s.Status = "expired"
	x.state.sessions.put(s.ID, s)
	if p, ok := x.state.intents.get(s.PaymentIntent); ok && cancelable(p) {
		x.cancel(p, "")
	}
	if si, ok := x.state.setups.get(s.SetupIntent); ok {
		si.Status, si.NextURL = "canceled", ""
		x.state.setups.put(si.ID, si)
	}
	x.emit("checkout.session.expired", x.renderSession(s), nil)
	return s
}

// complete ends a session that the payer has finished, paid or not yet.
func (x *tx) complete(s session, paymentStatus string) session {
	s.Status, s.PaymentStatus = "complete", paymentStatus
	x.state.sessions.put(s.ID, s)
	x.emit("checkout.session.completed", x.renderSession(s), nil)
	return s
}

// settle ends a bank debit, one way or the other.
func (x *tx) settle(s session, succeed bool) error {
	p, ok := x.state.intents.get(s.PaymentIntent)
	if !ok || s.Settle == nil || p.Status != "processing" {
		return fmt.Errorf("session %s has no bank debit on its way", s.ID)
	}
	s.Settle = nil
	if succeed {
		s.PaymentStatus = "paid"
		x.state.sessions.put(s.ID, s)
		x.succeed(p)
		x.emit("checkout.session.async_payment_succeeded", x.renderSession(s), nil)
		return nil
	}
	x.state.sessions.put(s.ID, s)
	x.fail(p, declines["debit_returned"])
	x.emit("checkout.session.async_payment_failed", x.renderSession(s), nil)
	return nil
}
