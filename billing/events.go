package billing

import (
	"context"
	"fmt"
	"strings"

	"berth/billing/stripe"
	"berth/models"
	"berth/models/store"
	"berth/money"
)

// asked is what the provider was asked about an event, since the event alone is
// ambiguous: it may be old, or leave out what is new.
type asked struct {
	page    *stripe.Checkout
	refunds []stripe.Refund
}

// askMore makes the requests an event needs, before any transaction.
func (s *Service) askMore(ctx context.Context, ev stripe.Event) (more asked, err error) {
	switch ev.Type {
	case "payment_intent.payment_failed", "payment_intent.requires_action", "payment_intent.canceled":
		// A refused card is not the end of a page that is still open.
		in, err := ev.Intent()
		if err != nil {
			return more, err
		}
		var t models.Topup
		err = s.store.View(ctx, func(tx *store.Tx) (err error) { t, err = tx.Topup(models.TopupID(in.TopupID)); return err })
		switch {
		case models.HasCode(err, models.NotFound):
			return more, nil // not ours
		case err != nil:
			return more, err
		case t.SessionID == "":
			return more, errEarly
		}
		page, err := s.gw.GetCheckout(ctx, t.SessionID)
		more.page = &page
		return more, err
	case "charge.refunded":
		c, err := ev.Charge()
		if err != nil {
			return more, err
		}
		more.refunds, err = s.gw.ListRefunds(ctx, c.ID)
		return more, err
	}
	return more, nil
}

// apply does what an event means. Events come doubled, late and in any order:
// every movement has the key of the thing it is about, and states only move
// forwards. The note is for the operator.
func (s *Service) apply(tx *store.Tx, ev stripe.Event, more asked, at models.Instant) (note string, err error) {
	switch ev.Type {
	case "checkout.session.completed", "checkout.session.async_payment_succeeded", "checkout.session.expired":
		page, err := ev.Checkout()
		if err != nil {
			return "", err
		}
		return s.onTopup(tx, page.TopupID, func(t *models.Topup) (string, error) { return s.settle(tx, t, page, at) })

	case "checkout.session.async_payment_failed":
		page, err := ev.Checkout()
		if err != nil {
			return "", err
		}
		return s.onTopup(tx, page.TopupID, func(t *models.Topup) (string, error) {
			moveTopup(t, models.TopupFailed, "The bank did not pay.", at)
			return "", tx.SaveTopup(*t)
		})

	case "payment_intent.succeeded":
		in, err := ev.Intent()
		if err != nil {
			return "", err
		}
		return s.onTopup(tx, in.TopupID, func(t *models.Topup) (string, error) { return s.credit(tx, t, in, at) })

	case "payment_intent.payment_failed", "payment_intent.requires_action", "payment_intent.canceled":
		if more.page == nil {
			return "", nil
		}
		return s.onTopup(tx, more.page.TopupID, func(t *models.Topup) (string, error) { return s.settle(tx, t, *more.page, at) })

	case "charge.refunded":
		for _, r := range more.refunds {
			if r.Status != stripe.RefundFailed && r.Status != stripe.RefundCanceled {
				if err := s.refund(tx, r, at); err != nil {
					return "", err
				}
			}
		}
		return "", nil

	case "charge.refund.updated":
		r, err := ev.Refund()
		if err != nil {
			return "", err
		}
		if r.Status != stripe.RefundFailed && r.Status != stripe.RefundCanceled {
			return "", nil
		}
		return "", s.refundFailed(tx, r, at)

	case "charge.dispute.created", "charge.dispute.funds_withdrawn", "charge.dispute.funds_reinstated", "charge.dispute.closed":
		d, err := ev.Dispute()
		if err != nil {
			return "", err
		}
		return "", s.dispute(tx, ev.Type, d, at)
	}
	return "", nil // not about money
}

// onTopup runs change on the top-up an event is about, behind its wallet's lock.
// An event without a top-up of ours is somebody else's: the provider's account
// may serve other programs, too.
func (s *Service) onTopup(tx *store.Tx, id string, change func(*models.Topup) (string, error)) (string, error) {
	if id == "" {
		return "", nil
	}
	t, err := lockTopup(tx, models.TopupID(id))
	if models.HasCode(err, models.NotFound) {
		return "there is no top-up " + id + " here: another Berth on the same payment account?", nil
	}
	if err != nil {
		return "", err
	}
	return change(&t)
}

// reversal is money that a payment gives back, in the ledger's terms.
type reversal struct {
	account models.AccountID
	amount  money.Amount
	code    string
}

