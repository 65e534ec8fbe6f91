package store

import (
	"gorm.io/gorm/clause"

	"berth/models"
)

// AddPrice adds a row to the price list; false when there is one of the same
// SKU, mode and moment already, which stays as it is.
func (tx *Tx) AddPrice(p models.Price) (bool, error) {
	res := tx.db.Clauses(clause.OnConflict{
		Columns:   []clause.Column{{Name: "sku"}, {Name: "billing_mode"}, {Name: "effective_at"}},
		DoNothing: true,
	}).Create(&p)
	return res.RowsAffected == 1, res.Error
}

// PriceAt reads the price in force. It fails with a NotFound Problem.
func (tx *Tx) PriceAt(sku string, mode models.BillingMode, at models.Instant) (p models.Price, err error) {
	err = tx.db.Order("effective_at DESC").First(&p, "sku = ? AND billing_mode = ? AND effective_at <= ?", sku, mode, at).Error
	return p, lookup("price for", sku, err)
}

// PricesAt reads all prices in force in a mode, by SKU.
func (tx *Tx) PricesAt(mode models.BillingMode, at models.Instant) (list []models.Price, err error) {
	newest := tx.db.Table("prices AS newer").Select("MAX(newer.effective_at)").
		Where("newer.sku = prices.sku AND newer.billing_mode = prices.billing_mode AND newer.effective_at <= ?", at)
	return list, tx.db.Order("sku").Find(&list, "billing_mode = ? AND effective_at = (?)", mode, newest).Error
}

// PriceHistory lists every price of a SKU, newest first, those to come included.
func (tx *Tx) PriceHistory(sku string) (list []models.Price, err error) {
	return list, tx.db.Order("effective_at DESC, billing_mode").Find(&list, "sku = ?", sku).Error
}
