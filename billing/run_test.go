package billing_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/billing"
	"berth/models"
	"berth/models/store"
	"berth/models/store/storetest"
	"berth/money"
)

// until waits for a condition, on the events that may bring it about.
func until(t *testing.T, watch *store.Watch, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for !ok() {
		select {
		case <-watch.C():
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// Run takes a webhook as it comes, and ends when told.
func TestRunProcessesTheInbox(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		x := newTill(t, st)
		account := x.account(0)
		watch := st.Watch("account:" + string(account))
		defer watch.Close()
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 2)
		go func() { done <- x.Run(ctx) }()
		go func() { done <- x.double.Run(ctx) }()
		x.card(x.topup(account, fifty), "4242424242424242")
		until(t, watch, "the credit", func() bool { return x.balance(account) == fifty })
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// D10 and more: everything at once, on one wallet: reports from several nodes, repeated and in
// any order, top-ups told several times, launches, posts, invoices. No error, no
// deadlock, nothing below zero, and not a micro-unit lost.
func TestStorm(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		b := newBench(t, st)
		account, other := b.account(money.Unit), b.account(1000*money.Unit)
		rates := []money.Rate{390_000, 1_990_000, 31_920_000, 2_490_000}
		var spans []models.SpanID
		for i, rate := range rates {
			spans = append(spans, b.open(b.instance(account, fmt.Sprint("s", i), rate), noon))
		}
		elsewhere := b.open(b.instance(other, "o", 3_600_000), noon)
		var all sync.WaitGroup
		fail := func(err error) {
			if err != nil {
				t.Error(err)
			}
		}
		for worker := range 6 {
			all.Go(func() {
				dice := rand.New(rand.NewPCG(uint64(worker), 7))
				for step := int64(1); step <= 40; step++ {
					at := step*4 + dice.Int64N(8)
					switch dice.IntN(8) {
					case 0:
						fail(b.try(func(tx *store.Tx) error {
							w, err := tx.LockWallet(account)
							if err != nil {
								return err
							}
							_, err = tx.Post(models.Transfer{Key: fmt.Sprint("pay:pi_", step%3), Kind: "topup", At: noon},
								models.Leg{Code: w.Code, Amount: money.Unit / 2}, models.Leg{Code: models.ClearingCode("USD"), Amount: -money.Unit / 2})
							return err
						}))
					case 1:
						fail(b.PostAccrued(context.Background(), sec(at)))
					case 2:
						ref := billing.LaunchRef(models.InstanceID(fmt.Sprint("ins_", worker, "_", step)), 1)
						err := b.try(func(tx *store.Tx) error { return b.Hold(tx, account, ref, 390_000, sec(at)) })
						if err != nil && !models.HasCode(err, models.InsufficientFunds) {
							fail(err)
						}
						fail(b.try(func(tx *store.Tx) error { return b.Release(tx, ref, sec(at)) }))
					case 3:
						fail(b.try(func(tx *store.Tx) error { _, err := b.PaidSeconds(tx, account, sec(at)); return err }))
					case 4:
						_, err := b.CloseInvoice(context.Background(), account, sec(at), sec(500))
						if err != nil && !models.HasCode(err, models.Conflict) {
							fail(err)
						}
					case 5:
						fail(b.try(func(tx *store.Tx) error {
							_, err := b.Report(tx, spans[dice.IntN(len(spans))], at+dice.Int64N(20), sec(at))
							return err
						}))
					default: // a node's tick, with spans of both accounts
						readings := []billing.Reading{{Span: elsewhere, Seconds: at}}
						for _, id := range spans {
							readings = append(readings, billing.Reading{Span: id, Seconds: at - dice.Int64N(6)})
						}
						fail(b.try(func(tx *store.Tx) error { _, err := b.ReportAll(tx, readings, sec(at)); return err }))
					}
				}
			})
		}
		all.Wait()
		var charged money.Amount
		for _, id := range append(spans, elsewhere) {
			b.in(func(tx *store.Tx) error { return b.Close(tx, id, nil, "stopped", sec(600)) })
			if u := b.span(id); u.AccountID == account {
				charged += u.Charged
			}
		}
		var paid money.Amount
		for _, row := range b.ledger(account) {
			if row.Kind == "topup" {
				paid += row.Amount
			}
			if row.BalanceAfter < 0 {
				t.Errorf("the balance was %d after %s", row.BalanceAfter, row.Key)
			}
		}
		w := b.wallet(account, sec(600))
		same(t, "balance", w.Balance, paid-charged)
		same(t, "held", w.Held, 0)
		same(t, "accrued", w.Accrued, 0)
	})
}

// Verify says what is wrong with a span, in words.
func TestVerifySeesAWrongSpan(t *testing.T) {
	st := storetest.SQLite(t)
	b := newBench(t, st)
	account := b.account(10 * money.Unit)
	id := b.open(b.instance(account, "x", 3_600_000), noon)
	b.report(id, 100, sec(100))
	good := b.span(id)
	for what, change := range map[string]func(*models.UsageSpan){
		"cost":        func(u *models.UsageSpan) { u.Charged++ },
		"invoices":    func(u *models.UsageSpan) { u.InvoicedTo = 200 },
		"capped":      func(u *models.UsageSpan) { u.CapSeconds = 50 },
		"posted":      func(u *models.UsageSpan) { u.PostedTo = 120 },
		"closed":      func(u *models.UsageSpan) { u.State = models.SpanClosed },
		"has an end":  func(u *models.UsageSpan) { u.EndAt = noon },
		"a negative ": func(u *models.UsageSpan) { u.Cursor = -1 },
	} {
		bad := good
		change(&bad)
		b.in(func(tx *store.Tx) error { return tx.SaveSpans(bad) })
		broken, err := b.Verify(context.Background())
		if err != nil || !strings.Contains(strings.Join(broken, "\n"), what) {
			t.Errorf("%s: %v, %v", what, broken, err)
		}
	}
	b.in(func(tx *store.Tx) error { return tx.SaveSpans(good) })
}
