package billing_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
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

func date(zone string, y int, m time.Month, d, hour, min, s int) models.Instant {
	z, err := time.LoadLocation(zone)
	if err != nil {
		panic(err)
	}
	return models.At(time.Date(y, m, d, hour, min, s, 0, z))
}

// ran is a whole run: opened at start, closed after seconds.
func (b *bench) ran(in models.Instance, start models.Instant, seconds int64) models.SpanID {
	b.t.Helper()
	id := b.open(in, start)
	b.close(id, seconds, start.Add(time.Duration(seconds)*time.Second))
	return id
}

func (b *bench) closeInvoice(account models.AccountID, until, at models.Instant) (models.Invoice, billing.Document) {
	b.t.Helper()
	inv, err := b.CloseInvoice(context.Background(), account, until, at)
	if err != nil {
		b.t.Fatal(err)
	}
	_, doc, err := b.Invoice(context.Background(), account, inv.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	return inv, doc
}

func (b *bench) monthToDate(account models.AccountID, at models.Instant) billing.Document {
	b.t.Helper()
	doc, err := b.MonthToDate(context.Background(), account, at)
	if err != nil {
		b.t.Fatal(err)
	}
	return doc
}

const richEnough = 100_000 * money.Unit

// What single accounts pay: cases A1, A4, A16, A28, and the table's 23 to 25.
func TestInvoiceTotals(t *testing.T) {
	type run struct {
		instance     string
		rate         money.Rate
		from, length int64
	}
	tests := map[string]struct {
		runs  []run
		lines []money.Amount
		total money.Amount
		carry money.Amount
	}{
		"A1: four GPUs, then one": {[]run{{"a", 8_000_000, 0, 1800}, {"a", 2_000_000, 2100, 1200}},
			[]money.Amount{4_000_000, 670_000}, 4_670_000, -3_334},
		"A1: one GPU, then four": {[]run{{"a", 2_000_000, 0, 1800}, {"a", 8_000_000, 2100, 1200}},
			[]money.Amount{1_000_000, 2_670_000}, 3_670_000, -3_334},
		"A4: a lost sample": {[]run{{"a", 1_800_000, 0, 10_075}}, []money.Amount{5_040_000}, 5_040_000, -2_500},
		"A16: three thirds": {[]run{{"a", 1_000_000, 0, 1200}, {"b", 1_000_000, 0, 1200}, {"c", 1_000_000, 0, 1200}},
			[]money.Amount{340_000, 330_000, 330_000}, 1_000_000, -1},
		"A28: four short runs": {[]run{{"a", 2_490_000, 0, 1}, {"a", 2_490_000, 100, 59}, {"a", 2_490_000, 200, 61}, {"a", 2_490_000, 300, 3601}},
			[]money.Amount{2_570_000}, 2_570_000, 4_381},
		"A28: one second": {[]run{{"a", 2_490_000, 0, 1}}, []money.Amount{0}, 0, 691},
	}
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		b := newBench(t, st)
		for name, tc := range tests {
			t.Run(name, func(t *testing.T) {
				account := b.account(richEnough)
				var used money.Amount
				for i, r := range tc.runs {
					in := b.instance(account, r.instance, r.rate)
					in.Run = i + 1
					b.ran(in, sec(r.from), r.length)
					used += r.rate.For(r.length)
				}
				_, doc := b.closeInvoice(account, sec(20_000), sec(20_000))
				var got []money.Amount
				for _, l := range doc.Lines {
					got = append(got, l.Amount)
				}
				if !slices.Equal(got, tc.lines) {
					t.Errorf("lines %v, want %v", got, tc.lines)
				}
				same(t, "total", doc.Total, tc.total)
				same(t, "carry", doc.CarryOut, tc.carry)
				same(t, "total and carry are the usage", doc.Total+doc.CarryOut, used)
				same(t, "the wallet paid exactly the usage", b.wallet(account, noon).Balance, richEnough-used)
			})
		}
	})
}

