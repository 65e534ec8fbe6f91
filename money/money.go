// Package money holds amounts, rates, currencies and the exact arithmetic on
// them. It owns every rounding rule of Berth and does no I/O: no floats, no
// clock, no log. All amounts are integers in micro-units of the currency's
// major unit (1 USD = 1,000,000), whatever the currency's exponent.
package money

import (
	"fmt"
	"math"
	"math/bits"
)

// Amount is a sum of money in micro-units (10⁻⁶ of the major unit). The zero
// value is nothing. It may be negative (a posting's other leg, a debt).
type Amount int64

// Unit is one major unit: 1 USD, 1 JPY, 1 KWD.
const Unit Amount = 1_000_000

// Rate is a price in micro-units per hour. Negative rates do not exist.
type Rate int64

// For returns what seconds of use cost at r since the start of a span:
// floor(r × seconds / 3,600), with a 128-bit product. Because the argument is
// the cumulative time of the span, any splitting of reports gives the same
// total. It panics on negative arguments (a bug, not an input) and saturates
// at the largest Amount.
func (r Rate) For(seconds int64) Amount {
	if r < 0 || seconds < 0 {
		panic(fmt.Sprintf("money: %d micro/h for %d s", r, seconds))
	}
	hi, lo := bits.Mul64(uint64(r), uint64(seconds))
	if hi >= 3600 {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, 3600)
	if q > math.MaxInt64 {
		return math.MaxInt64
	}
	return Amount(q)
}

// Ceil returns ceil(r × seconds / 3,600): what must be set aside so that
// seconds at r are covered for sure. It panics and saturates as For does.
func (r Rate) Ceil(seconds int64) Amount {
	a := r.For(seconds)
	hi, lo := bits.Mul64(uint64(r), uint64(seconds))
	if hi < 3600 && a < math.MaxInt64 {
		if _, rem := bits.Div64(hi, lo, 3600); rem != 0 {
			a++
		}
	}
	return a
}
