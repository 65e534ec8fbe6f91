package billing

import (
	"context"
	"errors"
	"fmt"

	"berth/gpu"
	"berth/models"
	"berth/models/store"
	"berth/money"
)

// postAbove is how much may accrue before it is posted at once, rather than with
// the hour: a fifth of the least top-up, one dollar.
func postAbove(code string) money.Amount {
	c, err := money.LookupCurrency(code)
	if err != nil {
		return money.Unit
	}
	return c.MinTopup / 5
}

// post moves what an account accrued into its ledger: one transfer per span, and
// one more at each border of a month in the account's time zone, so that a
// month's ledger holds what was used in it. The wallet must be locked.
func (s *Service) post(tx *store.Tx, account models.AccountID, at models.Instant) error {
	spans, err := tx.UnpostedSpans(account)
	if err != nil || len(spans) == 0 {
		return err
	}
	payer, err := tx.Account(account)
	if err != nil {
		return err
	}
	zone, err := zoneOf(payer)
	if err != nil {
		return err
	}
	var sum money.Amount
	for i, u := range spans {
		for _, to := range monthCuts(u.StartAt, u.PostedTo, u.Cursor, zone) {
			cost := u.PricePerHour.For(to) - u.Posted
			if cost > 0 {
				if _, err := tx.Post(models.Transfer{Key: fmt.Sprintf("usage:%s:%d", u.ID, to), Kind: "usage", At: at, Reason: usageReason(u, to)},
					models.Leg{Code: models.WalletCode(account), Amount: -cost},
					models.Leg{Code: models.RevenueCode(account), Amount: cost}); err != nil {
					return err
				}
			}
			u.Posted, u.PostedTo = u.Posted+cost, to
			sum += cost
		}
		spans[i] = u
	}
	if err := tx.SaveSpans(spans...); err != nil {
		return fmt.Errorf("save posted spans: %w", err)
	}
	tx.Changed("account:" + string(account))
	return tx.AddAccrued(account, -sum)
}

func usageReason(u models.UsageSpan, to int64) string {
	what := u.SKU
	if sku, err := gpu.ParseSKU(u.SKU); err == nil {
		what = sku.Name()
	}
	return fmt.Sprintf("%s on %s, %d s", u.InstanceName, what, to-u.PostedTo)
}

// PostAccrued posts what every account accrued. What is wrong with one account
// keeps no other from its postings.
func (s *Service) PostAccrued(ctx context.Context, at models.Instant) error {
	var accounts []models.AccountID
	if err := s.store.View(ctx, func(tx *store.Tx) (err error) {
		accounts, err = tx.AccountsAccruing()
		return err
	}); err != nil {
		return fmt.Errorf("list accounts that accrue: %w", err)
	}
	var errs []error
	for _, account := range accounts {
		if err := s.store.InTx(ctx, func(tx *store.Tx) error {
			if _, err := tx.LockWallet(account); err != nil {
				return err
			}
			return s.post(tx, account, at)
		}); err != nil {
			errs = append(errs, fmt.Errorf("post what account %s accrued: %w", account, err))
		}
	}
	return errors.Join(errs...)
}
