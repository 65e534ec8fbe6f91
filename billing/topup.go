package billing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"berth/billing/stripe"
	"berth/models"
	"berth/models/store"
	"berth/money"
)

const (
	// topupOpenFor is how long a payment page is open. Stripe takes 24 h at most,
	// counted from when the page is made, which a retry may do later.
	topupOpenFor = 23 * time.Hour
	// topupRetryFor is how long the making of a page is tried again under the same
	// key: below the 24 h for which Stripe remembers keys, and the 30 min that a
	// page must be open.
	topupRetryFor = 22 * time.Hour
)

// StartTopup makes a top-up and its payment page. The amount is checked against
// the currency's limits: Invalid with the field "amount". A clientKey (the
// caller's Idempotency-Key, may be empty) gives the same top-up again, or
// KeyReused for another amount. The provider sends the browser to returnURL with
// topup=<id> added, whatever came of it.
//
// When the provider does not answer, the top-up exists in the state "creating",
// the error is Unavailable, and the same clientKey, or SyncTopup, tries again.
func (s *Service) StartTopup(ctx context.Context, account models.AccountID, user models.UserID, amount money.Amount, clientKey, returnURL string, at models.Instant) (models.Topup, error) {
	if _, err := url.Parse(returnURL); err != nil {
		return models.Topup{}, fmt.Errorf("return address of a top-up: %w", err)
	}
	var t models.Topup
	err := s.store.InTx(ctx, func(tx *store.Tx) error {
		payer, err := tx.Account(account)
		if err != nil {
			return err
		}
		if err := checkTopup(payer.Currency, amount); err != nil {
			return err
		}
		t = models.Topup{ID: models.TopupID(store.NewID("top", at.Time())), AccountID: account, UserID: user, Amount: amount,
			Currency: payer.Currency, State: models.TopupCreating, ClientKey: clientKey, ReturnURL: returnURL,
			ExpiresAt: at.Add(topupOpenFor), CreatedAt: at, ChangedAt: at}
		fresh, err := tx.InsertTopup(t)
		if err != nil || fresh {
			return err
		}
		before, ok, err := tx.TopupByClientKey(account, clientKey)
		if err != nil {
			return err
		}
		if !ok || before.Amount != amount {
			return &models.Problem{Code: models.KeyReused, What: "This Idempotency-Key came with another amount before.",
				Next: "Use a new key for a new top-up."}
		}
		t = before
		return nil
	})
	if err != nil || t.State != models.TopupCreating {
		return t, err
	}
	return s.openTopup(ctx, t, at)
}

// checkTopup holds an amount against what the currency allows.
func checkTopup(code string, amount money.Amount) error {
	c, err := money.LookupCurrency(code)
	if err != nil {
		return err
	}
	bad := models.Fieldset{}
	switch {
	case amount < c.MinTopup:
		bad.Add("amount", fmt.Sprintf("The least is %s.", c.Format(c.MinTopup)))
	case amount > c.MaxTopup:
		bad.Add("amount", fmt.Sprintf("The most at once is %s.", c.Format(c.MaxTopup)))
	case amount%c.StripeStep() != 0:
		bad.Add("amount", fmt.Sprintf("Card payments move in steps of %s.", c.Format(c.StripeStep())))
	}
	return bad.Problem()
}

