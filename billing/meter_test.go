package billing_test

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/billing"
	"berth/models"
	"berth/models/store"
	"berth/models/store/storetest"
	"berth/money"
)

// told is one report: seconds the node claims, at a moment of the portal, and what
// it must add.
type told struct {
	at, claims int64
	adds       money.Amount
}

// The worked table: prices in dollars, seconds, micro-dollars.
func TestReportsAreChargedOnce(t *testing.T) {
	const rich = 1_000_000 * money.Unit
	tests := map[string]struct {
		rate    money.Rate
		balance money.Amount
		told    []told
	}{
		"2: every second":              {390_000, rich, []told{{1, 1, 108}, {2, 2, 108}, {3, 3, 109}}},
		"3: a minute, then an hour":    {1_990_000, rich, []told{{61, 61, 33_719}, {3600, 3600, 1_956_281}}},
		"4: resent and reordered":      {2_490_000, rich, []told{{60, 60, 41_500}, {61, 60, 0}, {120, 120, 41_500}, {121, 60, 0}, {180, 180, 41_500}}},
		"6: one second":                {31_920_000, rich, []told{{1, 1, 8_866}}},
		"10: claims after a silence":   {2_490_000, rich, []told{{600, 600, 415_000}, {601, 600, 0}}},
		"11: the portal was down":      {2_490_000, rich, []told{{600, 600, 415_000}, {4200, 4200, 2_490_000}}},
		"12: the node's clock is fast": {1_990_000, rich, []told{{3600, 3600, 1_990_000}, {3600, 3700, 2_763}}},
		"16: it ran past its money":    {31_920_000, money.Unit, []told{{130, 130, 993_066}, {131, 131, 0}}},
		"17: a cent":                   {390_000, 10_000, []told{{200, 200, 9_966}}},
		"20: the counter fell":         {390_000, rich, []told{{500, 500, 54_166}, {510, 20, 0}, {520, 19, 0}}},
		"A28: four short runs":         {2_490_000, rich, []told{{1, 1, 691}}},
		"A29: heartbeats are totals":   {2_490_000, rich, []told{{60, 60, 41_500}, {120, 120, 41_500}, {121, 120, 0}, {180, 180, 41_500}, {190, 190, 6_916}}},
		"nonsense":                     {2_490_000, rich, []told{{60, -5, 0}, {60, 0, 0}, {60, 1 << 62, 44_958}}},
	}
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		b := newBench(t, st)
		for name, tc := range tests {
			t.Run(name, func(t *testing.T) {
				account := b.account(tc.balance)
				id := b.open(b.instance(account, "x", tc.rate), noon)
				var charged money.Amount
				for _, r := range tc.told {
					got := b.report(id, r.claims, sec(r.at))
					charged += r.adds
					if got.Charged != r.adds {
						t.Errorf("claiming %d s at %d s adds %d, want %d", r.claims, r.at, got.Charged, r.adds)
					}
				}
				u := b.span(id)
				same(t, "charged", u.Charged, charged)
				same(t, "charged by the cursor", u.Charged, tc.rate.For(u.Cursor))
				same(t, "available", b.wallet(account, noon).Available, tc.balance-charged)
			})
		}
	})
}

// Row 16, 17 and A43: seconds over the money are known, not paid, and stay so when
// the wallet is filled again.
func TestUsageNeverTakesMoreThanThereIs(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		b := newBench(t, st)
		account := b.account(money.Unit)
		id := b.open(b.instance(account, "budget", 2_000_000), noon)
		if got := b.report(id, 1800, sec(1800)); got.Exhausted || got.Charged != money.Unit {
			t.Errorf("to the last cent: %+v", got)
		}
		if got := b.report(id, 1801, sec(1801)); !got.Exhausted || got.Charged != 0 || got.Seconds != 1800 {
			t.Errorf("a second more: %+v", got)
		}
		if got := b.report(id, 1802, sec(1802)); got.Exhausted {
			t.Error("the money ended twice")
		}
		b.pay(account, "pi_late", 5*money.Unit)
		b.close(id, 1860, sec(1861))
		u := b.span(id)
		same(t, "charged", u.Charged, money.Unit)
		same(t, "seconds run and not charged", u.Reported-u.Cursor, 60)
		same(t, "reason", u.CloseReason, "exhausted")
		same(t, "available", b.wallet(account, noon).Available, 5*money.Unit)
	})
}

