package billing_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/billing"
	"berth/models"
	"berth/models/store"
	"berth/models/store/storetest"
	"berth/money"
)

func (b *bench) hold(account models.AccountID, name string, rate money.Rate, at models.Instant) error {
	ref := billing.LaunchRef(b.instance(account, name, rate).ID, 1)
	return b.try(func(tx *store.Tx) error { return b.Hold(tx, account, ref, rate, at) })
}

func (b *bench) paid(account models.AccountID, at models.Instant) (paid map[models.InstanceID]int64) {
	b.t.Helper()
	b.in(func(tx *store.Tx) (err error) { paid, err = b.PaidSeconds(tx, account, at); return err })
	return paid
}

// A17: a hundred launches at one instant, one balance: what fits, and no more.
func TestHoldsRace(t *testing.T) {
	for name, tc := range map[string]struct {
		balance, each money.Amount
		fit           int
	}{
		"one of two":  {1_000_000, 750_000, 1},
		"a third":     {1_000_000, 30_000, 33},
		"to the last": {1_000_000, 10_000, 100},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.OnEach(t, func(t *testing.T, st *store.Store) {
				b := newBench(t, st)
				account := b.account(tc.balance)
				rate := money.Rate(tc.each * 60) // a minute of it is held
				errs := make([]error, 100)
				var all sync.WaitGroup
				for i := range errs {
					all.Go(func() { errs[i] = b.hold(account, fmt.Sprint(i), rate, noon) })
				}
				all.Wait()
				fit := 0
				for _, err := range errs {
					if err == nil {
						fit++
						continue
					}
					var p *models.Problem
					if !errors.As(err, &p) || p.Code != models.InsufficientFunds || *p.Have >= tc.each || *p.Need != tc.each || p.Currency != "USD" {
						t.Fatalf("refused with %v", err)
					}
				}
				same(t, "launches that fit", fit, tc.fit)
				w := b.wallet(account, noon)
				same(t, "held", w.Held, money.Amount(tc.fit)*tc.each)
				if w.Available < 0 {
					t.Errorf("available %d", w.Available)
				}
			})
		})
	}
}

func TestHold(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		b := newBench(t, st)
		account := b.account(money.Unit)
		for range 3 { // the ref makes it happen once
			if err := b.hold(account, "a", 1_990_000, noon); err != nil {
				t.Fatal(err)
			}
		}
		same(t, "a minute at 1.99, rounded up", b.wallet(account, noon).Held, 33_167)
		w := b.wallet(account, noon)
		same(t, "available", w.Available, money.Unit-33_167)

		ref := billing.LaunchRef(b.instance(account, "a", 0).ID, 1)
		b.in(func(tx *store.Tx) error { return b.Release(tx, ref, noon) })
		if err := b.hold(account, "a", 1_990_000, noon); !models.HasCode(err, models.Conflict) {
			t.Errorf("a released hold came back: %v", err)
		}
		b.in(func(tx *store.Tx) error { return tx.SetFrozen(account, true) })
		if err := b.hold(account, "b", 1_990_000, noon); !models.HasCode(err, models.AccountFrozen) {
			t.Errorf("a frozen account launches: %v", err)
		}
		if err := b.hold("acc_none", "b", 1_990_000, noon); !models.HasCode(err, models.NotFound) {
			t.Errorf("nobody launches: %v", err)
		}
	})
}

func TestForgottenHoldsExpire(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		b := newBench(t, st)
		account := b.account(money.Unit)
		if err := b.hold(account, "a", 1_990_000, noon); err != nil {
			t.Fatal(err)
		}
		for _, tc := range []struct {
			later time.Duration
			held  money.Amount
		}{{23 * time.Hour, 33_167}, {24 * time.Hour, 0}, {25 * time.Hour, 0}} {
			if err := b.ReleaseExpired(context.Background(), noon.Add(tc.later)); err != nil {
				t.Fatal(err)
			}
			same(t, tc.later.String(), b.wallet(account, noon).Held, tc.held)
		}
	})
}