// openTopup makes the payment page of a stored top-up. Every request is built
// from stored rows alone, so that a retry after a crash sends the same bytes
// under the same key and gets the same page.
func (s *Service) openTopup(ctx context.Context, t models.Topup, at models.Instant) (models.Topup, error) {
	if at > t.CreatedAt.Add(topupRetryFor) {
		return s.changeTopup(ctx, t.ID, func(tx *store.Tx, t *models.Topup) error {
			moveTopup(t, models.TopupExpired, "The payment page could not be opened in time.", at)
			return tx.SaveTopup(*t)
		})
	}
	customer, err := s.customer(ctx, t)
	if err != nil {
		return s.topupRefused(ctx, t, err, at)
	}
	c, err := money.LookupCurrency(t.Currency)
	if err != nil {
		return t, err
	}
	minor, err := c.ToStripe(t.Amount)
	if err != nil {
		return t, err
	}
	page, err := s.gw.CreateCheckout(ctx, "topup:"+string(t.ID), stripe.CheckoutRequest{
		TopupID: string(t.ID), Customer: customer, Currency: strings.ToLower(t.Currency), Amount: minor, Name: "Wallet top-up",
		SuccessURL: withQuery(t.ReturnURL, "topup", string(t.ID)),
		CancelURL:  withQuery(t.ReturnURL, "topup", string(t.ID)),
		ExpiresAt:  t.ExpiresAt.Time().Unix(),
	})
	if err != nil {
		return s.topupRefused(ctx, t, err, at)
	}
	return s.changeTopup(ctx, t.ID, func(tx *store.Tx, t *models.Topup) error {
		t.SessionID, t.CheckoutURL = page.ID, page.URL
		moveTopup(t, models.TopupOpen, "", at)
		if err := tx.SaveTopup(*t); err != nil {
			return err
		}
		_, err := s.settle(tx, t, page, at)
		return err
	})
}

// customer returns the provider's id of the account, made at its first top-up.
func (s *Service) customer(ctx context.Context, t models.Topup) (string, error) {
	var payer models.Account
	var user models.User
	err := s.store.View(ctx, func(tx *store.Tx) (err error) {
		if payer, err = tx.Account(t.AccountID); err != nil {
			return err
		}
		user, err = tx.User(t.UserID)
		return err
	})
	if err != nil || payer.StripeCustomer != "" {
		return payer.StripeCustomer, err
	}
	who := stripe.Customer{AccountID: string(payer.ID), Name: payer.Name, Email: user.Email}
	// The key names the content: the e-mail may change between two tries.
	sum := sha256.Sum256([]byte(who.AccountID + "\x00" + who.Name + "\x00" + who.Email))
	id, err := s.gw.CreateCustomer(ctx, "customer:"+hex.EncodeToString(sum[:16]), who)
	if err != nil {
		return "", err
	}
	err = s.store.InTx(ctx, func(tx *store.Tx) error {
		if _, err := tx.LockWallet(payer.ID); err != nil {
			return err
		}
		if payer, err = tx.Account(payer.ID); err != nil || payer.StripeCustomer != "" {
			return err
		}
		payer.StripeCustomer = id
		return tx.SetStripeCustomer(payer.ID, id)
	})
	return payer.StripeCustomer, err
}

// topupRefused records that the provider did not make the page. What may pass
// leaves the top-up as it is, to be tried again.
func (s *Service) topupRefused(ctx context.Context, t models.Topup, cause error, at models.Instant) (models.Topup, error) {
	var refused *stripe.Error
	if !errors.As(cause, &refused) {
		return t, cause
	}
	switch refused.Kind {
	case stripe.Away, stripe.BadKey:
		s.log.Error("the payment provider did not open a payment page", "topup", t.ID, "account", t.AccountID, "error", cause)
		return t, &models.Problem{Code: models.Unavailable, What: "The payment provider does not answer. Nothing was charged.", Next: "Try again in a minute."}
	}
	s.log.Error("the payment provider refused to open a payment page", "topup", t.ID, "account", t.AccountID, "error", cause)
	t, err := s.changeTopup(ctx, t.ID, func(tx *store.Tx, t *models.Topup) error {
		moveTopup(t, models.TopupFailed, "The payment provider refused: "+refused.Message, at)
		return tx.SaveTopup(*t)
	})
	if err != nil {
		return t, err
	}
	return t, &models.Problem{Code: models.PaymentFailed, What: t.Reason, Next: "Nothing was charged. Try another amount, or write to the operator."}
}

