package money

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrSyntax says that a text is not a number as Berth reads them.
	ErrSyntax = errors.New("not an amount")
	// ErrTooPrecise says that a number has more decimals than its unit.
	ErrTooPrecise = errors.New("too many decimals")
)

// MaxAmount is the largest amount that is read from outside: 10¹² major units.
// Nine of them still add up without overflow.
const MaxAmount = 1_000_000_000_000 * Unit

// rateDecimals is the precision of prices and of the ledger: a micro-unit.
const rateDecimals = 6

// Parse reads an amount with up to six decimals, such as "575.67", "1,000.00"
// or "$5": commas may group the whole part by threes, and the currency's symbol
// or code may stand before the number, or the code after it. Space around it is
// ignored. It fails with ErrSyntax, ErrTooPrecise, ErrTooLarge or ErrNegative.
func (c Currency) Parse(s string) (Amount, error) {
	return parse(c.bare(s), s, rateDecimals)
}

// ParseMinor is Parse for money that a person pays: no finer than the minor
// unit, so "10.005" is ErrTooPrecise for USD.
func (c Currency) ParseMinor(s string) (Amount, error) {
	return parse(c.bare(s), s, c.Exponent)
}

// ParseRate reads a price per hour in major units with up to six decimals. It
// fails as Parse does.
func ParseRate(s string) (Rate, error) {
	a, err := parse(strings.TrimSpace(s), s, rateDecimals)
	return Rate(a), err
}

// bare strips space and the currency's own symbol or code from s.
func (c Currency) bare(s string) string {
	s = strings.TrimSpace(s)
	symbol := strings.TrimSpace(c.Symbol)
	if rest, ok := strings.CutPrefix(s, symbol); ok && symbol != "" {
		return strings.TrimSpace(rest)
	}
	if n := len(c.Code); n > 0 && len(s) > n {
		if strings.EqualFold(s[:n], c.Code) {
			return strings.TrimSpace(s[n:])
		}
		if strings.EqualFold(s[len(s)-n:], c.Code) {
			return strings.TrimSpace(s[:len(s)-n])
		}
	}
	return s
}

// parse reads digits, grouped or not, with an optional fraction of at most
// decimals digits; zeros beyond them are harmless. typed is what errors quote.
// It works on the text: a float would turn 575.67 into 575.66.
func parse(s, typed string, decimals int) (Amount, error) {
	if len(typed) > 40 {
		return 0, fmt.Errorf("%w: %d characters; write it like 25.00", ErrSyntax, len(typed))
	}
	if s == "" {
		return 0, fmt.Errorf("%w: nothing was typed; write it like 25.00", ErrSyntax)
	}
	rest, negative := strings.CutPrefix(s, "-")
	whole, fraction, point := strings.Cut(rest, ".")
	digits, ok := ungroup(whole)
	if !ok || !onlyDigits(fraction) || point && fraction == "" || digits == "" && fraction == "" {
		return 0, fmt.Errorf("%w: %q; write it like 25.00, with a point before the decimals", ErrSyntax, typed)
	}
	if negative {
		return 0, fmt.Errorf("%w: %q; leave the minus sign out", ErrNegative, typed)
	}
	if kept := strings.TrimRight(fraction, "0"); len(kept) > decimals {
		return 0, fmt.Errorf("%w: %q has %d, this takes at most %d", ErrTooPrecise, typed, len(kept), decimals)
	}

	// Counted in major units first: in micro-units 13 digits can overflow.
	digits = strings.TrimLeft(digits, "0")
	var major int64
	for _, d := range digits[:min(len(digits), 18)] {
		major = major*10 + int64(d-'0')
	}
	if len(digits) > 18 || major > int64(MaxAmount/Unit) {
		return 0, fmt.Errorf("%w: %q; the most is 1,000,000,000,000", ErrTooLarge, typed)
	}
	a := Amount(major) * Unit
	place := Unit
	for _, d := range strings.TrimRight(fraction, "0") {
		place /= 10
		a += Amount(d-'0') * place
	}
	if a > MaxAmount {
		return 0, fmt.Errorf("%w: %q; the most is 1,000,000,000,000", ErrTooLarge, typed)
	}
	return a, nil
}

// ungroup removes the commas of "1,234,567". A comma anywhere else is refused:
// in "1,50" it would mean decimals to half the world.
func ungroup(s string) (string, bool) {
	groups := strings.Split(s, ",")
	for i, g := range groups {
		if !onlyDigits(g) {
			return "", false
		}
		if len(groups) > 1 && (i > 0 && len(g) != 3 || i == 0 && (g == "" || len(g) > 3)) {
			return "", false
		}
	}
	return strings.Join(groups, ""), true
}

// onlyDigits reports whether s is nothing but ASCII digits; "" is.
func onlyDigits(s string) bool {
	return strings.Trim(s, "0123456789") == ""
}
