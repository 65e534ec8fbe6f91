package store

import (
	"berth/models"
)

// Hold reads a hold. It fails with a NotFound Problem.
func (tx *Tx) Hold(ref string) (h models.Hold, err error) {
	return h, lookup("hold", ref, tx.db.First(&h, "ref = ?", ref).Error)
}

// PlaceHold sets money aside. The wallet must be locked, and cover it.
func (tx *Tx) PlaceHold(h models.Hold) error {
	h.State = models.HoldActive
	if err := tx.db.Create(&h).Error; err != nil {
		return err
	}
	tx.Changed("account:" + string(h.AccountID))
	return tx.AddHeld(h.AccountID, h.Amount)
}

// ReleaseHold gives an active hold back to its wallet; false when there is none
// or it was given back before. The wallet must be locked.
func (tx *Tx) ReleaseHold(h models.Hold) (bool, error) {
	res := tx.db.Model(&models.Hold{}).Where("ref = ? AND state = ?", h.Ref, models.HoldActive).Update("state", models.HoldReleased)
	if res.Error != nil || res.RowsAffected == 0 {
		return false, res.Error
	}
	tx.Changed("account:" + string(h.AccountID))
	return true, tx.AddHeld(h.AccountID, -h.Amount)
}

// ActiveHolds lists an account's holds, oldest first.
func (tx *Tx) ActiveHolds(id models.AccountID) (list []models.Hold, err error) {
	return list, tx.db.Order("created_at, ref").Find(&list, "account_id = ? AND state = ?", id, models.HoldActive).Error
}

// ExpiredHolds lists up to limit holds that nobody gave back in time.
func (tx *Tx) ExpiredHolds(at models.Instant, limit int) (list []models.Hold, err error) {
	return list, tx.db.Order("expires_at").Limit(limit).Find(&list, "state = ? AND expires_at <= ?", models.HoldActive, at).Error
}