// SyncTopup asks the provider how far a top-up is, and credits it when it was
// paid: what the webhook does, without waiting for it. It fails with Unavailable
// when the provider does not answer; the webhook or the next try settles it.
func (s *Service) SyncTopup(ctx context.Context, id models.TopupID, at models.Instant) (models.Topup, error) {
	var t models.Topup
	err := s.store.View(ctx, func(tx *store.Tx) (err error) { t, err = tx.Topup(id); return err })
	if err != nil {
		return t, err
	}
	switch t.State {
	case models.TopupCreating:
		return s.openTopup(ctx, t, at)
	case models.TopupOpen, models.TopupProcessing:
	default:
		return t, nil
	}
	page, err := s.gw.GetCheckout(ctx, t.SessionID)
	if err != nil {
		s.log.Warn("the payment provider did not tell about a payment page", "topup", id, "error", err)
		return t, &models.Problem{Code: models.Unavailable, What: "The payment provider does not answer.", Next: "The wallet follows by itself once it does."}
	}
	return s.changeTopup(ctx, id, func(tx *store.Tx, t *models.Topup) error {
		_, err := s.settle(tx, t, page, at)
		return err
	})
}

// CancelTopup closes the payment page of a top-up that nobody paid yet. One that
// was paid in the meantime is credited, and one that is over stays as it is.
func (s *Service) CancelTopup(ctx context.Context, account models.AccountID, id models.TopupID, at models.Instant) (models.Topup, error) {
	t, err := s.Topup(ctx, account, id)
	if err != nil || t.State != models.TopupOpen {
		return t, err
	}
	// A page that can no longer be closed was paid, or ended by itself.
	page, err := s.gw.ExpireCheckout(ctx, t.SessionID)
	if err != nil {
		return s.SyncTopup(ctx, id, at)
	}
	return s.changeTopup(ctx, id, func(tx *store.Tx, t *models.Topup) error {
		_, err := s.settle(tx, t, page, at)
		return err
	})
}

// changeTopup runs change on a top-up behind its wallet's lock.
func (s *Service) changeTopup(ctx context.Context, id models.TopupID, change func(*store.Tx, *models.Topup) error) (t models.Topup, err error) {
	err = s.store.InTx(ctx, func(tx *store.Tx) error {
		if t, err = lockTopup(tx, id); err != nil {
			return err
		}
		return change(tx, &t)
	})
	return t, err
}

func lockTopup(tx *store.Tx, id models.TopupID) (models.Topup, error) {
	t, err := tx.Topup(id)
	if err != nil {
		return t, err
	}
	if _, err := tx.LockWallet(t.AccountID); err != nil {
		return t, err
	}
	return tx.Topup(id)
}

// ReconcileTopups asks the provider about every top-up that has waited for longer
// than a quarter of an hour: whatever got lost, the wallet follows. One that fails
// keeps no other from it.
func (s *Service) ReconcileTopups(ctx context.Context, at models.Instant) error {
	after := models.TopupID("")
	var errs []error
	for {
		var waiting []models.Topup
		err := s.store.View(ctx, func(tx *store.Tx) (err error) {
			waiting, err = tx.UnsettledTopups(at.Add(-15*time.Minute), after, 100)
			return err
		})
		if err != nil || len(waiting) == 0 {
			return errors.Join(append(errs, err)...)
		}
		for _, t := range waiting {
			if _, err := s.SyncTopup(ctx, t.ID, at); err != nil && !models.HasCode(err, models.Unavailable) && !models.HasCode(err, models.PaymentFailed) {
				errs = append(errs, fmt.Errorf("reconcile top-up %s: %w", t.ID, err))
			}
			after = t.ID
		}
	}
}

// Topup reads one of an account's top-ups. It fails with a NotFound Problem.
func (s *Service) Topup(ctx context.Context, account models.AccountID, id models.TopupID) (t models.Topup, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		if t, err = tx.Topup(id); err == nil && t.AccountID != account {
			return models.Missing("top-up", id)
		}
		return err
	})
	return t, err
}

// Topups lists an account's top-ups, newest first, after the cursor (empty: from
// the start), and the cursor of the next page (empty: the last).
func (s *Service) Topups(ctx context.Context, account models.AccountID, cursor string, limit int) (list []models.Topup, next string, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) (err error) {
		list, next, err = tx.Topups(account, cursor, limit)
		return err
	})
	return list, next, err
}

// withQuery adds a parameter to an address.
func withQuery(address, key, value string) string {
	separator := "?"
	if strings.Contains(address, "?") {
		separator = "&"
	}
	return address + separator + url.QueryEscape(key) + "=" + url.QueryEscape(value)
}