// reverse finds whose wallet a payment went to and converts the amount. It locks
// the wallet. It fails with errEarly while the payment is not in the ledger.
func (s *Service) reverse(tx *store.Tx, intent string, minor int64, currency string) (r reversal, err error) {
	r.account, err = tx.TransferWallet("pay:" + intent)
	if models.HasCode(err, models.NotFound) {
		return r, fmt.Errorf("payment %s: %w", intent, errEarly)
	}
	if err != nil {
		return r, err
	}
	wallet, err := tx.LockWallet(r.account)
	if err != nil {
		return r, err
	}
	if !strings.EqualFold(wallet.Currency, currency) {
		return r, fmt.Errorf("payment %s comes back in %s, not in %s", intent, currency, wallet.Currency)
	}
	c, err := money.LookupCurrency(wallet.Currency)
	if err != nil {
		return r, err
	}
	r.code = wallet.Currency
	r.amount, err = c.FromStripe(minor)
	return r, err
}

// post moves the money out of the wallet or into it again. The wallet may go
// below zero: then it is owed.
func (r reversal) post(tx *store.Tx, key, kind, reason string, sign money.Amount, at models.Instant) error {
	tx.Changed("account:" + string(r.account))
	_, err := tx.Post(models.Transfer{Key: key, Kind: kind, Reason: reason, At: at},
		models.Leg{Code: models.WalletCode(r.account), Amount: sign * r.amount},
		models.Leg{Code: models.ClearingCode(r.code), Amount: -sign * r.amount})
	return err
}

// Which way a reversal moves, seen from the wallet.
const (
	outOf money.Amount = -1
	into  money.Amount = +1
)

func (s *Service) refund(tx *store.Tx, r stripe.Refund, at models.Instant) error {
	back, err := s.reverse(tx, r.Intent, r.Amount, r.Currency)
	if err != nil {
		return err
	}
	// What was used must be in the ledger first, so that its rows tell the story.
	if err := s.post(tx, back.account, at); err != nil {
		return err
	}
	return back.post(tx, "refund:"+r.ID, "refund", "Refund to the card", outOf, at)
}

// refundFailed brings a refund back that the bank did not take. Both rows are
// posted, also when this is the first that is heard of the refund: whatever tells
// of it later then changes nothing.
func (s *Service) refundFailed(tx *store.Tx, r stripe.Refund, at models.Instant) error {
	if err := s.refund(tx, r, at); err != nil {
		return err
	}
	back, err := s.reverse(tx, r.Intent, r.Amount, r.Currency)
	if err != nil {
		return err
	}
	return back.post(tx, "refund_failed:"+r.ID, "refund_failed", "The bank did not take the refund", into, at)
}

// dispute follows a payment that its payer's bank wants back. Money moves when
// the bank takes it, not when it asks; while any dispute is open or lost, nothing
// new starts.
func (s *Service) dispute(tx *store.Tx, kind string, d stripe.Dispute, at models.Instant) error {
	if d.Inquiry() || d.Status == stripe.DisputeClosed {
		return nil
	}
	back, err := s.reverse(tx, d.Intent, d.Amount, d.Currency)
	if err != nil {
		return err
	}
	won := d.Status == stripe.DisputeWon || kind == "charge.dispute.funds_reinstated"
	if kind != "charge.dispute.created" {
		if err := s.post(tx, back.account, at); err != nil {
			return err
		}
		if err := back.post(tx, "dispute:"+d.ID, "dispute", "A payment was disputed", outOf, at); err != nil {
			return err
		}
	}
	if won && kind != "charge.dispute.created" && kind != "charge.dispute.funds_withdrawn" {
		if err := back.post(tx, "dispute_won:"+d.ID, "dispute_won", "The dispute was won", into, at); err != nil {
			return err
		}
	}
	return s.freeze(tx, back.account, d.ID)
}

// freeze freezes an account with a dispute that is not won, and only such a one.
func (s *Service) freeze(tx *store.Tx, account models.AccountID, dispute string) error {
	_, err := tx.Transfer("dispute_won:" + dispute)
	if err != nil && !models.HasCode(err, models.NotFound) {
		return err
	}
	open := err != nil // this one
	disputes, err := tx.CountWalletTransfers(account, "dispute")
	if err != nil {
		return err
	}
	won, err := tx.CountWalletTransfers(account, "dispute_won")
	if err != nil {
		return err
	}
	return tx.SetFrozen(account, open || disputes > won)
}
