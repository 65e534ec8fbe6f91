package billing_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"berth/billing/stripedouble"
	"berth/models"
	"berth/models/store"
	"berth/models/store/storetest"
	"berth/money"
)

func (x *till) frozen(account models.AccountID) (frozen bool) {
	x.t.Helper()
	x.in(func(tx *store.Tx) error {
		a, err := tx.Account(account)
		frozen = a.Frozen
		return err
	})
	return frozen
}

// A38: refund, dispute, dispute won; everything is told twice.
func TestRefundThenDisputeThenWon(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		x := newTill(t, st)
		if err := x.double.SetFaults(stripedouble.Faults{Duplicate: 1}); err != nil {
			t.Fatal(err)
		}
		account := x.account(0)
		top := x.topup(account, fifty)
		x.card(top, "4242424242424242")
		x.deliver()
		intent := x.state(top).PaymentIntent
		same(t, "paid", x.balance(account), fifty)

		x.control("refunds", map[string]any{"payment_intent": intent, "amount": 2000})
		x.deliver()
		same(t, "after the refund", x.balance(account), 30*money.Unit)

		d := x.control("disputes", map[string]any{"payment_intent": intent})
		x.deliver()
		same(t, "after the dispute", x.balance(account), 0)
		same(t, "frozen", x.frozen(account), true)

		x.control(fmt.Sprintf("disputes/%s/win", d["id"]), nil)
		x.deliver()
		same(t, "after it was won", x.balance(account), 30*money.Unit)
		same(t, "frozen", x.frozen(account), false)
		want := []string{"topup 50000000", "refund -20000000", "dispute -30000000", "dispute_won 30000000"}
		if got := x.rowKinds(account); !slices.Equal(got, want) {
			t.Errorf("rows %v, want %v", got, want)
		}
	})
}

// A8: money that was spent is owed; refunds are told by a sum that only grows.
func TestReversalsOfSpentMoney(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		x := newTill(t, st)
		t.Run("a chargeback", func(t *testing.T) {
			account := x.account(0)
			top := x.topup(account, 1000*money.Unit)
			x.card(top, "4242424242424242")
			x.deliver()
			in := x.instance(account, "x", 3_600_000)
			id := x.open(in, noon)
			x.report(id, 50_000, sec(50_000))
			d := x.control("disputes", map[string]any{"payment_intent": x.state(top).PaymentIntent})
			x.deliver()
			w := x.wallet(account, sec(50_000))
			same(t, "balance", w.Balance, -50*money.Unit)
			same(t, "what accrued is posted", w.Accrued, 0)
			if err := x.hold(account, "new", 1_000_000, noon); !models.HasCode(err, models.AccountFrozen) {
				t.Errorf("a launch: %v", err)
			}
			same(t, "what runs may not go on", x.paid(account, sec(50_000))[in.ID], 50_000)
			if got := x.report(id, 50_010, sec(50_010)); !got.Exhausted || got.Charged != 0 {
				t.Errorf("a report: %+v", got)
			}
			x.control(fmt.Sprintf("disputes/%s/lose", d["id"]), nil)
			x.deliver()
			same(t, "balance", x.balance(account), -50*money.Unit)
			same(t, "still frozen", x.frozen(account), true)
		})
		t.Run("partial refunds", func(t *testing.T) {
			account := x.account(0)
			top := x.topup(account, 100*money.Unit)
			x.card(top, "4242424242424242")
			x.deliver()
			intent := x.state(top).PaymentIntent
			x.control("refunds", map[string]any{"payment_intent": intent, "amount": 3000})
			x.control("refunds", map[string]any{"payment_intent": intent, "amount": 7000})
			x.deliver()
			same(t, "balance", x.balance(account), 0)
			same(t, "rows", len(x.ledger(account)), 3)
		})
		t.Run("a refund that the bank does not take", func(t *testing.T) {
			account := x.account(0)
			top := x.topup(account, fifty)
			x.card(top, "4242424242424242")
			x.deliver()
			re := x.control("refunds", map[string]any{"payment_intent": x.state(top).PaymentIntent})
			x.deliver()
			same(t, "refunded", x.balance(account), 0)
			x.control(fmt.Sprintf("refunds/%s/fail", re["id"]), nil)
			x.deliver()
			same(t, "brought back", x.balance(account), fifty)
		})
		t.Run("an inquiry takes nothing", func(t *testing.T) {
			account := x.account(0)
			top := x.topup(account, fifty)
			x.card(top, "4242424242424242")
			x.deliver()
			x.control("disputes", map[string]any{"payment_intent": x.state(top).PaymentIntent, "inquiry": true})
			x.deliver()
			same(t, "balance", x.balance(account), fifty)
			same(t, "frozen", x.frozen(account), false)
		})
	})
}