// A16 and A11: an invoice is rounded to the currency's own unit, once; what that
// took is on the next one.
func TestInvoicesInOtherUnits(t *testing.T) {
	for currency, want := range map[string]struct{ lines, half, carried money.Amount }{
		"JPY": {1_000_000, 0, 499_999}, // of three thirds of a yen one line is a yen; half a yen less a carry is none
		"USD": {340_000, 500_000, -1},
		"KWD": {334_000, 500_000, -1},
	} {
		b := newBench(t, storetest.SQLite(t))
		account := b.accountIn(currency, "UTC", richEnough)
		for i := range 3 {
			in := b.instance(account, fmt.Sprint("x", i), 1_000_000)
			in.Currency = currency
			b.ran(in, sec(int64(i)), 1200)
		}
		_, doc := b.closeInvoice(account, sec(2000), sec(2000))
		same(t, currency+": the largest line", doc.Lines[0].Amount, want.lines)
		same(t, currency+": its lines", doc.Lines[0].Amount+doc.Lines[1].Amount+doc.Lines[2].Amount, doc.Total)
		same(t, currency+": three thirds", doc.Total, money.Unit)
		same(t, currency+": the wallet", b.wallet(account, noon).Balance, richEnough-999_999)
		in := b.instance(account, "half", 1_000_000)
		in.Currency = currency
		b.ran(in, sec(3000), 1800)
		_, doc = b.closeInvoice(account, sec(5000), sec(5000))
		same(t, currency+": a half", doc.Total, want.half)
		same(t, currency+": carried", doc.CarryOut, want.carried)
	}
}

// A2: a line says which share of the card it is, how long, and at which price.
func TestLinesSayWhatWasUsed(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	account := b.account(richEnough)
	in := b.instance(account, "trainer", 320_000)
	first := b.ran(in, noon, 3600)
	in.Run = 2
	second := b.ran(in, sec(4000), 10)
	whole := b.instance(account, "two", 3_980_000)
	whole.SKU = "a100-80gb.x2"
	b.ran(whole, sec(100), 60)
	doc := b.monthToDate(account, sec(5000))
	same(t, "lines", len(doc.Lines), 2)
	l := doc.Lines[0]
	same(t, "text", l.Text, "A100 80GB · 1g.10gb, on demand")
	same(t, "detail", l.Detail, "trainer")
	same(t, "share", l.Share, "1/7 compute, 1/8 memory")
	same(t, "seconds", l.Seconds, 3610)
	same(t, "price", l.PricePerHour, 320_000)
	same(t, "spans", len(l.Spans), 2)
	same(t, "first span", l.Spans[0], billing.LineSpan{ID: first, Start: noon.Time(), End: sec(3600).Time(), Seconds: 3600, Exact: 320_000})
	same(t, "second span", l.Spans[1].ID, second)
	same(t, "two cards", doc.Lines[1].Text, "2 × A100 80GB, on demand")
	same(t, "two cards' share", doc.Lines[1].Share, "")
	same(t, "not an invoice", doc.Number, "")
	same(t, "buyer", doc.Buyer.Name, "Tidemark Lab")
	if doc.TestPayments == "" {
		t.Error("test payments are not bannered")
	}
}

// A12: months are cut where the account lives, and the job makes one invoice.
func TestMonthsEndInTheAccountsZone(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		b := newBench(t, st)
		account := b.accountIn("USD", "Europe/Budapest", richEnough)
		in := b.instance(account, "x", 3_600_000)
		// 100 s around the border: 23:00 UTC is February in Budapest.
		b.ran(in, date("UTC", 2025, 1, 31, 22, 59, 30), 100)
		for range 2 {
			if err := b.CloseMonths(context.Background(), date("UTC", 2025, 1, 31, 23, 30, 0)); err != nil {
				t.Fatal(err)
			}
		}
		list, _, err := b.Invoices(context.Background(), account, "", 10)
		if err != nil || len(list) != 1 {
			t.Fatalf("%d invoices, %v", len(list), err)
		}
		_, doc, err := b.Invoice(context.Background(), account, list[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "start", models.At(doc.PeriodStart), date("UTC", 2024, 12, 31, 23, 0, 0))
		same(t, "end", models.At(doc.PeriodEnd), date("UTC", 2025, 1, 31, 23, 0, 0))
		same(t, "period", doc.Period(), "1 Jan 2025 – 31 Jan 2025")
		same(t, "January's seconds", doc.Lines[0].Seconds, 30)
		february := b.monthToDate(account, date("UTC", 2025, 2, 3, 0, 0, 0))
		same(t, "February's seconds", february.Lines[0].Seconds, 70)
		same(t, "February is not late", february.Lines[0].Late, false)
		same(t, "February's start", models.At(february.PeriodStart), date("UTC", 2025, 1, 31, 23, 0, 0))
	})
}

