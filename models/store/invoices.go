package store

import (
	"errors"
	"fmt"

	"gorm.io/gorm"

	"berth/models"
)

// NextNumber takes the next number of a series, from 1 on. The row stays locked
// until the transaction ends, and a rollback gives the number back: that is what
// keeps a series free of gaps.
func (tx *Tx) NextNumber(series string) (n int64, err error) {
	err = tx.db.Raw(`INSERT INTO counters (series, "next") VALUES (?, 1)
		ON CONFLICT (series) DO UPDATE SET "next" = counters."next" + 1 RETURNING "next"`, series).Scan(&n).Error
	if err == nil && n < 1 {
		err = fmt.Errorf("series %s gave number %d", series, n)
	}
	return n, err
}

// InsertInvoice adds a closed invoice and records which seconds it bills. The
// database refuses a second of a span that is on an invoice already.
func (tx *Tx) InsertInvoice(inv models.Invoice, parts []models.InvoicedPart) error {
	if err := tx.db.Create(&inv).Error; err != nil {
		return fmt.Errorf("insert invoice %s: %w", inv.Number, err)
	}
	if len(parts) > 0 {
		if err := tx.db.CreateInBatches(&parts, 500).Error; err != nil {
			return fmt.Errorf("insert the parts of invoice %s: %w", inv.Number, err)
		}
	}
	tx.Changed("account:" + string(inv.AccountID))
	return nil
}

// LastInvoice reads an account's newest invoice by period; false when there is none.
func (tx *Tx) LastInvoice(account models.AccountID) (inv models.Invoice, ok bool, err error) {
	err = tx.db.Order("period_end DESC").First(&inv, "account_id = ?", account).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return inv, false, nil
	}
	return inv, err == nil, err
}

// Invoice reads an account's invoice. It fails with a NotFound Problem.
func (tx *Tx) Invoice(account models.AccountID, id models.InvoiceID) (inv models.Invoice, err error) {
	return inv, lookup("invoice", id, tx.db.First(&inv, "id = ? AND account_id = ?", id, account).Error)
}

// Invoices lists an account's invoices without their documents, the latest period
// first, after the one named by the cursor (empty: from the start), and the cursor
// of the next page (empty: the last). Several may have been closed at one moment,
// so their ids do not tell the order.
func (tx *Tx) Invoices(account models.AccountID, cursor string, limit int) (list []models.Invoice, next string, err error) {
	q := tx.db.Omit("document").Where("account_id = ?", account)
	if cursor != "" {
		after, err := tx.Invoice(account, models.InvoiceID(cursor))
		if models.HasCode(err, models.NotFound) {
			return nil, "", badCursor(cursor)
		}
		if err != nil {
			return nil, "", err
		}
		q = q.Where("period_end < ?", after.PeriodEnd)
	}
	if err := q.Order("period_end DESC").Limit(limit + 1).Find(&list).Error; err != nil {
		return nil, "", err
	}
	if len(list) > limit {
		list = list[:limit]
		next = string(list[limit-1].ID)
	}
	return list, next, nil
}

// SetPDFHash remembers how an invoice was first drawn; later calls change nothing.
func (tx *Tx) SetPDFHash(id models.InvoiceID, hash string) error {
	return tx.db.Model(&models.Invoice{}).Where("id = ? AND pdf_hash = ''", id).Update("pdf_hash", hash).Error
}
