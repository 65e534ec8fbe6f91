package store

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gorm.io/gorm/clause"

	"berth/models"
	"berth/money"
)

// Span reads a usage span. It fails with a NotFound Problem.
func (tx *Tx) Span(id models.SpanID) (u models.UsageSpan, err error) {
	return u, lookup("usage span", id, tx.db.First(&u, "id = ?", id).Error)
}

// Spans reads the usage spans that exist of those named, in the order of their ids.
func (tx *Tx) Spans(ids ...models.SpanID) (list []models.UsageSpan, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return tx.readSpans("id", "id IN ?", ids)
}

// readSpans reads spans by the thousand: scanned without reflection, which takes
// most of gorm's time.
func (tx *Tx) readSpans(order, where string, args ...any) (list []models.UsageSpan, err error) {
	rows, err := tx.db.Model(&models.UsageSpan{}).Select("id", "instance_id", "account_id", "run", "instance_name", "sku", "billing_mode", "price_per_hour", "currency",
		"state", "start_at", "end_at", "cap_seconds", "cursor", "charged", "posted", "posted_to", "invoiced_to", "reported", "close_reason", "updated_at").
		Where(where, args...).Order(order).Rows()
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var u models.UsageSpan
		if err := rows.Scan(&u.ID, &u.InstanceID, &u.AccountID, &u.Run, &u.InstanceName, &u.SKU, &u.BillingMode, &u.PricePerHour, &u.Currency,
			&u.State, &u.StartAt, &u.EndAt, &u.CapSeconds, &u.Cursor, &u.Charged, &u.Posted, &u.PostedTo, &u.InvoicedTo, &u.Reported, &u.CloseReason, &u.UpdatedAt); err != nil {
			return nil, err
		}
		list = append(list, u)
	}
	return list, rows.Err()
}

// InsertSpan adds a usage span.
func (tx *Tx) InsertSpan(u models.UsageSpan) error { return tx.db.Create(&u).Error }

// SpanTrace is what the rest of the database knows of a span without its row.
type SpanTrace struct {
	Posted               money.Amount // in the ledger
	PostedTo, InvoicedTo int64        // seconds
}

// SpanTrace reads what ledger and invoices have of a span. It looks through the
// ledger: it is for repairs.
func (tx *Tx) SpanTrace(id models.SpanID, account models.AccountID) (t SpanTrace, err error) {
	prefix := "usage:" + string(id) + ":"
	var rows []struct {
		Key    string
		Amount money.Amount
	}
	err = tx.db.Model(&models.Entry{}).Select(`transfers."key"`, "entries.amount").
		Joins("JOIN transfers ON transfers.id = entries.transfer_id").
		Where(`entries.account_code = ? AND SUBSTR(transfers."key", 1, ?) = ?`, models.WalletCode(account), len(prefix), prefix).Find(&rows).Error
	if err != nil {
		return t, err
	}
	for _, r := range rows {
		to, err := strconv.ParseInt(strings.TrimPrefix(r.Key, prefix), 10, 64)
		if err != nil {
			return t, fmt.Errorf("key %s of a posting: %w", r.Key, err)
		}
		t.Posted, t.PostedTo = t.Posted-r.Amount, max(t.PostedTo, to)
	}
	return t, tx.db.Model(&models.InvoicedPart{}).Select("COALESCE(MAX(to_seconds), 0)").Where("span_id = ?", id).Scan(&t.InvoicedTo).Error
}

// spansPerStatement keeps a statement small: the SQLite driver looks through all
// parameters for each, so a thousand spans in one took five times as long. It
// also keeps below the most that SQLite takes (32,766).
const spansPerStatement = 50

