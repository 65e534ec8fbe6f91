package money

import (
	"fmt"
	"math"
	"slices"
)

// SplitInvoice rounds an invoice, once. The total in minor units is what the
// lines and the carry of the invoice before fill whole; carryOut, always in
// [0, c.Minor()), is what is left for the next one, so no rounding is ever lost
// and all invoices together stay less than one minor unit below the ledger.
//
// Each line is its own floor or ceiling, the ceilings going to the largest
// remainders (earlier lines first), so that minor sums to total exactly. A line
// may be negative (a credit). It panics if carry is outside [0, c.Minor()) or
// the sum overflows: neither can come from invoices that Berth made.
func SplitInvoice(lines []Amount, carry Amount, c Currency) (minor []int64, total int64, carryOut Amount) {
	unit := c.Minor()
	if carry < 0 || carry >= unit {
		panic(fmt.Sprintf("money: invoice carry %d is outside one minor unit of %s", carry, c.Code))
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
	total = int64(floorDiv(sum, unit))
	carryOut = sum - Amount(total)*unit

	order := make([]int, len(lines))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(rest[b] - rest[a]) })
	// The carry is below one unit, so at most as many units are missing as there
	// are lines with a remainder.
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
