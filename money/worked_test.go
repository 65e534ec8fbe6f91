package money

import (
	"slices"
	"testing"
)

// rate reads a price, or ends the test.
func rate(t testing.TB, s string) Rate {
	t.Helper()
	r, err := ParseRate(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// currency finds a currency, or ends the test.
func currency(t testing.TB, code string) Currency {
	t.Helper()
	c, err := LookupCurrency(code)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// reported is what each cumulative report adds to the charge: only seconds past
// the highest so far cost anything.
func reported(r Rate, reports ...int64) (charges []Amount) {
	var cursor int64
	for _, s := range reports {
		next := max(cursor, s)
		charges = append(charges, r.For(next)-r.For(cursor))
		cursor = next
	}
	return charges
}

// The worked table handed to the developers: what reports cost (rows 1 to 9, 11,
// 16, 21, 22).
func TestWorkedCharges(t *testing.T) {
	for name, tc := range map[string]struct {
		price   string
		reports []int64
		want    []Amount
	}{
		"1 one minute":               {"0.39", []int64{60}, []Amount{6_500}},
		"2 second by second":         {"0.39", []int64{1, 2, 3}, []Amount{108, 108, 109}},
		"3 a minute, then an hour":   {"1.99", []int64{61, 3600}, []Amount{33_719, 1_956_281}},
		"4 resent and out of order":  {"2.49", []int64{60, 60, 120, 60, 180}, []Amount{41_500, 0, 41_500, 0, 41_500}},
		"5 preempted at 7 s":         {"2.49", []int64{7}, []Amount{4_841}},
		"6 one second":               {"31.92", []int64{1}, []Amount{8_866}},
		"6 thirty days":              {"31.92", []int64{30 * 86_400}, []Amount{22_982_400_000}},
		"8 before the price change":  {"1.99", []int64{100}, []Amount{55_277}},
		"8 after it":                 {"2.49", []int64{100}, []Amount{69_166}},
		"9 before the reservation":   {"0.39", []int64{600}, []Amount{65_000}},
		"9 inside it":                {"0.29", []int64{1200}, []Amount{96_666}},
		"10 until the node was lost": {"2.49", []int64{600}, []Amount{415_000}},
		"11 one report after a gap":  {"2.49", []int64{600, 4200}, []Amount{415_000, 2_490_000}},
		"21 yen":                     {"150", []int64{61}, []Amount{2_541_666}},
		"22 dinar":                   {"0.612", []int64{61}, []Amount{10_370}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reported(rate(t, tc.price), tc.reports...); !slices.Equal(got, tc.want) {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

// Row 7: a span that crosses midnight is split by the seconds before it, so the
// months sum to the span.
func TestWorkedMonthBorder(t *testing.T) {
	r := rate(t, "1.99")
	november, all := r.For(30), r.For(97)
	if november != 16_583 || all-november != 37_036 || all != 53_619 {
		t.Errorf("%d + %d = %d", november, all-november, all)
	}
}

// Rows 13 to 17: how long the money lasts, and that one second more would not.
func TestWorkedRunway(t *testing.T) {
	a, b := rate(t, "1.99"), rate(t, "31.92")
	for name, tc := range map[string]struct {
		available Amount
		runs      []Run
		want      int64
		spent     Amount
	}{
		"13 five dollars":           {5_000_000, []Run{{rate(t, "2.49"), 0}}, 7228, 4_999_366},
		"14 two instances":          {1_000_000, []Run{{a, 0}, {b, 0}}, 106, 998_460},
		"15 a top-up after 60 s":    {1_500_000 - 565_166, []Run{{a, 60}, {b, 60}}, 99, a.For(159) + b.For(159) - 565_166},
		"16 one dollar, server off": {1_000_000, []Run{{b, 0}}, 112, 993_066},
		"17 one cent":               {10_000, []Run{{rate(t, "0.39"), 0}}, 92, 9_966},
	} {
		t.Run(name, func(t *testing.T) {
			got := AffordableSeconds(tc.available, tc.runs)
			var spent, next Amount
			for _, r := range tc.runs {
				spent += r.Rate.For(r.Elapsed+got) - r.Rate.For(r.Elapsed)
				next += r.Rate.For(r.Elapsed+got+1) - r.Rate.For(r.Elapsed)
			}
			if got != tc.want || spent != tc.spent {
				t.Errorf("%d s for %d, want %d s for %d", got, spent, tc.want, tc.spent)
			}
			if spent > tc.available || next <= tc.available {
				t.Errorf("available %d, spent %d, one second more %d", tc.available, spent, next)
			}
		})
	}
	if spent := a.For(60) + b.For(60); spent != 565_166 {
		t.Errorf("15: %d spent after 60 s", spent)
	}
}

// Row 16, as the meter asks it: an agent that claims 130 s is charged for 112.
func TestWorkedOverrun(t *testing.T) {
	r := rate(t, "31.92")
	accepted := min(130, AffordableFor(1_000_000, r, 0))
	if left := 1_000_000 - r.For(accepted); accepted != 112 || left != 6_934 {
		t.Errorf("%d s, %d left", accepted, left)
	}
	if again := AffordableFor(6_934, r, accepted); again != accepted {
		t.Errorf("the rest buys %d more seconds", again-accepted)
	}
}

// Row 18: what is held covers the time, so it is rounded up.
func TestWorkedHold(t *testing.T) {
	if got := rate(t, "1.99").Ceil(600); got != 331_667 {
		t.Errorf("%d", got)
	}
	if got := rate(t, "3.6").Ceil(600); got != 600_000 {
		t.Errorf("a whole number is not rounded: %d", got)
	}
}

// Rows 23 to 25: an invoice is rounded once, and its lines sum to its total. Row
// 24 rounds to the nearest cent, as the handed cases do, where the table floors.
func TestWorkedInvoices(t *testing.T) {
	for name, tc := range map[string]struct {
		lines     []Amount
		carry     Amount
		wantLines []int64
		wantTotal int64
		wantCarry Amount
	}{
		"23 three alike":   {[]Amount{1_004_999, 1_004_999, 1_004_999}, 0, []int64{101, 100, 100}, 301, 4_997},
		"24 without carry": {[]Amount{6_500, 33_166, 2_490_000}, 0, []int64{1, 3, 249}, 253, -334},
		"25 with carry":    {[]Amount{6_500, 33_166, 2_490_000}, 4_997, []int64{1, 3, 249}, 253, 4_663},
		"nothing used":     {nil, 4_999, []int64{}, 0, 4_999},
		"a credit line":    {[]Amount{100_000, -25_001}, 0, []int64{10, -3}, 7, 4_999},
		"a half goes up":   {[]Amount{5_037_500}, 0, []int64{504}, 504, -2_500},
		"a credit alone":   {[]Amount{-5_001}, 0, []int64{-1}, -1, 4_999},
	} {
		t.Run(name, func(t *testing.T) {
			lines, total, carry := SplitInvoice(tc.lines, tc.carry, currency(t, "USD"))
			if !slices.Equal(lines, tc.wantLines) || total != tc.wantTotal || carry != tc.wantCarry {
				t.Errorf("%v, %d, carry %d; want %v, %d, carry %d", lines, total, carry, tc.wantLines, tc.wantTotal, tc.wantCarry)
			}
		})
	}
}

// Case A16: three lines of 1,200 s at 1.00 are 1.00 together, not three times
// 0.33, whether they are three spans or parts of one.
func TestInvoiceRoundsOnce(t *testing.T) {
	r := rate(t, "1")
	for name, lines := range map[string][]Amount{
		"three spans": {r.For(1200), r.For(1200), r.For(1200)},
		"one span":    reported(r, 1200, 2400, 3600),
	} {
		minor, total, _ := SplitInvoice(lines, 0, currency(t, "USD"))
		slices.Sort(minor)
		if total != 100 || !slices.Equal(minor, []int64{33, 33, 34}) {
			t.Errorf("%s: %v, total %d", name, minor, total)
		}
	}
}

// Cases A1, A4 and A33: the total is the nearest cent.
func TestInvoiceTotalIsTheNearestCent(t *testing.T) {
	for name, tc := range map[string]struct {
		lines []Amount
		want  int64
	}{
		"A1 four cards, then one": {[]Amount{rate(t, "8").For(1800), rate(t, "2").For(1200)}, 467},
		"A1 one card, then four":  {[]Amount{rate(t, "2").For(1800), rate(t, "8").For(1200)}, 367},
		"A4 10,075 s at 1.80":     {[]Amount{rate(t, "1.80").For(10_075)}, 504},
		"A33 5,370 s at 0.04":     {[]Amount{rate(t, "0.04").For(5_370)}, 6},
	} {
		if _, total, _ := SplitInvoice(tc.lines, 0, currency(t, "USD")); total != tc.want {
			t.Errorf("%s: %d, want %d", name, total, tc.want)
		}
	}
}

// Case A28: to the second, kept exact, shown honestly.
func TestFewerCentsThanASecondIsWorth(t *testing.T) {
	c, r := currency(t, "USD"), rate(t, "2.49")
	var lines []Amount
	for _, s := range []int64{1, 59, 61, 3601} {
		lines = append(lines, r.For(s))
	}
	_, total, _ := SplitInvoice(lines, 0, c)
	if total != 257 {
		t.Errorf("the month is %d cents, want 257", total)
	}
	if lines[0] != 691 || c.FormatSmall(lines[0]) != "< $0.01" || c.FormatExact(lines[0]) != "$0.000691" {
		t.Errorf("one second: %d, %s, %s", lines[0], c.FormatSmall(lines[0]), c.FormatExact(lines[0]))
	}
}
