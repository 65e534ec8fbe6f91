package money

import (
	"fmt"
	"math"
	"slices"
)

// SplitInvoice rounds an invoice, once: the total in minor units is the nearest
// to the lines and the carry of the invoice before, a half going up. carryOut,
// always in [−c.Minor()/2, c.Minor()/2), is what the rounding took or gave and
// goes on the next invoice, so no rounding is ever lost and all invoices
// together stay within half a minor unit of the ledger.
//
// Each line is its own floor or ceiling, the ceilings going to the largest
// remainders (earlier lines first), so that minor sums to total exactly. A line
// may be negative (a credit). It panics if carry is outside that range or the
// sum overflows: neither can come from invoices that Berth made.
func SplitInvoice(lines []Amount, carry Amount, c Currency) (minor []int64, total int64, carryOut Amount) {
	unit := c.Minor()
	if carry < -unit/2 || carry >= unit/2 {
		panic(fmt.Sprintf("money: invoice carry %d is more than half a minor unit of %s", carry, c.Code))
	}
	sum := carry
	minor = make([]int64, len(lines))
	rest := make([]Amount, len(lines))
	var floors int64
	for i, line := range lines {
		sum = add(sum, line)
		whole := floorDiv(line, unit)
		minor[i], rest[i] = int64(whole), line-whole*unit
		floors += minor[i]
	}
	total = int64(floorDiv(add(sum, unit/2), unit))
	carryOut = sum - Amount(total)*unit

	order := make([]int, len(lines))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(rest[b] - rest[a]) })
	// The carry is at most half a unit, so neither fewer units than the floors are
	// wanted, nor more than there are lines with a remainder.
	for _, i := range order[:total-floors] {
		minor[i]++
	}
	return minor, total, carryOut
}

// add is a+b; it panics on overflow.
func add(a, b Amount) Amount {
	if b > 0 && a > math.MaxInt64-b || b < 0 && a < math.MinInt64-b {
		panic(fmt.Sprintf("money: %d + %d overflows", a, b))
	}
	return a + b
}