// A month waits a day for a node that has not reported past its end; months that
// passed while no portal ran are closed one by one.
func TestMonthsWaitForNodes(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		b := newBench(t, st)
		ctx := context.Background()
		account := b.account(richEnough)
		start := date("UTC", 2026, 1, 31, 22, 0, 0)
		id := b.open(b.instance(account, "x", 3_600_000), start)
		b.report(id, 60, start.Add(time.Minute))
		count := func(want int) {
			t.Helper()
			list, _, err := b.Invoices(ctx, account, "", 10)
			if err != nil || len(list) != want {
				t.Errorf("%d invoices, want %d (%v)", len(list), want, err)
			}
		}
		for _, tc := range []struct {
			at   models.Instant
			want int
		}{{date("UTC", 2026, 1, 31, 23, 59, 59), 0}, {date("UTC", 2026, 2, 1, 0, 10, 0), 0}, {date("UTC", 2026, 2, 2, 0, 0, 0), 1}} {
			if err := b.CloseMonths(ctx, tc.at); err != nil {
				t.Fatal(err)
			}
			count(tc.want)
		}
		b.report(id, 100*24*3600, start.Add(100*24*time.Hour)) // it ran until May
		if err := b.CloseMonths(ctx, start.Add(100*24*time.Hour)); err != nil {
			t.Fatal(err)
		}
		count(4) // January; February with January's late hours; March; April
	})
}

// On the first of the month, before the last one is closed, its usage is not late.
func TestMonthThatIsNotClosedYet(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	account := b.account(richEnough)
	b.ran(b.instance(account, "x", 3_600_000), date("UTC", 2026, 10, 20, 0, 0, 0), 100)
	b.ran(b.instance(account, "y", 3_600_000), date("UTC", 2026, 11, 30, 23, 59, 0), 100)
	at := date("UTC", 2026, 12, 1, 0, 30, 0)
	doc := b.monthToDate(account, at)
	same(t, "start", models.At(doc.PeriodStart), date("UTC", 2026, 10, 1, 0, 0, 0))
	same(t, "lines", len(doc.Lines), 2)
	same(t, "late", doc.Lines[0].Late || doc.Lines[1].Late, false)
	if err := b.CloseMonths(context.Background(), at); err != nil {
		t.Fatal(err)
	}
	list, _, err := b.Invoices(context.Background(), account, "", 10)
	if err != nil || len(list) != 2 {
		t.Fatalf("%d invoices, %v", len(list), err)
	}
	// Both were closed at one moment: the periods give the order.
	same(t, "November", list[0].PeriodStart, date("UTC", 2026, 11, 1, 0, 0, 0))
	first, next, err := b.Invoices(context.Background(), account, "", 1)
	if err != nil || len(first) != 1 || first[0].ID != list[0].ID {
		t.Fatalf("first page %+v, %v", first, err)
	}
	second, next, err := b.Invoices(context.Background(), account, next, 1)
	if err != nil || len(second) != 1 || second[0].ID != list[1].ID || next != "" {
		t.Fatalf("second page %+v, %v", second, err)
	}
	doc = b.monthToDate(account, at)
	same(t, "December", models.At(doc.PeriodStart), date("UTC", 2026, 12, 1, 0, 0, 0))
	same(t, "December's seconds", doc.Lines[0].Seconds, 40)
}