// SaveSpans writes what metering, posting and invoicing change of spans, in few
// statements however many there are. Their wallets must be locked.
func (tx *Tx) SaveSpans(list ...models.UsageSpan) error {
	for some := range slices.Chunk(list, spansPerStatement) {
		err := tx.db.Clauses(clause.OnConflict{
			Columns: []clause.Column{{Name: "id"}},
			DoUpdates: clause.AssignmentColumns([]string{"state", "end_at", "cap_seconds", "cursor", "charged", "posted", "posted_to",
				"invoiced_to", "reported", "close_reason", "updated_at"}),
		}).Create(&some).Error
		if err != nil {
			return err
		}
	}
	return nil
}

// OpenRun is of a span what decides how long its money lasts.
type OpenRun struct {
	InstanceID         models.InstanceID
	State              string
	PricePerHour       money.Rate
	StartAt            models.Instant
	Cursor, CapSeconds int64
}

// OpenRuns lists an account's spans that may still be charged, by id. Every page
// asks, and an account may have thousands: so it is only what is needed, scanned
// without reflection.
func (tx *Tx) OpenRuns(id models.AccountID) (list []OpenRun, err error) {
	rows, err := tx.db.Model(&models.UsageSpan{}).Select("instance_id", "state", "price_per_hour", "start_at", "cursor", "cap_seconds").
		Where("account_id = ? AND state <> ?", id, models.SpanClosed).Order("id").Rows()
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var r OpenRun
		if err := rows.Scan(&r.InstanceID, &r.State, &r.PricePerHour, &r.StartAt, &r.Cursor, &r.CapSeconds); err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, rows.Err()
}

// UnpostedSpans lists an account's spans whose charge is not all in the ledger.
func (tx *Tx) UnpostedSpans(id models.AccountID) (list []models.UsageSpan, err error) {
	return tx.readSpans("id", `account_id = ? AND "charged" > "posted"`, id)
}

// UninvoicedSpans lists an account's spans that have seconds on no invoice, in
// the order they ran.
func (tx *Tx) UninvoicedSpans(id models.AccountID) (list []models.UsageSpan, err error) {
	return tx.readSpans("start_at, id", `account_id = ? AND "cursor" > "invoiced_to"`, id)
}

// AccountsAccruing lists the accounts that have charges not yet in the ledger.
func (tx *Tx) AccountsAccruing() (list []models.AccountID, err error) {
	return list, tx.db.Model(&models.UsageSpan{}).Distinct().Where(`"charged" > "posted"`).Order("account_id").Pluck("account_id", &list).Error
}

// AccountsUninvoiced lists the accounts that have seconds on no invoice.
func (tx *Tx) AccountsUninvoiced() (list []models.AccountID, err error) {
	return list, tx.db.Model(&models.UsageSpan{}).Distinct().Where(`"cursor" > "invoiced_to"`).Order("account_id").Pluck("account_id", &list).Error
}

// UsageSpans lists an account's spans, of one instance or (empty) of all, newest
// first, after the span named by the cursor (empty: from the start), and the
// cursor of the next page (empty: the last).
func (tx *Tx) UsageSpans(id models.AccountID, instance models.InstanceID, cursor string, limit int) (list []models.UsageSpan, next string, err error) {
	q := tx.db.Where("account_id = ?", id)
	if instance != "" {
		q = q.Where("instance_id = ?", instance)
	}
	if cursor != "" {
		after, err := tx.Span(models.SpanID(cursor))
		if err != nil || after.AccountID != id {
			return nil, "", badCursor(cursor)
		}
		q = q.Where("start_at < ? OR (start_at = ? AND id < ?)", after.StartAt, after.StartAt, after.ID)
	}
	if err := q.Order("start_at DESC, id DESC").Limit(limit + 1).Find(&list).Error; err != nil {
		return nil, "", err
	}
	if len(list) > limit {
		list = list[:limit]
		next = string(list[limit-1].ID)
	}
	return list, next, nil
}

// SpansAfter lists up to limit spans of all accounts in the order of their ids,
// for walking over all of them.
func (tx *Tx) SpansAfter(id models.SpanID, limit int) (list []models.UsageSpan, err error) {
	return list, tx.db.Order("id").Limit(limit).Find(&list, "id > ?", id).Error
}
