package money

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestCurrencyTable(t *testing.T) {
	table := Currencies()
	if !slices.IsSortedFunc(table, func(a, b Currency) int { return strings.Compare(a.Code, b.Code) }) {
		t.Error("the table is not sorted by code, so lookups miss")
	}
	for _, c := range table {
		if len(c.Code) != 3 || strings.ToUpper(c.Code) != c.Code || c.Symbol == "" {
			t.Errorf("%+v", c)
		}
		for _, code := range []string{c.Code, strings.ToLower(c.Code)} {
			if got, err := LookupCurrency(code); err != nil || got != c {
				t.Errorf("%s: %+v, %v", code, got, err)
			}
		}
		// Both limits can be charged, and the least is worth a card fee.
		least, err := c.ToStripe(c.MinTopup)
		if err != nil || least < 100 {
			t.Errorf("%s: least top-up is %d at Stripe, %v", c.Code, least, err)
		}
		if most, err := c.ToStripe(c.MaxTopup); err != nil || most <= least {
			t.Errorf("%s: largest top-up is %d at Stripe, %v", c.Code, most, err)
		}
	}
	for code, minor := range map[string]Amount{"USD": 10_000, "JPY": 1_000_000, "KWD": 1_000} {
		if got := currency(t, code).Minor(); got != minor {
			t.Errorf("%s: one minor unit is %d, want %d", code, got, minor)
		}
	}
	for exponent, codes := range map[int]string{
		0: "BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF",
		3: "BHD JOD KWD OMR TND",
	} {
		var got []string
		for _, c := range table {
			if c.Exponent == exponent {
				got = append(got, c.Code)
			}
		}
		if strings.Join(got, " ") != codes {
			t.Errorf("exponent %d: %v, want %s", exponent, got, codes)
		}
	}
	for _, code := range []string{"", "XXX", "US", "USDT", "UGX", "ISK", "usd ", "ＵＳＤ"} {
		if c, err := LookupCurrency(code); !errors.Is(err, ErrUnknownCurrency) {
			t.Errorf("%q: %+v, %v", code, c, err)
		}
	}
}

// Case A11: the exponent in both directions.
func TestStripeAmounts(t *testing.T) {
	for _, tc := range []struct {
		code   string
		a      Amount
		stripe int64
		err    error
	}{
		{"JPY", 80 * Unit, 80, nil},
		{"KRW", 500 * Unit, 500, nil},
		{"USD", 80 * Unit, 8000, nil},
		{"USD", 0, 0, nil},
		{"USD", 10_000, 1, nil},
		{"USD", 10_001, 0, ErrNotMinor},
		{"USD", 999_999_990_000, 99_999_999, nil},
		{"USD", 1_000_000 * Unit, 0, ErrTooLarge},
		{"USD", -10_000, 0, ErrNegative},
		{"JPY", 500_000, 0, ErrNotMinor},
		{"KWD", 1_230_000, 1230, nil},
		{"KWD", 1_234_000, 0, ErrNotMinor}, // Stripe wants the last fils to be 0
		{"KWD", 10_000, 10, nil},
	} {
		c := currency(t, tc.code)
		got, err := c.ToStripe(tc.a)
		if got != tc.stripe || !errors.Is(err, tc.err) {
			t.Errorf("%s %d: %d, %v; want %d, %v", tc.code, tc.a, got, err, tc.stripe, tc.err)
		}
		if err == nil {
			if back, err := c.FromStripe(got); back != tc.a || err != nil {
				t.Errorf("%s: Stripe's %d is %d, %v; want %d", tc.code, got, back, err, tc.a)
			}
		}
	}
	jpy := currency(t, "jpy")
	if a, err := jpy.FromStripe(80); a != 80*Unit || err != nil || jpy.Format(a) != "¥80" {
		t.Errorf("amount_total 80 in jpy is %s, %v", jpy.Format(a), err)
	}
	for minor, want := range map[int64]error{-1: ErrNegative, math.MaxInt64: ErrTooLarge} {
		if a, err := jpy.FromStripe(minor); !errors.Is(err, want) {
			t.Errorf("%d: %d, %v", minor, a, err)
		}
	}
}

func TestMinorUnits(t *testing.T) {
	kwd := currency(t, "KWD")
	if n, err := kwd.ToMinor(1_234_000); n != 1234 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := kwd.ToMinor(1_234_500); !errors.Is(err, ErrNotMinor) {
		t.Errorf("%d, %v", n, err)
	}
	if a, err := kwd.FromMinor(-1234); a != -1_234_000 || err != nil {
		t.Errorf("%d, %v", a, err)
	}
	for _, n := range []int64{math.MaxInt64, math.MinInt64} {
		if a, err := kwd.FromMinor(n); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%d: %d, %v", n, a, err)
		}
	}
	usd := currency(t, "USD")
	for a, want := range map[Amount][2]Amount{
		14_876_544: {14_870_000, 14_880_000}, // what of a balance can go back to a card
		10_000:     {10_000, 10_000},
		0:          {0, 0},
		-1:         {-10_000, 0},
	} {
		if got := [2]Amount{usd.FloorMinor(a), usd.CeilMinor(a)}; got != want {
			t.Errorf("%d lies between %d, want %d", a, got, want)
		}
	}
}