// A19: an invoice never changes; late usage is on the next one, dated.
func TestLateUsage(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		b := newBench(t, st)
		account := b.account(richEnough)
		start := date("UTC", 2026, 1, 31, 21, 0, 0)
		id := b.open(b.instance(account, "offline", 1_990_000), start)
		b.report(id, 3600, start.Add(time.Hour)) // then the node is away
		january, before := b.closeInvoice(account, date("UTC", 2026, 2, 1, 0, 0, 0), date("UTC", 2026, 2, 1, 8, 0, 0))
		same(t, "January", before.Lines[0].Seconds, 3600)
		frozen := bytes.Clone(january.Document)

		back := date("UTC", 2026, 2, 2, 9, 0, 0)
		for range 2 { // redelivered: adds nothing
			b.close(id, 3*3600+600, back) // two hours of January, ten minutes of February
		}
		again, err := b.CloseInvoice(context.Background(), account, january.PeriodEnd, back)
		if err != nil || again.ID != january.ID || !bytes.Equal(again.Document, frozen) {
			t.Errorf("January changed: %v", err)
		}
		february, doc := b.closeInvoice(account, date("UTC", 2026, 3, 1, 0, 0, 0), date("UTC", 2026, 3, 1, 8, 0, 0))
		same(t, "February's lines", len(doc.Lines), 2)
		same(t, "February", doc.Lines[0].Seconds, 600)
		late := doc.Lines[1]
		same(t, "late", late.Late, true)
		same(t, "late seconds", late.Seconds, 7200)
		same(t, "late price", late.PricePerHour, 1_990_000)
		same(t, "late detail", late.Detail, "offline · used in January 2026, reported late")
		same(t, "late span", models.At(late.Spans[0].Start), start.Add(time.Hour))
		same(t, "all of it", january.Total+february.Total+february.Carry, money.Rate(1_990_000).For(3*3600+600))
		if _, err := b.CloseInvoice(context.Background(), account, date("UTC", 2026, 2, 15, 0, 0, 0), date("UTC", 2026, 3, 2, 0, 0, 0)); !models.HasCode(err, models.Conflict) {
			t.Errorf("a closed period was closed otherwise: %v", err)
		}
	})
}

// A24: two hundred invoices at once, some of them failing and tried again: numbers
// are distinct and without a gap, per year.
func TestInvoiceNumbersUnderLoad(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		b := newBench(t, st)
		const n = 200
		accounts := make([]models.AccountID, n)
		for i := range accounts {
			accounts[i] = b.account(10 * money.Unit)
			b.ran(b.instance(accounts[i], "x", 3_600_000), noon, 100)
		}
		var all sync.WaitGroup
		numbers := make([]string, n)
		errs := make([]error, n)
		for i := range numbers {
			all.Go(func() {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if i%40 == 0 { // dies before it could commit
					cancel()
					if _, err := b.CloseInvoice(ctx, accounts[i], sec(200), sec(200)); err == nil {
						errs[i] = fmt.Errorf("a dead caller got an invoice")
						return
					}
				}
				inv, err := b.CloseInvoice(context.Background(), accounts[i], sec(200), sec(200))
				if err == nil && i%40 == 1 { // drawn twice, numbered once
					_, err = b.InvoicePDF(context.Background(), accounts[i], inv.ID)
				}
				numbers[i], errs[i] = inv.Number, err
			})
		}
		all.Wait()
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
		slices.Sort(numbers)
		for i, number := range numbers {
			if want := fmt.Sprintf("B-2026-%06d", i+1); number != want {
				t.Fatalf("number %d is %s, want %s", i+1, number, want)
			}
		}
		b.ran(b.instance(accounts[0], "y", 3_600_000), date("UTC", 2027, 1, 1, 0, 0, 0), 100)
		inv, _ := b.closeInvoice(accounts[0], date("UTC", 2027, 2, 1, 0, 0, 0), date("UTC", 2027, 2, 1, 0, 0, 0))
		same(t, "the next year's first", inv.Number, "B-2027-000001")
	})
}

// A36: documents never touch the ledger.
func TestDocumentsDoNotMoveMoney(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	account := b.account(80 * money.Unit)
	b.ran(b.instance(account, "x", 3_600_000), noon, 1500)
	b.monthToDate(account, sec(2000))
	inv, doc := b.closeInvoice(account, sec(2000), sec(2000))
	first, err := b.InvoicePDF(context.Background(), account, inv.ID)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := b.PDF(doc); err != nil || !bytes.Equal(first, second) || !bytes.HasPrefix(first, []byte("%PDF-")) {
		t.Errorf("the PDF is not the document's: %v", err)
	}
	same(t, "balance", b.wallet(account, noon).Balance, 80*money.Unit-1_500_000)
	same(t, "ledger rows", len(b.ledger(account)), 2) // the payment, the usage
	if _, _, err := b.Invoice(context.Background(), b.account(0), inv.ID); !models.HasCode(err, models.NotFound) {
		t.Errorf("somebody else's invoice: %v", err)
	}
	if _, err := b.CloseInvoice(context.Background(), account, sec(3000), sec(3000)); !models.HasCode(err, models.Conflict) {
		t.Errorf("an invoice without usage: %v", err)
	}
	if _, err := b.CloseInvoice(context.Background(), account, sec(9000), sec(3000)); !models.HasCode(err, models.Conflict) {
		t.Errorf("an invoice over the future: %v", err)
	}
}

