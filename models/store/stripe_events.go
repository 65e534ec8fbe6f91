package store

import (
	"gorm.io/gorm/clause"

	"berth/models"
)

// ReceiveStripeEvent stores a webhook; false when it came before.
func (tx *Tx) ReceiveStripeEvent(e models.StripeEvent) (bool, error) {
	res := tx.db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoNothing: true}).Create(&e)
	return res.RowsAffected == 1, res.Error
}

// PendingStripeEvents lists up to limit webhooks whose time to be processed has
// come, in the order in which the provider made them.
func (tx *Tx) PendingStripeEvents(at models.Instant, limit int) (list []models.StripeEvent, err error) {
	return list, tx.db.Order("created_at, received_at, id").Limit(limit).Find(&list, "processed_at = 0 AND next_at <= ?", at).Error
}

// LockStripeEvent reads a webhook and keeps other workers from it until the
// transaction ends. It fails with a NotFound Problem.
func (tx *Tx) LockStripeEvent(id string) (e models.StripeEvent, err error) {
	return e, lookup("webhook", id, tx.forUpdate().First(&e, "id = ?", id).Error)
}

// SaveStripeEvent writes how processing a webhook went.
func (tx *Tx) SaveStripeEvent(e models.StripeEvent) error {
	return tx.db.Model(&models.StripeEvent{}).Where("id = ?", e.ID).Updates(map[string]any{
		"processed_at": e.ProcessedAt, "attempts": e.Attempts, "next_at": e.NextAt, "error": e.Error,
	}).Error
}

// NextStripeEvent tells when the next webhook is due; zero when none waits.
func (tx *Tx) NextStripeEvent() (at models.Instant, err error) {
	return at, tx.db.Model(&models.StripeEvent{}).Select("COALESCE(MIN(next_at), 0)").Where("processed_at = 0").Scan(&at).Error
}
