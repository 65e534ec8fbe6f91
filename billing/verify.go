package billing

import (
	"context"
	"fmt"

	"berth/models"
	"berth/models/store"
	"berth/money"
)

// Verify checks the rules that always hold, on one consistent view of the
// database, and returns a sentence for each that is broken: none, and all is well.
func (s *Service) Verify(ctx context.Context) (broken []string, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		if broken, err = tx.Audit(); err != nil {
			return err
		}
		for _, check := range []func(*store.Tx) ([]string, error){verifySpans, verifyInvoices} {
			more, err := check(tx)
			if err != nil {
				return err
			}
			broken = append(broken, more...)
		}
		return nil
	})
	return broken, err
}

// verifySpans checks every span's arithmetic.
func verifySpans(tx *store.Tx) (broken []string, err error) {
	last := models.SpanID("")
	for {
		spans, err := tx.SpansAfter(last, 1000)
		if err != nil || len(spans) == 0 {
			return broken, err
		}
		for _, u := range spans {
			last = u.ID
			if what := spanFault(u); what != "" {
				broken = append(broken, fmt.Sprintf("usage span %s: %s", u.ID, what))
			}
		}
	}
}

func spanFault(u models.UsageSpan) string {
	switch {
	case u.Cursor < 0 || u.PricePerHour < 0:
		return "a negative figure"
	case u.Charged != u.PricePerHour.For(u.Cursor):
		return fmt.Sprintf("%d s at %d an hour cost %d, not %d", u.Cursor, u.PricePerHour, u.PricePerHour.For(u.Cursor), u.Charged)
	case u.PostedTo > u.Cursor || u.Posted != u.PricePerHour.For(u.PostedTo):
		return fmt.Sprintf("posted %d for %d s of %d", u.Posted, u.PostedTo, u.Cursor)
	case u.InvoicedTo > u.Cursor:
		return fmt.Sprintf("%d s are on invoices, %d were run", u.InvoicedTo, u.Cursor)
	case u.CapSeconds >= 0 && u.Cursor > u.CapSeconds:
		return fmt.Sprintf("%d s are charged, it was capped at %d", u.Cursor, u.CapSeconds)
	case u.State == models.SpanClosed && (u.EndAt != after(u.StartAt, u.Cursor) || u.Posted != u.Charged):
		return "closed, but its end or its postings do not fit its seconds"
	case u.State != models.SpanClosed && !u.EndAt.IsZero():
		return "open, but it has an end"
	}
	return ""
}

// verifyInvoices checks that an account's invoices bill what their parts cost, to
// within the carry.
func verifyInvoices(tx *store.Tx) (broken []string, err error) {
	sums, err := tx.InvoiceSums()
	for _, sum := range sums {
		c, err := money.LookupCurrency(sum.Currency)
		if err != nil {
			return nil, err
		}
		if sum.Carry < -c.Minor()/2 || sum.Carry >= c.Minor()/2 || sum.Total+sum.Carry != sum.Parts {
			broken = append(broken, fmt.Sprintf("account %s: its invoices are %d and carry %d, for usage of %d", sum.AccountID, sum.Total, sum.Carry, sum.Parts))
		}
	}
	return broken, err
}