// However runs are reported and invoices are closed, every second is on one
// invoice once, lines sum to totals, and the totals follow the ledger to within
// one cent.
func TestNothingLostNothingTwice(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	rapid.Check(t, func(r *rapid.T) {
		account := b.accountIn("USD", rapid.SampledFrom([]string{"UTC", "Europe/Budapest", "Asia/Kolkata", "America/New_York"}).Draw(r, "zone"), richEnough)
		clock := date("UTC", 2026, 3, 27, 0, 0, 0) // clocks change soon
		reported := map[models.SpanID]int64{}
		started := map[models.SpanID]models.Instant{}
		var billed, carry money.Amount
		var seconds int64
		closeNow := func() {
			inv, err := b.CloseInvoice(context.Background(), account, clock, clock)
			if models.HasCode(err, models.Conflict) {
				return
			}
			if err != nil {
				r.Fatal(err)
			}
			_, doc, err := b.Invoice(context.Background(), account, inv.ID)
			if err != nil {
				r.Fatal(err)
			}
			if doc.CarryIn != carry {
				r.Fatalf("carry %d came in as %d", carry, doc.CarryIn)
			}
			var sum money.Amount
			for _, l := range doc.Lines {
				var exact money.Amount
				for _, s := range l.Spans {
					exact += s.Exact
					seconds += s.Seconds
				}
				if exact != l.Exact {
					r.Fatalf("line of %d, its spans are %d", l.Exact, exact)
				}
				sum += l.Amount
			}
			if sum != doc.Total || inv.Total != doc.Total {
				r.Fatalf("lines sum to %d, the total is %d", sum, doc.Total)
			}
			billed, carry = billed+doc.Total, doc.CarryOut
		}
		for i := range rapid.IntRange(2, 10).Draw(r, "steps") {
			clock = clock.Add(time.Duration(rapid.Int64Range(1, 6*24*3600*1000).Draw(r, "ms")) * time.Millisecond)
			switch rapid.IntRange(0, 3).Draw(r, "what") {
			case 0:
				in := b.instance(account, fmt.Sprint(i), money.Rate(rapid.Int64Range(1, 5_000_000).Draw(r, "rate")))
				in.RequestedAt = clock
				id := b.open(in, clock)
				started[id], reported[id] = clock, 0
			case 1:
				closeNow()
			default:
				for id := range started {
					claim := rapid.Int64Range(0, int64(clock-started[id])/1_000_000).Draw(r, "claim")
					b.report(id, claim, clock)
					reported[id] = max(reported[id], claim)
				}
			}
		}
		clock = clock.Add(time.Hour)
		closeNow()
		var used money.Amount
		var ran int64
		for id := range started {
			used += b.span(id).Charged
			ran += reported[id]
		}
		if billed+carry != used || seconds != ran {
			r.Fatalf("billed %d and %d for %d s; used %d in %d s", billed, carry, seconds, used, ran)
		}
	})
}

func TestInvoicesInOtherCurrencies(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		b := newBench(t, st)
		for currency, tc := range map[string]struct {
			rate         money.Rate
			total, carry money.Amount
		}{"JPY": {150_000_000, 3_000_000, -458_334}, "KWD": {612_000, 10_000, 370}} {
			account := b.accountIn(currency, "Asia/Tokyo", richEnough)
			in := b.instance(account, "x", tc.rate)
			in.Currency = currency
			b.ran(in, noon, 61)
			inv, doc := b.closeInvoice(account, sec(100), sec(100))
			same(t, currency+" total", inv.Total, tc.total)
			same(t, currency+" carry", inv.Carry, tc.carry)
			if pdf, err := b.PDF(doc); err != nil || len(pdf) == 0 {
				t.Error(err)
			}
		}
		account := b.accountIn("EUR", "", richEnough)
		if got := b.monthToDate(account, noon); len(got.Lines) != 0 || got.Total != 0 || !strings.Contains(got.Period(), "1 Nov 2026") {
			t.Errorf("an empty month: %+v", got)
		}
	})
}
