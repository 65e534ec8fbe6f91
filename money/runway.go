package money

import (
	"fmt"
	"math"
	"sort"
)

// Forever is the longest time that the functions here answer, in seconds: a
// hundred years. It means that money is not the limit. It still fits a
// time.Duration, so callers may add it to a time.
const Forever int64 = 100 * 365 * 24 * 3600

// Run is a span that goes on: its price, and the seconds of it already charged.
type Run struct {
	Rate    Rate
	Elapsed int64
}

// AffordableSeconds returns for how many more whole seconds all runs together
// can go on: the largest s with Σ [Rate.For(Elapsed+s) − Rate.For(Elapsed)] ≤
// available. It is exact, not a division by the total price, which would be off
// by the floors. It is 0 when available is 0 or less and something costs money
// at once, and Forever when nothing ever uses it up. A run whose total would
// pass the largest Amount counts as not affordable.
func AffordableSeconds(available Amount, runs []Run) int64 {
	if available < 0 {
		return 0
	}
	n := sort.Search(int(Forever), func(i int) bool { return !affords(available, runs, int64(i)+1) })
	return int64(n)
}

// affords reports whether available covers s more seconds of all runs.
func affords(available Amount, runs []Run, s int64) bool {
	for _, r := range runs {
		if r.Elapsed < 0 || r.Elapsed > math.MaxInt64-Forever {
			panic(fmt.Sprintf("money: %d seconds elapsed", r.Elapsed))
		}
		end := r.Rate.For(r.Elapsed + s)
		cost := end - r.Rate.For(r.Elapsed)
		if end == math.MaxInt64 || cost > available {
			return false
		}
		available -= cost
	}
	return true
}

// AffordableFor returns to which total of seconds one span may be charged: the
// largest S ≥ cursor with r.For(S) − r.For(cursor) ≤ available, at most Forever
// past the cursor. Without money it is the cursor.
func AffordableFor(available Amount, r Rate, cursor int64) int64 {
	return cursor + AffordableSeconds(available, []Run{{Rate: r, Elapsed: cursor}})
}