// A card that pays and is then disputed.
func TestDisputedCard(t *testing.T) {
	x := newTill(t, storetest.SQLite(t))
	account := x.account(0)
	x.card(x.topup(account, fifty), "4000000000000259")
	x.deliver()
	same(t, "balance", x.balance(account), 0)
	same(t, "frozen", x.frozen(account), true)
}

// Whatever the provider and the network do, and wherever the portal is killed, the
// ledger ends as it does when all goes well.
func TestFaultsLeaveTheSameLedger(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		x := newTill(t, st)
		scenario := func(disturb func(step int)) (ledgers [][]string) {
			var accounts []models.AccountID
			for i := range 4 {
				account := x.account(0)
				accounts = append(accounts, account)
				disturb(i)
				top, err := x.start(account, fifty, "k")
				for try := 0; err != nil; try++ {
					if try == 5 || !models.HasCode(err, models.Unavailable) {
						t.Fatal(err)
					}
					top, err = x.start(account, fifty, "k")
				}
				x.card(top, []string{"4242424242424242", "delayed_success", "4000000000000259", "4242424242424242"}[i])
				if i == 1 {
					x.control("settle/"+top.SessionID, nil)
				}
				// The payment's id is known to the payer's bank, not yet to us.
				if i == 3 {
					if _, err := x.SyncTopup(t.Context(), top.ID, rightNow()); err != nil && !models.HasCode(err, models.Unavailable) {
						t.Fatal(err)
					}
					x.deliver()
					intent := x.state(top).PaymentIntent
					first := x.control("refunds", map[string]any{"payment_intent": intent, "amount": 1000})
					x.control("refunds", map[string]any{"payment_intent": intent, "amount": 500})
					x.control(fmt.Sprintf("refunds/%s/fail", first["id"]), nil)
					d := x.control("disputes", map[string]any{"payment_intent": intent, "amount": 2000})
					x.control(fmt.Sprintf("disputes/%s/win", d["id"]), nil)
				}
			}
			x.deliver()
			if err := x.double.SetFaults(stripedouble.Faults{}); err != nil {
				t.Fatal(err)
			}
			if err := x.ReconcileTopups(t.Context(), rightNow().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			x.deliver()
			for _, account := range accounts {
				rows := x.rowKinds(account)
				slices.Sort(rows)
				ledgers = append(ledgers, append(rows, fmt.Sprint("balance ", x.balance(account), x.frozen(account))))
			}
			return ledgers
		}
		want := scenario(func(int) {})
		for name, f := range map[string]stripedouble.Faults{
			"duplicate and reorder": {Duplicate: 3, Reorder: true},
			"drop and delay":        {DropEvery: 2, DelayMS: 5},
			"spoilt signatures":     {WrongSignatureEvery: 2, StaleTimestampEvery: 3},
			"refusals":              {HTTP503Next: 4, HTTP409Next: 1},
			"answers lost":          {TimeoutAfterCommitNext: 4},
			"all at once": {Duplicate: 2, Reorder: true, DelayMS: 3, DropEvery: 3, WrongSignatureEvery: 4, StaleTimestampEvery: 5,
				HTTP503Next: 1, HTTP409Next: 1, TimeoutAfterCommitNext: 1},
		} {
			t.Run(name, func(t *testing.T) {
				got := scenario(func(step int) {
					if step == 0 || step == 3 {
						if err := x.double.SetFaults(f); err != nil {
							t.Fatal(err)
						}
					}
					x.restart()
				})
				for i := range want {
					if !slices.Equal(got[i], want[i]) {
						t.Errorf("account %d: %v, want %v", i, got[i], want[i])
					}
				}
			})
		}
		t.Log(want)
	})
}
