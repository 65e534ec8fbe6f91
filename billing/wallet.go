package billing

import (
	"context"
	"fmt"

	"berth/models"
	"berth/models/store"
	"berth/money"
)

// OpenWallet opens the ledger accounts of a new account. Calling it again
// changes nothing.
func (s *Service) OpenWallet(tx *store.Tx, account models.Account) error {
	if _, err := money.LookupCurrency(account.Currency); err != nil {
		return err
	}
	return tx.OpenLedgerAccounts(account.Currency,
		models.WalletCode(account.ID), models.RevenueCode(account.ID), models.ClearingCode(account.Currency))
}

// Hold sets money aside for a run that is about to start: Config.HoldSeconds at
// rate, rounded up. The ref makes it happen once; see LaunchRef. It fails with
// InsufficientFunds, with what is there and what is needed, or AccountFrozen.
// Of two calls that race for one balance the second sees what the first left.
func (s *Service) Hold(tx *store.Tx, account models.AccountID, ref string, rate money.Rate, at models.Instant) error {
	wallet, err := tx.LockWallet(account)
	if err != nil {
		return err
	}
	before, err := tx.Hold(ref)
	switch {
	case err == nil && before.State == models.HoldActive:
		return nil
	case err == nil:
		return &models.Problem{Code: models.Conflict, What: "The money for this start was given back already.", Next: "Start the instance again."}
	case !models.HasCode(err, models.NotFound):
		return err
	}
	payer, err := tx.Account(account)
	if err != nil {
		return err
	}
	if payer.Frozen {
		return &models.Problem{Code: models.AccountFrozen, What: "A payment of this account is disputed, so nothing new can start.",
			Next: "Settle the dispute with your bank, or write to the operator."}
	}
	need := rate.Ceil(s.cfg.HoldSeconds)
	if have := wallet.Available(); have < need || have < 0 {
		return short(wallet.Currency, have, need)
	}
	return tx.PlaceHold(models.Hold{Ref: ref, AccountID: account, Amount: need, PricePerHour: rate,
		CreatedAt: at, ExpiresAt: at.Add(s.cfg.HoldFor)})
}

// short is the Problem of a wallet that does not cover what is asked.
func short(code string, have, need money.Amount) error {
	p := &models.Problem{Code: models.InsufficientFunds, What: "The wallet does not cover this.",
		Next: "Top up the wallet, then try again.", Have: &have, Need: &need, Currency: code}
	if c, err := money.LookupCurrency(code); err == nil {
		p.What = fmt.Sprintf("The wallet has %s available; this needs %s.", c.FormatExact(have), c.FormatExact(need))
	}
	return p
}

// Release gives a hold back to its wallet. A hold that does not exist, or was
// given back before, changes nothing.
func (s *Service) Release(tx *store.Tx, ref string, at models.Instant) error {
	h, err := tx.Hold(ref)
	if models.HasCode(err, models.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if h.State != models.HoldActive {
		return nil
	}
	if _, err := tx.LockWallet(h.AccountID); err != nil {
		return err
	}
	_, err = tx.ReleaseHold(h)
	return err
}

// ReleaseExpired gives back the holds that nobody gave back in time: a launch
// whose node never came back.
func (s *Service) ReleaseExpired(ctx context.Context, at models.Instant) error {
	var expired []models.Hold
	if err := s.store.View(ctx, func(tx *store.Tx) (err error) {
		expired, err = tx.ExpiredHolds(at, 100)
		return err
	}); err != nil {
		return fmt.Errorf("list expired holds: %w", err)
	}
	for _, h := range expired {
		if err := s.store.InTx(ctx, func(tx *store.Tx) error { return s.Release(tx, h.Ref, at) }); err != nil {
			return fmt.Errorf("release hold %s: %w", h.Ref, err)
		}
		s.log.Warn("a hold expired: its launch neither ran nor failed", "account", h.AccountID, "hold", h.Ref)
	}
	return nil
}

// Wallet is the state of an account's money.
type Wallet struct {
	Balance, Held, Accrued, Available money.Amount
	Burn                              money.Rate     // of everything running now
	RunsOutAt                         models.Instant // zero: not running out
	Currency                          string
}

// Wallet reads an account's money at a moment. Accrued is what nodes reported;
// RunsOutAt also counts the seconds since.
func (s *Service) Wallet(ctx context.Context, account models.AccountID, at models.Instant) (w Wallet, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		row, err := tx.LedgerAccount(models.WalletCode(account))
		if err != nil {
			return err
		}
		w = Wallet{Balance: row.Balance, Held: row.Held, Accrued: row.Accrued, Available: row.Available(), Currency: row.Currency}
		lots, err := readLots(tx, account, at)
		if err != nil {
			return err
		}
		for _, l := range lots {
			if l.state == models.SpanRunning {
				w.Burn += l.rate
			}
		}
		if w.Burn > 0 {
			if seconds := lots.running(row.Available()); seconds < money.Forever {
				w.RunsOutAt = after(at, seconds)
			}
		}
		return nil
	})
	return w, err
}

// LedgerRow is one posting on a wallet.
type LedgerRow struct {
	ID           string
	At           models.Instant
	Kind, Key    string
	Amount       money.Amount
	BalanceAfter money.Amount
	Reason       string
}

// Ledger lists the postings on an account's wallet, newest first, after the
// cursor (empty: from the start), and the cursor of the next page (empty: the
// last).
func (s *Service) Ledger(ctx context.Context, account models.AccountID, cursor string, limit int) (rows []LedgerRow, next string, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		entries, n, err := tx.WalletEntries(account, cursor, limit)
		rows, next = make([]LedgerRow, len(entries)), n
		for i, e := range entries {
			rows[i] = LedgerRow{ID: e.ID, At: e.At, Kind: e.Kind, Key: e.Key, Amount: e.Amount, BalanceAfter: e.BalanceAfter, Reason: e.Reason}
		}
		return err
	})
	return rows, next, err
}
