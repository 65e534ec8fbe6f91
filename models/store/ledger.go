package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gorm.io/gorm/clause"

	"berth/models"
	"berth/money"
)

// ErrTransferDiffers says that a transfer's key was used before for another
// movement of money. Nothing may guess which of the two is right.
var ErrTransferDiffers = errors.New("the key of this transfer was used for another one")

// OpenLedgerAccounts makes sure that ledger accounts of these codes exist.
func (tx *Tx) OpenLedgerAccounts(currency string, codes ...string) error {
	rows := make([]models.LedgerAccount, len(codes))
	for i, code := range codes {
		rows[i] = models.LedgerAccount{Code: code, Currency: currency}
	}
	return tx.db.Clauses(clause.OnConflict{DoNothing: true}).Create(&rows).Error
}

// LedgerAccount reads one ledger account. It fails with a NotFound Problem.
func (tx *Tx) LedgerAccount(code string) (a models.LedgerAccount, err error) {
	return a, lookup("ledger account", code, tx.db.First(&a, "code = ?", code).Error)
}

// Currencies lists those that ledger accounts are kept in.
func (tx *Tx) Currencies() (codes []string, err error) {
	return codes, tx.db.Model(&models.LedgerAccount{}).Distinct().Order("currency").Pluck("currency", &codes).Error
}

// LockWallet reads an account's wallet and keeps others from changing anything
// of that account's money until the transaction ends: every method that moves it
// takes this lock first. Take several in the order of their ids.
func (tx *Tx) LockWallet(id models.AccountID) (w models.LedgerAccount, err error) {
	return w, lookup("wallet", id, tx.forUpdate().First(&w, "code = ?", models.WalletCode(id)).Error)
}

// AddHeld and AddAccrued move the two parts of a wallet that are spoken for. The
// wallet must be locked.
func (tx *Tx) AddHeld(id models.AccountID, by money.Amount) error {
	return tx.db.Exec("UPDATE ledger_accounts SET held = held + ? WHERE code = ?", by, models.WalletCode(id)).Error
}

// AddAccrued is described at AddHeld.
func (tx *Tx) AddAccrued(id models.AccountID, by money.Amount) error {
	return tx.db.Exec("UPDATE ledger_accounts SET accrued = accrued + ? WHERE code = ?", by, models.WalletCode(id)).Error
}

// RecountAccrued makes what a wallet accrued what its spans charged and did not
// post. The wallet must be locked.
func (tx *Tx) RecountAccrued(id models.AccountID) error {
	return tx.db.Exec(`UPDATE ledger_accounts SET accrued =
		(SELECT COALESCE(SUM("charged" - "posted"), 0) FROM usage_spans WHERE account_id = ?) WHERE code = ?`, id, models.WalletCode(id)).Error
}

// Post moves money: t with its legs, which sum to zero in one currency, or
// nothing. Its key makes it happen once: posted is false when it had happened
// before, and the error is ErrTransferDiffers when that was another movement. t
// needs Key, Kind, Reason and At. The wallets among the legs must be locked.
func (tx *Tx) Post(t models.Transfer, legs ...models.Leg) (posted bool, err error) {
	legs = slices.Clone(legs)
	// One order for all, so that two transfers never wait for each other.
	slices.SortFunc(legs, func(a, b models.Leg) int { return strings.Compare(a.Code, b.Code) })
	if err := balanced(t, legs); err != nil {
		return false, err
	}
	t.ID, t.Hash = NewID("tra", t.At.Time()), transferHash(t.Kind, legs)
	res := tx.db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "key"}}, DoNothing: true}).Create(&t)
	if res.Error != nil {
		return false, fmt.Errorf("post %s: %w", t.Key, res.Error)
	}
	if res.RowsAffected == 0 {
		before, err := tx.Transfer(t.Key)
		if err != nil {
			return false, err
		}
		if before.Hash != t.Hash {
			return false, fmt.Errorf("post %s: %w", t.Key, ErrTransferDiffers)
		}
		return false, nil
	}
	currency := ""
	for _, leg := range legs {
		var after models.LedgerAccount
		res := tx.db.Raw("UPDATE ledger_accounts SET balance = balance + ?, version = version + 1 WHERE code = ? RETURNING *", leg.Amount, leg.Code).Scan(&after)
		if res.Error != nil {
			return false, fmt.Errorf("post %s to %s: %w", t.Key, leg.Code, res.Error)
		}
		if after.Code == "" {
			return false, fmt.Errorf("post %s: there is no ledger account %s", t.Key, leg.Code)
		}
		if currency != "" && after.Currency != currency {
			return false, fmt.Errorf("post %s: %s is kept in %s, not in %s", t.Key, leg.Code, after.Currency, currency)
		}
		currency = after.Currency
		entry := models.Entry{ID: NewID("ent", t.At.Time()), TransferID: t.ID, AccountCode: leg.Code,
			Version: after.Version, Amount: leg.Amount, BalanceAfter: after.Balance}
		if err := tx.db.Create(&entry).Error; err != nil {
			return false, fmt.Errorf("post %s to %s: %w", t.Key, leg.Code, err)
		}
	}
	return true, nil
}

