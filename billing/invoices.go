package billing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"berth/billing/invoice"
	"berth/models"
	"berth/models/store"
)

// closeWaits is how long a month's invoice waits for nodes that have not reported
// past the month's end.
const closeWaits = 24 * time.Hour

// MonthToDate is an account's document as it would be if its month ended now: no
// number, and nothing is recorded.
func (s *Service) MonthToDate(ctx context.Context, account models.AccountID, at models.Instant) (doc Document, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		d, err := s.draft(tx, account, at, at)
		doc = d.doc
		return err
	})
	return doc, err
}

// CloseInvoice closes an account's invoice over all seconds that began before
// until and are on no invoice yet. Closing the same period again gives the same
// invoice; it never changes after. Seconds reported later go on the next one. It
// fails with Conflict when nothing was used, or until lies in a period that is
// closed or in the future.
func (s *Service) CloseInvoice(ctx context.Context, account models.AccountID, until, at models.Instant) (inv models.Invoice, err error) {
	if until > at {
		return inv, &models.Problem{Code: models.Conflict, What: "A period cannot be closed before it has ended.", Next: "Close it up to now."}
	}
	err = s.store.InTx(ctx, func(tx *store.Tx) error {
		inv, err = s.closeInvoice(tx, account, until, at)
		return err
	})
	return inv, err
}

func (s *Service) closeInvoice(tx *store.Tx, account models.AccountID, until, at models.Instant) (inv models.Invoice, err error) {
	wallet, err := tx.LockWallet(account)
	if err != nil {
		return inv, err
	}
	last, ok, err := tx.LastInvoice(account)
	if err != nil || ok && last.PeriodEnd == until {
		return last, err
	}
	if ok && last.PeriodEnd > until {
		return inv, &models.Problem{Code: models.Conflict, What: "This period is closed, by invoice " + last.Number + ".", Next: "Close a later moment."}
	}
	// Invoiced means posted: the ledger leads.
	if err := s.post(tx, account, at); err != nil {
		return inv, err
	}
	d, err := s.draft(tx, account, until, at)
	if err != nil {
		return inv, err
	}
	if len(d.doc.Lines) == 0 {
		return inv, &models.Problem{Code: models.Conflict, What: "Nothing was used that is not on an invoice.", Next: "Close it after the next usage."}
	}
	series := fmt.Sprintf("B-%d", at.Time().Year())
	number, err := tx.NextNumber(series)
	if err != nil {
		return inv, err
	}
	d.doc.Number = fmt.Sprintf("%s-%06d", series, number)
	frozen, err := json.Marshal(d.doc)
	if err != nil {
		return inv, err
	}
	inv = models.Invoice{ID: models.InvoiceID(store.NewID("inv", at.Time())), AccountID: account, Number: d.doc.Number,
		State: models.InvoiceFinal, Currency: wallet.Currency, PeriodStart: models.At(d.doc.PeriodStart), PeriodEnd: until,
		Total: d.doc.Total, Carry: d.doc.CarryOut, Document: frozen, CreatedAt: at}
	for i := range d.parts {
		d.parts[i].InvoiceID = inv.ID
	}
	if err := tx.InsertInvoice(inv, d.parts); err != nil {
		return inv, err
	}
	return inv, tx.SaveSpans(d.spans...)
}

// CloseMonths closes every month that has ended and whose usage is all reported,
// or ended a day ago. Running it again changes nothing. What is wrong with one
// account keeps no other from its invoice.
func (s *Service) CloseMonths(ctx context.Context, at models.Instant) error {
	var accounts []models.AccountID
	if err := s.store.View(ctx, func(tx *store.Tx) (err error) { accounts, err = tx.AccountsUninvoiced(); return err }); err != nil {
		return fmt.Errorf("list accounts to invoice: %w", err)
	}
	var errs []error
	for _, account := range accounts {
		for closed := true; closed; {
			err := s.store.InTx(ctx, func(tx *store.Tx) (err error) {
				closed, err = s.closeNextMonth(tx, account, at)
				return err
			})
			if err != nil {
				errs = append(errs, fmt.Errorf("invoice of account %s: %w", account, err))
				break
			}
		}
	}
	return errors.Join(errs...)
}