// A1, A20, A28, A39: what intervals cost, whatever the messages.
func TestSpansOpenCapAndClose(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		b := newBench(t, st)
		t.Run("the first second paid is the first second usable", func(t *testing.T) { // A20
			account := b.account(10 * money.Unit)
			in := b.instance(account, "late", 3_600_000)
			ref := billing.LaunchRef(in.ID, in.Run)
			b.in(func(tx *store.Tx) error { return b.Hold(tx, account, ref, in.PricePerHour, noon) })
			same(t, "held", b.wallet(account, noon).Held, 60_000)
			// Ready at 6:30; the news arrives four seconds later.
			for range 2 {
				b.in(func(tx *store.Tx) error { return b.OpenSpan(tx, in, 4, sec(394)) })
			}
			u := b.span(billing.SpanID(in))
			same(t, "start", u.StartAt, sec(390))
			same(t, "charged", u.Charged, 4_000)
			same(t, "held", b.wallet(account, noon).Held, 0)
		})
		t.Run("a failed launch costs nothing", func(t *testing.T) { // A20, variant
			account := b.account(10 * money.Unit)
			ref := billing.LaunchRef("ins_failed", 1)
			b.in(func(tx *store.Tx) error { return b.Hold(tx, account, ref, 3_600_000, noon) })
			for range 2 {
				b.in(func(tx *store.Tx) error { return b.Release(tx, ref, sec(300)) })
			}
			same(t, "wallet", b.wallet(account, noon), billing.Wallet{Balance: 10 * money.Unit, Available: 10 * money.Unit, Currency: "USD"})
		})
		t.Run("a start is never before it was asked for", func(t *testing.T) {
			in := b.instance(b.account(10*money.Unit), "liar", 3_600_000)
			b.in(func(tx *store.Tx) error { return b.OpenSpan(tx, in, 9_000_000, sec(30)) })
			u := b.span(billing.SpanID(in))
			same(t, "start", u.StartAt, noon)
			same(t, "seconds", u.Cursor, 30)
		})
		t.Run("our clean-up is free", func(t *testing.T) {
			account := b.account(10 * money.Unit)
			id := b.open(b.instance(account, "clean", 3_600_000), noon)
			b.report(id, 100, sec(100))
			b.in(func(tx *store.Tx) error { return b.Cap(tx, id, sec(107), "stop_asked") })
			b.in(func(tx *store.Tx) error { return b.Cap(tx, id, sec(109), "terminate_asked") })
			b.report(id, 110, sec(110))
			b.close(id, 112, sec(112))
			b.close(id, 500, sec(500)) // again, and later
			b.report(id, 600, sec(600))
			u := b.span(id)
			same(t, "seconds", u.Cursor, 107)
			same(t, "end", u.EndAt, sec(107))
			same(t, "reason", u.CloseReason, "stop_asked")
			same(t, "evidence", u.Reported, 600)
			w := b.wallet(account, sec(600))
			same(t, "balance", w.Balance, 10*money.Unit-107_000)
			same(t, "accrued", w.Accrued, 0)
		})
		t.Run("a lost node is charged to its last word", func(t *testing.T) { // row 10
			account := b.account(10 * money.Unit)
			id := b.open(b.instance(account, "lost", 2_490_000), noon)
			b.report(id, 600, sec(600))
			b.in(func(tx *store.Tx) error { return b.Close(tx, id, nil, "lost", sec(1200)) })
			if got := b.report(id, 660, sec(1300)); got.Charged != 0 {
				t.Errorf("a closed span took %+v", got)
			}
			same(t, "balance", b.wallet(account, noon).Balance, 10*money.Unit-415_000)
			same(t, "evidence", b.span(id).Reported, 660)
		})
		t.Run("a span nobody opened", func(t *testing.T) {
			if got := b.report("ins_none.1", 60, sec(60)); got != (billing.Accepted{}) {
				t.Errorf("%+v", got)
			}
			b.close("ins_none.1", 60, sec(60))
			b.in(func(tx *store.Tx) error { return b.Cap(tx, "ins_none.1", sec(60), "x") })
		})
	})
}

// A39: two runs, lost and doubled messages, a top-up while one closes.
func TestTwoRunsOneWallet(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		b := newBench(t, st)
		account := b.account(3 * money.Unit)
		one, two := b.instance(account, "s1", 2_000_000), b.instance(account, "s2", 2_000_000)
		s1, s2 := b.open(one, noon), b.open(two, noon)
		var paid map[models.InstanceID]int64
		b.in(func(tx *store.Tx) (err error) { paid, err = b.PaidSeconds(tx, account, noon); return err })
		same(t, "s1 may run to 10:45", paid[one.ID], 2700)
		same(t, "s2 may run to 10:45", paid[two.ID], 2700)
		for minute := int64(1); minute <= 44; minute++ {
			if minute%29 != 0 {
				b.report(s1, minute*60, sec(minute*60))
			}
			b.report(s2, minute*60, sec(minute*60+1))
		}
		b.report(s2, 44*60, sec(44*60+2))
		b.pay(account, "pi_more", 10*money.Unit)
		b.close(s1, 3600, sec(3600))
		b.close(s2, 3600, sec(3601))
		same(t, "s1", b.span(s1).Charged, 2*money.Unit)
		same(t, "s2", b.span(s2).Charged, 2*money.Unit)
		same(t, "balance", b.wallet(account, sec(3601)).Balance, 9*money.Unit)
	})
}

