package stripedouble

import (
	"crypto/sha256"
	"encoding/hex"
)

// What the payer does on the hosted page. Each function is one form post; the
// message it gives is for the page, empty when the payment went on.

// payCard pays the session with a typed card, or saves the card in setup mode.
func (x *tx) payCard(s session, card testCard, month, year int64) (message string) {
	sum := sha256.Sum256([]byte(card.Number))
	m := method{
		ID: newID("pm_", 24), Type: "card", Brand: card.Brand, Last4: card.Number[len(card.Number)-4:],
		Fingerprint: hex.EncodeToString(sum[:8]), ExpMonth: month, ExpYear: year, Card: card.Number, Created: x.now.Unix(),
	}
	x.state.methods.put(m.ID, m)
	if s.Mode == "setup" {
		return x.saveCard(s, card, m)
	}
	s, p := x.beginPayment(s, m)
	refusal := card.Decline
	if x.takeDecline() {
		refusal = "generic_decline"
	}
	if refusal != "" {
		return x.fail(p, declines[refusal]).LastError.Message
	}
	if card.Auth != authNever {
		p.Status, p.NextURL, p.NextReturnURL = "requires_action", x.pageURL("/c/pay/", s.ID), s.SuccessURL
		x.state.intents.put(p.ID, p)
		x.emit("payment_intent.requires_action", x.renderIntent(p), nil)
		return ""
	}
	x.finishPayment(s, p)
	return ""
}

// beginPayment gives the session its PaymentIntent, which lives as long as the
// session does: a second card tries the same one again.
func (x *tx) beginPayment(s session, m method) (session, intent) {
	p, ok := x.state.intents.get(s.PaymentIntent)
	if !ok {
		if s.Customer == "" && s.FutureUsage != "" { // a saved card needs somebody to belong to
			c := customer{ID: newID("cus_", 14), Email: s.CustomerEmail, Created: x.now.Unix()}
			x.state.customers.put(c.ID, c)
			s.Customer = c.ID
		}
		p = intent{
			ID: newID("pi_", 24), Status: "requires_payment_method", Amount: s.AmountTotal, Currency: s.Currency,
			Customer: s.Customer, Description: s.IntentDescription, FutureUsage: s.FutureUsage, Session: s.ID,
			MethodTypes: s.MethodTypes, Metadata: s.IntentMetadata, Created: x.now.Unix(),
		}
		p.Secret = p.ID + newID("_secret_", 25)
		s.PaymentIntent = p.ID
		x.state.sessions.put(s.ID, s)
		x.emit("payment_intent.created", x.renderIntent(p), nil)
	}
	p.Method = m.ID
	x.state.intents.put(p.ID, p)
	return s, p
}

// finishPayment takes the money and completes the session.
func (x *tx) finishPayment(s session, p intent) {
	if m, ok := x.state.methods.get(p.Method); ok && p.FutureUsage != "" {
		x.attach(m, p.Customer)
	}
	x.succeed(p)
	x.complete(s, "paid")
}

func (x *tx) saveCard(s session, card testCard, m method) (message string) {
	si, _ := x.state.setups.get(s.SetupIntent)
	si.Method, si.LastError = m.ID, nil
	if card.Decline != "" && !card.Saves {
		return x.refuseSetup(si, declines[card.Decline])
	}
	if card.Auth != authNever {
		si.Status, si.NextURL = "requires_action", x.pageURL("/c/pay/", s.ID)
		x.state.setups.put(si.ID, si)
		return ""
	}
	x.finishSetup(s, si)
	return ""
}

func (x *tx) finishSetup(s session, si setupIntent) {
	si.Status, si.NextURL, si.LastError = "succeeded", "", nil
	x.state.setups.put(si.ID, si)
	if m, ok := x.state.methods.get(si.Method); ok && s.Customer != "" {
		x.attach(m, s.Customer)
	}
	x.emit("setup_intent.succeeded", x.renderSetup(si), nil)
	x.complete(s, "no_payment_required")
}

func (x *tx) refuseSetup(si setupIntent, f failure) (message string) {
	f.Method = si.Method
	si.Status, si.Method, si.NextURL, si.LastError = "requires_payment_method", "", "", &f
	x.state.setups.put(si.ID, si)
	x.emit("setup_intent.setup_failed", x.renderSetup(si), nil)
	return f.Message
}

// authenticating says whether the payer stands before the 3D Secure step.
func (x *tx) authenticating(s session) bool {
	p, _ := x.state.intents.get(s.PaymentIntent)
	si, _ := x.state.setups.get(s.SetupIntent)
	return p.Status == "requires_action" || si.Status == "requires_action"
}

// authenticate ends the 3D Secure step.
func (x *tx) authenticate(s session, ok bool) (message string) {
	if s.Mode == "setup" {
		si, _ := x.state.setups.get(s.SetupIntent)
		if !ok {
			return x.refuseSetup(si, declines["setup_authentication_failed"])
		}
		x.finishSetup(s, si)
		return ""
	}
	p, _ := x.state.intents.get(s.PaymentIntent)
	if !ok {
		return x.refuse(p, declines["authentication_failed"]).LastError.Message
	}
	x.finishPayment(s, p)
	return ""
}

// payDebit pays by a bank debit, whose end comes later.
func (x *tx) payDebit(s session, succeed bool) {
	kind := debitKind(s.Currency)
	m := method{ID: newID("pm_", 24), Type: kind, Last4: "6789", Fingerprint: "double" + kind,
		DelayedFailure: !succeed, Created: x.now.Unix()}
	x.state.methods.put(m.ID, m)
	s, p := x.beginPayment(s, m)
	ch := x.newCharge(p)
	x.state.charges.put(ch.ID, ch)
	p.Status, p.Charge = "processing", ch.ID
	x.state.intents.put(p.ID, p)
	x.emit("charge.pending", x.renderCharge(ch), nil)
	x.emit("payment_intent.processing", x.renderIntent(p), nil)
	s.Settle = &settlement{Succeed: succeed}
	if x.cfg.SettleAfter > 0 {
		s.Settle.At = x.now.Add(x.cfg.SettleAfter).Unix()
	}
	x.complete(s, "unpaid")
}
