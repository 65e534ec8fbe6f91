package store

import (
	"errors"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"berth/models"
)

// Topup reads one top-up. It fails with a NotFound Problem.
func (tx *Tx) Topup(id models.TopupID) (t models.Topup, err error) {
	return t, lookup("top-up", id, tx.db.First(&t, "id = ?", id).Error)
}

// TopupByClientKey reads the top-up that a caller's Idempotency-Key made; false
// when there is none.
func (tx *Tx) TopupByClientKey(account models.AccountID, key string) (t models.Topup, ok bool, err error) {
	err = tx.db.First(&t, "account_id = ? AND client_key = ? AND client_key <> ''", account, key).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return t, false, nil
	}
	return t, err == nil, err
}

// InsertTopup adds a top-up; false when the account has one with the same
// client key.
func (tx *Tx) InsertTopup(t models.Topup) (bool, error) {
	tx.Changed("account:" + string(t.AccountID))
	res := tx.db.Clauses(clause.OnConflict{DoNothing: true}).Create(&t)
	return res.RowsAffected == 1, res.Error
}

// SaveTopup writes what a payment changes of a top-up. Its wallet must be locked.
func (tx *Tx) SaveTopup(t models.Topup) error {
	tx.Changed("account:" + string(t.AccountID))
	return tx.db.Model(&models.Topup{}).Where("id = ?", t.ID).Updates(map[string]any{
		"state": t.State, "reason": t.Reason, "session_id": t.SessionID, "checkout_url": t.CheckoutURL,
		"payment_intent": t.PaymentIntent, "changed_at": t.ChangedAt,
	}).Error
}

// Topups lists an account's top-ups, newest first, after the one named by the
// cursor (empty: from the start), and the cursor of the next page (empty: the last).
func (tx *Tx) Topups(account models.AccountID, cursor string, limit int) (list []models.Topup, next string, err error) {
	q := tx.db.Where("account_id = ?", account)
	if cursor != "" {
		after, err := tx.Topup(models.TopupID(cursor))
		if err != nil || after.AccountID != account {
			return nil, "", badCursor(cursor)
		}
		q = q.Where("id < ?", cursor)
	}
	if err := q.Order("id DESC").Limit(limit + 1).Find(&list).Error; err != nil {
		return nil, "", err
	}
	if len(list) > limit {
		list = list[:limit]
		next = string(list[limit-1].ID)
	}
	return list, next, nil
}

// HasCheckouts tells whether any top-up was paid, or was to be, by a checkout
// session whose id begins like this: Stripe names test and live ones apart.
func (tx *Tx) HasCheckouts(prefix string) (bool, error) {
	var n int64
	err := tx.db.Model(&models.Topup{}).Where("SUBSTR(session_id, 1, ?) = ?", len(prefix), prefix).Limit(1).Count(&n).Error
	return n > 0, err
}

// UnsettledTopups lists up to limit top-ups that wait for the provider and were
// made before, in the order of their ids after the one named.
func (tx *Tx) UnsettledTopups(before models.Instant, after models.TopupID, limit int) (list []models.Topup, err error) {
	return list, tx.db.Order("id").Limit(limit).Find(&list, "state IN ? AND created_at < ? AND id > ?",
		[]string{models.TopupCreating, models.TopupOpen, models.TopupProcessing}, before, after).Error
}
