package billing

import (
	"fmt"
	"strings"

	"berth/billing/stripe"
	"berth/models"
	"berth/models/store"
	"berth/money"
)

// topupRank orders the states of a top-up; it never moves to a lower or equal
// one. Paid is above all: money that came counts, also after the page seemed to
// have expired.
var topupRank = map[string]int{
	models.TopupCreating: 0, models.TopupOpen: 1, models.TopupProcessing: 2,
	models.TopupFailed: 3, models.TopupExpired: 3, models.TopupCanceled: 3,
	models.TopupPaid: 4,
}

// moveTopup moves t forwards, or leaves it.
func moveTopup(t *models.Topup, to, reason string, at models.Instant) {
	if topupRank[to] > topupRank[t.State] {
		t.State, t.Reason, t.ChangedAt = to, reason, at
	}
}

// settle brings a top-up to what a payment page says. The wallet must be locked.
// The note is for the operator: something that must be looked at by a person.
func (s *Service) settle(tx *store.Tx, t *models.Topup, page stripe.Checkout, at models.Instant) (note string, err error) {
	if t.SessionID == "" {
		t.SessionID, t.CheckoutURL = page.ID, page.URL
	}
	switch {
	case page.Status == stripe.CheckoutComplete && page.PaymentStatus == stripe.PaymentPaid:
		in := page.Intent
		if in.AmountReceived == 0 { // not expanded: a webhook carries the id alone
			in.AmountReceived, in.Currency = page.Amount, page.Currency
		}
		return s.credit(tx, t, in, at)
	case page.Status == stripe.CheckoutComplete && page.PaymentStatus == stripe.PaymentNotNeeded:
		moveTopup(t, models.TopupCanceled, "Nothing was to be paid, so nothing was credited.", at)
	case page.Status == stripe.CheckoutComplete && page.Intent.Status == stripe.IntentNeedsMethod:
		moveTopup(t, models.TopupFailed, bankSaid(page.Intent.Failure), at)
	case page.Status == stripe.CheckoutComplete && page.Intent.Status == stripe.IntentCanceled:
		moveTopup(t, models.TopupCanceled, "The payment was canceled.", at)
	case page.Status == stripe.CheckoutComplete:
		moveTopup(t, models.TopupProcessing, "The bank has not paid yet.", at)
	case page.Status == stripe.CheckoutExpired:
		moveTopup(t, models.TopupExpired, "Nobody paid before the payment page closed.", at)
	case page.Status == stripe.CheckoutOpen && t.State == models.TopupOpen:
		// Still payable. A refused card can be followed by a better one.
		switch {
		case page.Intent.Status == stripe.IntentNeedsAction:
			t.Reason = "Confirm the payment at your bank."
		case page.Intent.Failure != "":
			t.Reason = bankSaid(page.Intent.Failure) + " You can try another card."
		}
	}
	return "", tx.SaveTopup(*t)
}

func bankSaid(failure string) string {
	if failure == "" {
		return "The bank refused the payment."
	}
	return failure
}

// credit posts a payment to the wallet, once per payment: under the payment's
// name, not the top-up's, so that a top-up that was paid twice is credited twice
// (and noted). A payment of another amount or currency than was asked for is not
// guessed at: it is noted, and credited to nobody.
func (s *Service) credit(tx *store.Tx, t *models.Topup, in stripe.Intent, at models.Instant) (note string, err error) {
	c, err := money.LookupCurrency(t.Currency)
	if err != nil {
		return "", err
	}
	amount, err := c.FromStripe(in.AmountReceived)
	if err != nil {
		return "", err
	}
	if in.ID == "" || amount != t.Amount || !strings.EqualFold(in.Currency, t.Currency) {
		note = fmt.Sprintf("payment %s of %d %s does not match top-up %s of %s: nothing was credited; refund it, or credit it by hand",
			in.ID, in.AmountReceived, in.Currency, t.ID, c.Format(t.Amount))
		s.log.Error("a payment was set aside", "topup", t.ID, "account", t.AccountID, "note", note)
		moveTopup(t, models.TopupProcessing, "", at)
		t.Reason = "The payment differs from what was asked for. The operator looks at it."
		return note, tx.SaveTopup(*t)
	}
	posted, err := tx.Post(models.Transfer{Key: "pay:" + in.ID, Kind: "topup", Reason: "Top-up", At: at},
		models.Leg{Code: models.WalletCode(t.AccountID), Amount: amount},
		models.Leg{Code: models.ClearingCode(t.Currency), Amount: -amount})
	if err != nil {
		return "", err
	}
	if posted && t.State == models.TopupPaid && t.PaymentIntent != in.ID {
		note = fmt.Sprintf("top-up %s was paid twice, by %s and %s: both are in the wallet; refund one if its owner asks", t.ID, t.PaymentIntent, in.ID)
		s.log.Error("a top-up was paid twice", "topup", t.ID, "account", t.AccountID, "note", note)
	}
	if t.State != models.TopupPaid {
		moveTopup(t, models.TopupPaid, "", at)
		t.PaymentIntent = in.ID
	}
	return note, tx.SaveTopup(*t)
}
