package billing_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"berth/billing"
	"berth/models"
	"berth/models/store"
	"berth/models/store/storetest"
)

// TestManyRunsOneInvoice: a script that launches 60 times a day has more runs in a
// month than one statement has parameters.
func TestManyRunsOneInvoice(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		b := newBench(t, st)
		acc := b.account(richEnough)
		const runs = 4000
		b.in(func(tx *store.Tx) error {
			for i := range runs {
				in := b.instance(acc, fmt.Sprintf("run-%04d", i), 0) // free, so that nothing is to be posted
				err := tx.InsertSpan(models.UsageSpan{ID: billing.SpanID(in), InstanceID: in.ID, AccountID: acc, Run: 1, InstanceName: in.Name, SKU: in.SKU,
					BillingMode: in.BillingMode, Currency: "USD", State: models.SpanClosed, StartAt: noon, EndAt: sec(10), CapSeconds: -1, Cursor: 10, UpdatedAt: noon})
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err := b.CloseMonths(context.Background(), date("UTC", 2026, time.December, 3, 0, 0, 0)); err != nil {
			t.Fatal(err)
		}
		list, _, err := b.Invoices(context.Background(), acc, "", 10)
		if err != nil || len(list) != 1 {
			t.Fatalf("%v: %d invoices", err, len(list))
		}
		if _, doc, err := b.Invoice(context.Background(), acc, list[0].ID); err != nil || len(doc.Lines) != runs {
			t.Errorf("%v: %d lines, want %d", err, len(doc.Lines), runs)
		}
	})
}

// TestOneBrokenAccount: what is wrong with one account keeps no other from its
// invoice and its postings.
func TestOneBrokenAccount(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		b := newBench(t, st)
		first, second := b.accountIn("USD", "Atlantic/Atlantis", richEnough), b.account(richEnough)
		for _, acc := range []models.AccountID{first, second} {
			id := b.open(b.instance(acc, "run", 3_600_000), noon)
			b.report(id, 100, sec(100))
		}
		at := date("UTC", 2026, time.December, 3, 0, 0, 0)
		if err := b.PostAccrued(context.Background(), at); err == nil {
			t.Error("a time zone that does not exist is no error")
		}
		if w := b.wallet(second, at); w.Accrued != 0 {
			t.Errorf("the other account's %d were not posted", w.Accrued)
		}
		if err := b.CloseMonths(context.Background(), at); err == nil {
			t.Error("a time zone that does not exist is no error")
		}
		if list, _, err := b.Invoices(context.Background(), second, "", 10); err != nil || len(list) != 1 {
			t.Errorf("%v: the other account's invoices: %+v", err, list)
		}
	})
}
