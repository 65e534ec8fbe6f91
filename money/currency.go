package money

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrUnknownCurrency says that a code is not in Berth's table. Nothing may
// guess an exponent for it: a wrong guess is a hundredfold charge.
var ErrUnknownCurrency = errors.New("unknown currency")

// Currency is one that Berth can charge in.
type Currency struct {
	Code     string // ISO 4217, upper case
	Exponent int    // decimals of the minor unit: JPY 0, USD 2, KWD 3
	Symbol   string // written before the number; the code and a space where the symbol would be ambiguous

	// The least and the most one top-up may be. They lie inside what Stripe
	// takes: above its minimum charge, and at most eight digits of minor units.
	MinTopup, MaxTopup Amount
}

// currencies is the whole table, by code.
//
// Source: Stripe, "Supported currencies" (zero-decimal and three-decimal lists;
// at most 8 digits per charge). UGX and ISK are left out: Stripe sends both
// with two decimals that must be 00. The top-up limits are Berth's own, about
// 5 to 5,000 US dollars.
var currencies = []Currency{
	{"AED", 2, "AED ", 20 * Unit, 20_000 * Unit},
	{"AUD", 2, "A$", 8 * Unit, 8_000 * Unit},
	{"BHD", 3, "BHD ", 2 * Unit, 2_000 * Unit},
	{"BIF", 0, "BIF ", 15_000 * Unit, 15_000_000 * Unit},
	{"BRL", 2, "R$", 30 * Unit, 30_000 * Unit},
	{"CAD", 2, "CA$", 7 * Unit, 7_000 * Unit},
	{"CHF", 2, "CHF ", 5 * Unit, 5_000 * Unit},
	{"CLP", 0, "CLP ", 5_000 * Unit, 5_000_000 * Unit},
	{"CZK", 2, "CZK ", 120 * Unit, 120_000 * Unit},
	{"DJF", 0, "DJF ", 1_000 * Unit, 1_000_000 * Unit},
	{"DKK", 2, "DKK ", 35 * Unit, 35_000 * Unit},
	{"EUR", 2, "€", 5 * Unit, 5_000 * Unit},
	{"GBP", 2, "£", 5 * Unit, 5_000 * Unit},
	{"GNF", 0, "GNF ", 45_000 * Unit, 45_000_000 * Unit},
	{"HKD", 2, "HK$", 40 * Unit, 40_000 * Unit},
	{"HUF", 2, "HUF ", 2_000 * Unit, 900_000 * Unit},
	{"INR", 2, "₹", 450 * Unit, 450_000 * Unit},
	{"JOD", 3, "JOD ", 4 * Unit, 4_000 * Unit},
	{"JPY", 0, "¥", 800 * Unit, 800_000 * Unit},
	{"KMF", 0, "KMF ", 2_500 * Unit, 2_500_000 * Unit},
	{"KRW", 0, "₩", 7_000 * Unit, 7_000_000 * Unit},
	{"KWD", 3, "KWD ", 2 * Unit, 2_000 * Unit},
	{"MGA", 0, "MGA ", 25_000 * Unit, 25_000_000 * Unit},
	{"MXN", 2, "MX$", 100 * Unit, 100_000 * Unit},
	{"NOK", 2, "NOK ", 55 * Unit, 55_000 * Unit},
	{"NZD", 2, "NZ$", 9 * Unit, 9_000 * Unit},
	{"OMR", 3, "OMR ", 2 * Unit, 2_000 * Unit},
	{"PLN", 2, "PLN ", 20 * Unit, 20_000 * Unit},
	{"PYG", 0, "PYG ", 40_000 * Unit, 40_000_000 * Unit},
	{"RON", 2, "RON ", 25 * Unit, 25_000 * Unit},
	{"RWF", 0, "RWF ", 7_500 * Unit, 7_500_000 * Unit},
	{"SEK", 2, "SEK ", 55 * Unit, 55_000 * Unit},
	{"SGD", 2, "S$", 7 * Unit, 7_000 * Unit},
	{"TND", 3, "TND ", 15 * Unit, 15_000 * Unit},
	{"USD", 2, "$", 5 * Unit, 5_000 * Unit},
	{"VND", 0, "₫", 99_000 * Unit, 99_000_000 * Unit},
	{"VUV", 0, "VUV ", 600 * Unit, 600_000 * Unit},
	{"XAF", 0, "XAF ", 3_000 * Unit, 3_000_000 * Unit},
	{"XOF", 0, "XOF ", 3_000 * Unit, 3_000_000 * Unit},
	{"XPF", 0, "XPF ", 600 * Unit, 600_000 * Unit},
	{"ZAR", 2, "ZAR ", 90 * Unit, 90_000 * Unit},
}

// LookupCurrency finds a currency by its ISO 4217 code in upper or lower case
// (Stripe writes lower). It fails with ErrUnknownCurrency.
func LookupCurrency(code string) (Currency, error) {
	i, ok := slices.BinarySearchFunc(currencies, strings.ToUpper(code), func(c Currency, code string) int {
		return strings.Compare(c.Code, code)
	})
	if !ok {
		return Currency{}, fmt.Errorf("%w %q: use an ISO 4217 code that Berth can charge in, such as USD, EUR or JPY", ErrUnknownCurrency, code)
	}
	return currencies[i], nil
}

// Currencies returns the whole table, by code.
func Currencies() []Currency { return slices.Clone(currencies) }

// Minor returns one minor unit in micro-units: USD 10,000, JPY 1,000,000,
// KWD 1,000.
func (c Currency) Minor() Amount {
	m := Unit
	for range c.Exponent {
		m /= 10
	}
	return m
}

// FloorMinor rounds a down to whole minor units (toward minus infinity): the
// most that can be paid out of a without paying more than it.
func (c Currency) FloorMinor(a Amount) Amount { return floorDiv(a, c.Minor()) * c.Minor() }

// CeilMinor rounds a up to whole minor units: the least that can be paid so
// that a is covered.
func (c Currency) CeilMinor(a Amount) Amount { return -c.FloorMinor(-a) }

// floorDiv is a/b rounded toward minus infinity, for b > 0.
func floorDiv(a, b Amount) Amount {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