func balanced(t models.Transfer, legs []models.Leg) error {
	if t.Key == "" || t.Kind == "" || len(legs) < 2 {
		return fmt.Errorf("post %q: a transfer has a key, a kind and two legs or more", t.Key)
	}
	var sum money.Amount
	for i, leg := range legs {
		if i > 0 && legs[i-1].Code == leg.Code {
			return fmt.Errorf("post %s: %s has two legs", t.Key, leg.Code)
		}
		sum += leg.Amount
	}
	if sum != 0 {
		return fmt.Errorf("post %s: its legs sum to %d, not to zero", t.Key, sum)
	}
	return nil
}

// transferHash is over what must be equal when a key comes back: not over time
// and wording, which may differ between two tellings of one fact.
func transferHash(kind string, legs []models.Leg) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q", kind)
	for _, leg := range legs {
		fmt.Fprintf(h, "%q%d", leg.Code, leg.Amount)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Transfer reads the transfer of a key. It fails with a NotFound Problem.
func (tx *Tx) Transfer(key string) (t models.Transfer, err error) {
	return t, lookup("transfer", key, tx.db.First(&t, `"key" = ?`, key).Error)
}

// TransferWallet tells whose wallet the transfer of a key moved. It fails with a
// NotFound Problem when there is no such transfer or it moved no wallet.
func (tx *Tx) TransferWallet(key string) (models.AccountID, error) {
	t, err := tx.Transfer(key)
	if err != nil {
		return "", err
	}
	var e models.Entry
	err = tx.db.First(&e, "transfer_id = ? AND account_code LIKE 'wallet:%'", t.ID).Error
	return models.AccountID(strings.TrimPrefix(e.AccountCode, models.WalletCode(""))), lookup("wallet in transfer", key, err)
}

// CountWalletTransfers counts an account's transfers of a kind.
func (tx *Tx) CountWalletTransfers(id models.AccountID, kind string) (n int64, err error) {
	err = tx.db.Model(&models.Entry{}).Joins("JOIN transfers ON transfers.id = entries.transfer_id").
		Where("entries.account_code = ? AND transfers.kind = ?", models.WalletCode(id), kind).Count(&n).Error
	return n, err
}

// LedgerEntry is one entry with its transfer.
type LedgerEntry struct {
	models.Entry
	Key, Kind, Reason string
	At                models.Instant
}

// WalletEntries lists an account's entries, newest first, after the cursor
// (empty: from the start), and the cursor of the next page (empty: the last).
func (tx *Tx) WalletEntries(id models.AccountID, cursor string, limit int) (list []LedgerEntry, next string, err error) {
	q := tx.db.Model(&models.Entry{}).
		Select(`entries.*`, `transfers."key"`, `transfers.kind`, `transfers.reason`, `transfers."at"`).
		Joins("JOIN transfers ON transfers.id = entries.transfer_id").
		Where("entries.account_code = ?", models.WalletCode(id)).
		Order("entries.version DESC").Limit(limit + 1)
	if cursor != "" {
		before, err := strconv.ParseInt(cursor, 10, 64)
		if err != nil {
			return nil, "", badCursor(cursor)
		}
		q = q.Where("entries.version < ?", before)
	}
	if err := q.Find(&list).Error; err != nil {
		return nil, "", err
	}
	if len(list) > limit {
		list = list[:limit]
		next = strconv.FormatInt(list[limit-1].Version, 10)
	}
	return list, next, nil
}

func badCursor(cursor string) error {
	return &models.Problem{Code: models.Invalid, What: "There is no page at this place in the list.",
		Next: "Start from the first page.", Fields: map[string]string{"cursor": fmt.Sprintf("%q is not a cursor from this list", cursor)}}
}
