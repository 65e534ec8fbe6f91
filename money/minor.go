package money

import (
	"errors"
	"fmt"
	"math"
)

var (
	// ErrNotMinor says that an amount is no whole number of minor units, or
	// not one that Stripe takes.
	ErrNotMinor = errors.New("not a whole number of minor units")
	// ErrTooLarge says that an amount is beyond what can be held or charged.
	ErrTooLarge = errors.New("amount too large")
	// ErrNegative says that an amount is below zero where that has no meaning.
	ErrNegative = errors.New("amount below zero")
)

// stripeMax is the largest number of minor units in one charge: eight digits.
const stripeMax = 99_999_999

// ToMinor converts a to minor units, exactly: it fails with ErrNotMinor rather
// than round.
func (c Currency) ToMinor(a Amount) (int64, error) {
	if a%c.Minor() != 0 {
		return 0, fmt.Errorf("%w: %s; the smallest step is %s", ErrNotMinor, c.FormatExact(a), c.Format(c.Minor()))
	}
	return int64(a / c.Minor()), nil
}

// FromMinor converts minor units to an amount. It fails with ErrTooLarge.
func (c Currency) FromMinor(minor int64) (Amount, error) {
	unit := int64(c.Minor())
	if minor > math.MaxInt64/unit || minor < math.MinInt64/unit {
		return 0, fmt.Errorf("%w: %d minor units of %s", ErrTooLarge, minor, c.Code)
	}
	return Amount(minor * unit), nil
}

// StripeStep is the smallest step of a charge in micro-units. It is the minor
// unit, except where that has three decimals: there Stripe wants the last digit
// to be 0, so KWD moves in steps of 10 fils.
func (c Currency) StripeStep() Amount {
	if c.Exponent == 3 {
		return 10 * c.Minor()
	}
	return c.Minor()
}

// ToStripe converts a to the integer that Stripe's API takes. It never rounds:
// it fails with ErrNotMinor between two steps, ErrNegative below zero and
// ErrTooLarge above eight digits.
func (c Currency) ToStripe(a Amount) (int64, error) {
	switch {
	case a < 0:
		return 0, fmt.Errorf("%w: %s", ErrNegative, c.FormatExact(a))
	case a%c.StripeStep() != 0:
		return 0, fmt.Errorf("%w: %s; card payments move in steps of %s", ErrNotMinor, c.FormatExact(a), c.Format(c.StripeStep()))
	case a/c.Minor() > stripeMax:
		return 0, fmt.Errorf("%w: %s; one card payment is at most %s", ErrTooLarge, c.Format(a), c.Format(stripeMax*c.Minor()))
	}
	return int64(a / c.Minor()), nil
}

// FromStripe converts an integer of Stripe's API to an amount. What Stripe says
// it moved is a fact, so it is taken even between two steps; it fails only with
// ErrNegative and ErrTooLarge.
func (c Currency) FromStripe(minor int64) (Amount, error) {
	if minor < 0 {
		return 0, fmt.Errorf("%w: %d minor units of %s", ErrNegative, minor, c.Code)
	}
	return c.FromMinor(minor)
}