// closeNextMonth closes the oldest month of an account that has ended and is not
// on an invoice; false when there is none to close yet.
func (s *Service) closeNextMonth(tx *store.Tx, account models.AccountID, at models.Instant) (bool, error) {
	if _, err := tx.LockWallet(account); err != nil {
		return false, err
	}
	payer, err := tx.Account(account)
	if err != nil {
		return false, err
	}
	zone, err := zoneOf(payer)
	if err != nil {
		return false, err
	}
	spans, err := tx.UninvoicedSpans(account)
	if err != nil || len(spans) == 0 {
		return false, err
	}
	last, _, err := tx.LastInvoice(account)
	if err != nil {
		return false, err
	}
	oldest := spans[0]
	for _, u := range spans[1:] {
		if after(u.StartAt, u.InvoicedTo) < after(oldest.StartAt, oldest.InvoicedTo) {
			oldest = u
		}
	}
	// What is older than the last invoice is late, and goes on the next one.
	border := nextMonth(max(after(oldest.StartAt, oldest.InvoicedTo), last.PeriodEnd), zone)
	if border > at {
		return false, nil
	}
	if at < border.Add(closeWaits) {
		if wait, err := awaited(tx, account, border); err != nil || wait {
			return false, err
		}
	}
	_, err = s.closeInvoice(tx, account, border, at)
	return err == nil, err
}

// awaited tells whether a run that was on before the border may still report
// seconds before it.
func awaited(tx *store.Tx, account models.AccountID, border models.Instant) (bool, error) {
	open, err := tx.OpenRuns(account)
	for _, u := range open {
		if u.StartAt < border && after(u.StartAt, u.Cursor) < border && (u.CapSeconds < 0 || u.Cursor < u.CapSeconds) {
			return true, err
		}
	}
	return false, err
}

// Invoices lists an account's closed invoices without their documents, newest
// first, after the cursor (empty: from the start), and the cursor of the next
// page (empty: the last).
func (s *Service) Invoices(ctx context.Context, account models.AccountID, cursor string, limit int) (list []models.Invoice, next string, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) (err error) {
		list, next, err = tx.Invoices(account, cursor, limit)
		return err
	})
	return list, next, err
}

// Invoice reads one of an account's closed invoices with its frozen document. It
// fails with a NotFound Problem.
func (s *Service) Invoice(ctx context.Context, account models.AccountID, id models.InvoiceID) (inv models.Invoice, doc Document, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) (err error) { inv, err = tx.Invoice(account, id); return err })
	if err != nil {
		return inv, doc, err
	}
	if err := json.Unmarshal(inv.Document, &doc); err != nil {
		return inv, doc, fmt.Errorf("document of invoice %s: %w", inv.Number, err)
	}
	return inv, doc, nil
}

// PDF draws a document. The same document gives the same bytes.
func (s *Service) PDF(doc Document) ([]byte, error) { return invoice.PDF(doc) }

// InvoicePDF draws a closed invoice. How it looked the first time is remembered by
// its hash; a later Berth that draws it otherwise says so in the log.
func (s *Service) InvoicePDF(ctx context.Context, account models.AccountID, id models.InvoiceID) ([]byte, error) {
	inv, doc, err := s.Invoice(ctx, account, id)
	if err != nil {
		return nil, err
	}
	pdf, err := invoice.PDF(doc)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(pdf)
	hash := hex.EncodeToString(sum[:])
	if inv.PDFHash == "" {
		return pdf, s.store.InTx(ctx, func(tx *store.Tx) error { return tx.SetPDFHash(id, hash) })
	}
	if inv.PDFHash != hash {
		s.log.Warn("an invoice is drawn otherwise than at first; its figures are the same", "invoice", inv.Number)
	}
	return pdf, nil
}
