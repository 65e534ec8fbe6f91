package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"berth/models"
	"berth/models/store"
	"berth/models/store/storetest"
	"berth/money"
)

var midday = models.At(time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC))

// books opens the ledger accounts that these tests move money between.
func books(t *testing.T, s *store.Store) {
	t.Helper()
	for range 2 { // opening twice changes nothing
		inTx(t, s, func(tx *store.Tx) error {
			if err := tx.OpenLedgerAccounts("JPY", "wallet:yen"); err != nil {
				return err
			}
			return tx.OpenLedgerAccounts("USD", "wallet:a", "revenue:a", "stripe:USD")
		})
	}
}

func post(s *store.Store, key, kind string, legs ...models.Leg) (posted bool, err error) {
	err = s.InTx(context.Background(), func(tx *store.Tx) error {
		posted, err = tx.Post(models.Transfer{Key: key, Kind: kind, Reason: "test", At: midday}, legs...)
		return err
	})
	return posted, err
}

func legs(amount money.Amount) []models.Leg {
	return []models.Leg{{Code: "wallet:a", Amount: amount}, {Code: "stripe:USD", Amount: -amount}}
}

func audit(t *testing.T, s *store.Store) (broken []string) {
	t.Helper()
	if err := s.View(context.Background(), func(tx *store.Tx) (err error) { broken, err = tx.Audit(); return err }); err != nil {
		t.Fatal(err)
	}
	return broken
}

func TestPost(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, s *store.Store) {
		books(t, s)
		for want := range 2 {
			posted, err := post(s, "pay:1", "topup", legs(500)...)
			if err != nil || posted != (want == 0) {
				t.Errorf("time %d: posted %t, %v", want+1, posted, err)
			}
		}
		reordered := legs(500)
		reordered[0], reordered[1] = reordered[1], reordered[0]
		if posted, err := post(s, "pay:1", "topup", reordered...); err != nil || posted {
			t.Errorf("the order of legs matters: %v", err)
		}
		for name, tc := range map[string]struct {
			key, kind string
			legs      []models.Leg
			is        error
		}{
			"the key with another amount": {"pay:1", "topup", legs(501), store.ErrTransferDiffers},
			"the key as another kind":     {"pay:1", "refund", legs(500), store.ErrTransferDiffers},
			"legs that do not sum":        {"x", "topup", []models.Leg{{Code: "wallet:a", Amount: 1}, {Code: "stripe:USD", Amount: -2}}, nil},
			"one leg":                     {"x", "topup", []models.Leg{{Code: "wallet:a"}}, nil},
			"one account twice":           {"x", "topup", []models.Leg{{Code: "wallet:a", Amount: 1}, {Code: "wallet:a", Amount: -1}}, nil},
			"no key":                      {"", "topup", legs(1), nil},
			"no kind":                     {"x", "", legs(1), nil},
			"two currencies":              {"x", "topup", []models.Leg{{Code: "wallet:yen", Amount: 1}, {Code: "stripe:USD", Amount: -1}}, nil},
			"no such account":             {"x", "topup", []models.Leg{{Code: "wallet:z", Amount: 1}, {Code: "stripe:USD", Amount: -1}}, nil},
		} {
			if _, err := post(s, tc.key, tc.kind, tc.legs...); err == nil || tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("%s: %v", name, err)
			}
		}
		inTx(t, s, func(tx *store.Tx) error {
			w, err := tx.LedgerAccount("wallet:a")
			if w.Balance != 500 || w.Version != 1 {
				t.Errorf("wallet %+v", w)
			}
			return err
		})
		if broken := audit(t, s); len(broken) > 0 {
			t.Error(broken)
		}
	})
}

// Eight at once, each key posted by all of them: every transfer happens once,
// versions have no gap, and none waits for another for ever.
func TestPostStorm(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, s *store.Store) {
		books(t, s)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for i := range 30 {
					moved := legs(money.Amount(i + 1))
					if i%2 == 1 {
						moved = []models.Leg{{Code: "revenue:a", Amount: money.Amount(i)}, {Code: "wallet:a", Amount: money.Amount(-i)}}
					}
					if _, err := post(s, fmt.Sprint("k", i), "topup", moved...); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		var rows []store.LedgerEntry
		inTx(t, s, func(tx *store.Tx) error {
			cursor := ""
			for {
				page, next, err := tx.WalletEntries("a", cursor, 7)
				if err != nil {
					return err
				}
				rows = append(rows, page...)
				if cursor = next; next == "" {
					return nil
				}
			}
		})
		if len(rows) != 30 {
			t.Fatalf("%d entries, want 30", len(rows))
		}
		for i, e := range rows {
			if want := int64(30 - i); e.Version != want {
				t.Fatalf("entry %d has version %d", want, e.Version)
			}
		}
		if rows[0].BalanceAfter != 0 { // as much came in as went out
			t.Errorf("the balance ends at %d", rows[0].BalanceAfter)
		}
		if broken := audit(t, s); len(broken) > 0 {
			t.Error(broken)
		}
		inTx(t, s, func(tx *store.Tx) error {
			if _, _, err := tx.WalletEntries("a", "nonsense", 5); !models.HasCode(err, models.Invalid) {
				t.Errorf("a made-up cursor: %v", err)
			}
			return nil
		})
	})
}