// Rows 13 to 15 and 17: how long the money lasts, to the second.
func TestPaidSeconds(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		b := newBench(t, st)
		t.Run("13: one run", func(t *testing.T) {
			account := b.account(5 * money.Unit)
			in := b.instance(account, "x", 2_490_000)
			id := b.open(in, noon)
			same(t, "paid", b.paid(account, noon)[in.ID], 7228)
			same(t, "after 100 unreported seconds", b.paid(account, sec(100))[in.ID], 7228)
			same(t, "runs out", b.wallet(account, sec(100)).RunsOutAt, sec(7228))
			b.report(id, 7228, sec(7228))
			same(t, "charged", b.span(id).Charged, 4_999_366)
			same(t, "left", b.wallet(account, noon).Available, 634)
			same(t, "paid at the end", b.paid(account, sec(7228))[in.ID], 7228)
			b.pay(account, "pi_13", 5*money.Unit)
			if got := b.paid(account, sec(7228))[in.ID]; got < 7228+7228 {
				t.Errorf("paid after a top-up: %d", got)
			}
		})
		t.Run("14, 15: two runs, then a top-up", func(t *testing.T) {
			account := b.account(money.Unit)
			small, large := b.instance(account, "small", 1_990_000), b.instance(account, "large", 31_920_000)
			s, l := b.open(small, noon), b.open(large, noon)
			paid := b.paid(account, noon)
			same(t, "small", paid[small.ID], 106)
			same(t, "large", paid[large.ID], 106)
			same(t, "burn", b.wallet(account, noon).Burn, 33_910_000)
			b.report(s, 60, sec(60))
			b.report(l, 60, sec(60))
			b.pay(account, "pi_15", money.Unit/2)
			same(t, "after 0.50 more", b.paid(account, sec(60))[large.ID], 159)
			b.in(func(tx *store.Tx) error { return b.Cap(tx, l, sec(70), "stop_asked") })
			paid = b.paid(account, sec(80))
			same(t, "a stopped run counts to its cap", paid[large.ID], 70)
			left := 1_500_000 - money.Rate(1_990_000).For(80) - money.Rate(31_920_000).For(70)
			same(t, "the other goes on", paid[small.ID], money.AffordableFor(left, 1_990_000, 80))
		})
		t.Run("a launch beside a run", func(t *testing.T) {
			account := b.account(50_000)
			run, launch := b.instance(account, "run", 1_990_000), b.instance(account, "launch", 1_990_000)
			b.open(run, noon)
			if err := b.hold(account, "launch", 1_990_000, noon); err != nil {
				t.Fatal(err)
			}
			paid := b.paid(account, noon)
			// 50,000 − 33,167 held: 30 s for the run, the minute it holds for the launch.
			same(t, "the run leaves the hold alone", paid[run.ID], 30)
			same(t, "the launch has its hold", paid[launch.ID], 60)
		})
		t.Run("a restart", func(t *testing.T) {
			account := b.account(10 * money.Unit)
			in := b.instance(account, "again", 3_600_000)
			id := b.open(in, noon)
			b.report(id, 50, sec(50))
			b.in(func(tx *store.Tx) error { return b.Cap(tx, id, sec(50), "restart_asked") })
			b.in(func(tx *store.Tx) error {
				return b.Hold(tx, account, billing.LaunchRef(in.ID, 2), in.PricePerHour, sec(50))
			})
			same(t, "the new run counts", b.paid(account, sec(50))[in.ID], 9950)
		})
		t.Run("nothing runs", func(t *testing.T) {
			account := b.account(money.Unit)
			same(t, "paid", len(b.paid(account, noon)), 0)
			same(t, "runs out", b.wallet(account, noon).RunsOutAt, 0)
		})
	})
}

// What nodes were told they may use, they can be charged for: leases never add up
// to more than the wallet. Prices so low that the money lasts for centuries are
// left out: money.Forever ends the sum there.
func TestLeasesArePaid(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	rapid.Check(t, func(r *rapid.T) {
		balance := money.Amount(rapid.Int64Range(0, 5_000_000).Draw(r, "balance"))
		account := b.account(balance)
		type run struct {
			in models.Instance
			id models.SpanID
		}
		var runs, launches []run
		for i := range rapid.IntRange(1, 5).Draw(r, "runs") {
			in := b.instance(account, fmt.Sprint("r", i), money.Rate(rapid.Int64Range(100, 40_000_000).Draw(r, "rate")))
			runs = append(runs, run{in, b.open(in, noon)})
		}
		at := rapid.Int64Range(0, 300).Draw(r, "at")
		for i, x := range runs {
			b.report(x.id, rapid.Int64Range(0, at).Draw(r, "reported"), sec(at))
			if rapid.Bool().Draw(r, "capped") && i > 0 {
				b.in(func(tx *store.Tx) error { return b.Cap(tx, x.id, sec(at), "stop_asked") })
			}
		}
		for i := range rapid.IntRange(0, 3).Draw(r, "launches") {
			name := fmt.Sprint("l", i)
			rate := money.Rate(rapid.Int64Range(100, 40_000_000).Draw(r, "rate"))
			if err := b.hold(account, name, rate, sec(at)); err == nil {
				in := b.instance(account, name, rate)
				launches = append(launches, run{in, billing.SpanID(in)})
			}
		}
		paid := b.paid(account, sec(at))
		// Seconds that have passed may already cost more than there is: then all
		// that is left is spent, and nothing more is promised.
		owed := money.Amount(0)
		for _, x := range runs {
			u := b.span(x.id)
			owed += u.PricePerHour.For(max(u.Cursor, min(at, paid[x.in.ID]))) - u.Charged
		}
		broke := owed > b.wallet(account, sec(at)).Available
		// Every run goes to its end before any launch begins: the hardest order.
		for _, x := range runs {
			if got := b.report(x.id, paid[x.in.ID], sec(at+paid[x.in.ID])); got.Exhausted && !broke {
				r.Fatalf("%s was told %d s and paid for %d", x.in.Name, paid[x.in.ID], got.Seconds)
			}
		}
		for _, x := range launches {
			x.in.RequestedAt = sec(at)
			b.in(func(tx *store.Tx) error { return b.OpenSpan(tx, x.in, 0, sec(at)) })
			if got := b.report(x.id, paid[x.in.ID], sec(at+paid[x.in.ID])); got.Exhausted {
				r.Fatalf("launch %s was told %d s and paid for %d", x.in.Name, paid[x.in.ID], got.Seconds)
			}
		}
		if w := b.wallet(account, sec(at)); w.Available < 0 {
			r.Fatalf("available %d", w.Available)
		}
	})
}