// ReportAll is Report for many, also of several accounts, and says whose money ended.
func TestReportAll(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		b := newBench(t, st)
		rich, poor := b.account(1000*money.Unit), b.account(10_000)
		a := b.open(b.instance(rich, "a", 3_600_000), noon)
		c := b.open(b.instance(rich, "c", 36_000_000), noon)
		p := b.open(b.instance(poor, "p", 3_600_000), noon)
		var ended []models.SpanID
		b.in(func(tx *store.Tx) (err error) {
			ended, err = b.ReportAll(tx, []billing.Reading{{Span: a, Seconds: 30}, {Span: "ins_gone.1", Seconds: 5}, {Span: c, Seconds: 29}, {Span: p, Seconds: 30}, {Span: c, Seconds: 12}}, sec(30))
			return err
		})
		if len(ended) != 1 || ended[0] != p {
			t.Errorf("ended %v, want %v", ended, p)
		}
		same(t, "a", b.span(a).Charged, 30_000)
		same(t, "c", b.span(c).Charged, 290_000)
		same(t, "p", b.span(p).Charged, 10_000)
		same(t, "accrued", b.wallet(rich, noon).Accrued, 320_000)
	})
}

// A4: state transitions, not samples; and the ledger gets what accrued above a
// dollar at once, the rest with the hour, each second once, also when the job runs
// again (A35).
func TestPosting(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		b := newBench(t, st)
		account := b.account(100 * money.Unit)
		start := models.At(time.Date(2026, 11, 10, 9, 12, 10, 0, time.UTC))
		id := b.open(b.instance(account, "a4", 1_800_000), start)
		same(t, "nothing to post", len(b.ledger(account)), 1)
		for s := int64(30); s < 10_075; s += 30 {
			if s != 2_880 { // the sample at ten is lost
				b.report(id, s, start.Add(time.Duration(s)*time.Second))
			}
			if w := b.wallet(account, start); w.Accrued > money.Unit+30_000 {
				t.Fatalf("%d accrued and not posted", w.Accrued)
			}
		}
		for range 2 {
			if err := b.PostAccrued(context.Background(), start.Add(3*time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		same(t, "accrued after the hour", b.wallet(account, start).Accrued, 0)
		b.close(id, 10_075, start.Add(10_075*time.Second))
		same(t, "seconds", b.span(id).Cursor, 10_075)
		same(t, "charged", b.span(id).Charged, 5_037_500)
		same(t, "balance", b.wallet(account, noon).Balance, 100*money.Unit-5_037_500)
	})
}

// Row 7: the month ends inside a span; both halves are posted apart and together
// are the span, exactly.
func TestPostingCutsAtTheMonth(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		b := newBench(t, st)
		account := b.account(100 * money.Unit)
		start := models.At(time.Date(2026, 11, 30, 23, 59, 30, 0, time.UTC))
		id := b.open(b.instance(account, "november", 1_990_000), start)
		b.close(id, 97, start.Add(97*time.Second))
		rows := b.ledger(account)
		same(t, "rows", len(rows), 3)
		same(t, "november", rows[1].Amount, -16_583)
		same(t, "november's key", rows[1].Key, "usage:"+string(id)+":30")
		same(t, "december", rows[0].Amount, -37_036)
		same(t, "december's key", rows[0].Key, "usage:"+string(id)+":97")
	})
}

// Any order, repetition and splitting of reports, with posts in between, charges
// the highest that was accepted, and never more than there is.
func TestAnyOrderOfReports(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		b := newBench(t, st)
		rapid.Check(t, func(r *rapid.T) {
			rate := money.Rate(rapid.Int64Range(0, 50_000_000).Draw(r, "rate"))
			balance := money.Amount(rapid.Int64Range(0, 3_000_000).Draw(r, "balance"))
			account := b.account(balance)
			id := b.open(b.instance(account, "r", rate), noon)
			var clock, highest int64
			for range rapid.IntRange(1, 12).Draw(r, "steps") {
				clock += rapid.Int64Range(0, 120).Draw(r, "passes")
				switch rapid.IntRange(0, 4).Draw(r, "what") {
				case 0:
					b.in(func(tx *store.Tx) error {
						_, err := b.ReportAll(tx, []billing.Reading{{Span: id, Seconds: clock}}, sec(clock))
						return err
					})
					highest = max(highest, clock)
				case 1:
					if err := b.PostAccrued(context.Background(), sec(clock)); err != nil {
						r.Fatal(err)
					}
				default:
					claims := rapid.Int64Range(0, 2*clock+10).Draw(r, "claims")
					b.report(id, claims, sec(clock))
					highest = max(highest, min(claims, clock+5))
				}
			}
			u, w := b.span(id), b.wallet(account, sec(clock))
			want := min(highest, money.AffordableFor(balance, rate, 0))
			if u.Cursor != want || u.Charged != rate.For(want) {
				r.Fatalf("charged %d for %d s, want %d for %d s", u.Charged, u.Cursor, rate.For(want), want)
			}
			if w.Available != balance-u.Charged || w.Available < 0 {
				r.Fatalf("available %d of %d after %d", w.Available, balance, u.Charged)
			}
		})
	})
}