// The check of the books sees what somebody did behind the ledger's back, and the
// database itself refuses to change what was posted.
func TestAuditSeesTampering(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, s *store.Store) {
		books(t, s)
		if _, err := post(s, "pay:1", "topup", legs(500)...); err != nil {
			t.Fatal(err)
		}
		for _, statement := range []string{"UPDATE entries SET amount = 1", "DELETE FROM entries", "UPDATE transfers SET kind = 'x'", "DELETE FROM transfers"} {
			if err := s.Exec(context.Background(), statement); err == nil {
				t.Errorf("%s went through", statement)
			}
		}
		for name, tc := range map[string]struct{ harm, heal string }{
			"a balance":  {"UPDATE ledger_accounts SET balance = balance + 1 WHERE code = 'wallet:a'", "UPDATE ledger_accounts SET balance = balance - 1 WHERE code = 'wallet:a'"},
			"a version":  {"UPDATE ledger_accounts SET version = version + 1 WHERE code = 'wallet:a'", "UPDATE ledger_accounts SET version = version - 1 WHERE code = 'wallet:a'"},
			"held":       {"UPDATE ledger_accounts SET held = 7 WHERE code = 'wallet:a'", "UPDATE ledger_accounts SET held = 0 WHERE code = 'wallet:a'"},
			"accrued":    {"UPDATE ledger_accounts SET accrued = 7 WHERE code = 'wallet:a'", "UPDATE ledger_accounts SET accrued = 0 WHERE code = 'wallet:a'"},
			"a counter":  {`INSERT INTO counters (series, "next") VALUES ('B-2026', 3)`, "DELETE FROM counters"},
			"below zero": {"UPDATE ledger_accounts SET held = 600 WHERE code = 'wallet:a'", "UPDATE ledger_accounts SET held = 0 WHERE code = 'wallet:a'"},
		} {
			if err := s.Exec(context.Background(), tc.harm); err != nil {
				t.Fatal(err)
			}
			if len(audit(t, s)) == 0 {
				t.Errorf("%s was changed, and nobody noticed", name)
			}
			if err := s.Exec(context.Background(), tc.heal); err != nil {
				t.Fatal(err)
			}
			if broken := audit(t, s); len(broken) > 0 {
				t.Errorf("%s was put right: %v", name, broken)
			}
		}
	})
}

func TestNumbersOfASeries(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, s *store.Store) {
		boom := errors.New("boom")
		for want := int64(1); want <= 3; want++ {
			if err := s.InTx(context.Background(), func(tx *store.Tx) error {
				if _, err := tx.NextNumber("B-2026"); err != nil {
					return err
				}
				return boom // gives the number back
			}); !errors.Is(err, boom) {
				t.Fatal(err)
			}
			inTx(t, s, func(tx *store.Tx) error {
				n, err := tx.NextNumber("B-2026")
				if n != want {
					t.Errorf("number %d, want %d", n, want)
				}
				return err
			})
		}
	})
}

// A second of a span cannot be on two invoices: the database refuses.
func TestASecondIsInvoicedOnce(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, s *store.Store) {
		insert := func(id, number string, end models.Instant, from int64) error {
			return s.InTx(context.Background(), func(tx *store.Tx) error {
				return tx.InsertInvoice(models.Invoice{ID: models.InvoiceID(id), AccountID: "a", Number: number, PeriodEnd: end, Document: []byte("{}")},
					[]models.InvoicedPart{{SpanID: "s.1", FromSeconds: from, ToSeconds: from + 10, InvoiceID: models.InvoiceID(id)}})
			})
		}
		if err := insert("inv_1", "B-1", 1, 0); err != nil {
			t.Fatal(err)
		}
		for name, err := range map[string]error{
			"the same seconds": insert("inv_2", "B-2", 2, 0),
			"the same number":  insert("inv_3", "B-1", 3, 10),
			"the same period":  insert("inv_4", "B-4", 1, 10),
		} {
			if err == nil {
				t.Errorf("%s twice", name)
			}
		}
		if err := insert("inv_5", "B-5", 5, 10); err != nil {
			t.Error(err)
		}
	})
}
