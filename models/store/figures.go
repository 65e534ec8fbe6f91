package store

import (
	"berth/models"
	"berth/money"
)

// InstanceCounts returns how many instances an account has in each state.
func (tx *Tx) InstanceCounts(account models.AccountID) (map[models.InstanceState]int, error) {
	var rows []struct {
		State models.InstanceState
		N     int
	}
	err := tx.db.Model(&models.Instance{}).Select("state", "COUNT(*) AS n").Where("account_id = ?", account).Group("state").Find(&rows).Error
	out := make(map[models.InstanceState]int, len(rows))
	for _, r := range rows {
		out[r.State] = r.N
	}
	return out, err
}

// Charged returns what instances have cost over all their runs.
func (tx *Tx) Charged(ids []models.InstanceID) (map[models.InstanceID]money.Amount, error) {
	var rows []struct {
		InstanceID models.InstanceID
		Amount     money.Amount
	}
	err := tx.db.Model(&models.UsageSpan{}).Select("instance_id", "CAST(SUM(charged) AS bigint) AS amount").
		Where("instance_id IN ?", ids).Group("instance_id").Find(&rows).Error
	out := make(map[models.InstanceID]money.Amount, len(rows))
	for _, r := range rows {
		out[r.InstanceID] = r.Amount
	}
	return out, err
}

// PlannedPrices lists the prices of a mode that take effect after a moment, the
// next first.
func (tx *Tx) PlannedPrices(mode models.BillingMode, at models.Instant) (list []models.Price, err error) {
	return list, tx.db.Order("effective_at, sku").Find(&list, "billing_mode = ? AND effective_at > ?", mode, at).Error
}

// TotalBurn returns what everything that runs costs together.
func (tx *Tx) TotalBurn() (burn money.Rate, err error) {
	return burn, tx.db.Model(&models.UsageSpan{}).Select("CAST(COALESCE(SUM(price_per_hour), 0) AS bigint)").
		Where("state = ?", models.SpanRunning).Scan(&burn).Error
}
