package money

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawRate draws a price of up to 100,000 an hour; small and round ones too.
func drawRate(t *rapid.T) Rate {
	return Rate(rapid.OneOf(rapid.Int64Range(0, 100_000_000_000), rapid.Int64Range(0, 50_000_000), rapid.Int64Range(0, 10)).Draw(t, "rate"))
}

// floorCost is floor(r × s / 3,600) by big integers.
func floorCost(r Rate, s int64) *big.Int {
	n := new(big.Int).Mul(big.NewInt(int64(r)), big.NewInt(s))
	return n.Quo(n, big.NewInt(3600))
}

func TestForIsTheExactFloor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Rate(rapid.Int64Range(0, math.MaxInt64).Draw(t, "rate"))
		s := rapid.Int64Range(0, math.MaxInt64).Draw(t, "seconds")
		want := floorCost(r, s)
		got := big.NewInt(int64(r.For(s)))
		if !want.IsInt64() {
			want = big.NewInt(math.MaxInt64)
		}
		if got.Cmp(want) != 0 {
			t.Fatalf("%s, want %s", got, want)
		}
	})
}

func TestCeilCoversAndIsTight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, s := drawRate(t), rapid.Int64Range(0, 1e9).Draw(t, "seconds")
		up := new(big.Int).Mul(big.NewInt(int64(r.Ceil(s))), big.NewInt(3600))
		product := new(big.Int).Mul(big.NewInt(int64(r)), big.NewInt(s))
		if up.Cmp(product) < 0 || up.Sub(up, big.NewInt(3600)).Cmp(product) >= 0 && product.Sign() > 0 {
			t.Fatalf("%d for %d s at %d", r.Ceil(s), s, r)
		}
	})
}

func TestSaturation(t *testing.T) {
	if got := Rate(math.MaxInt64).For(math.MaxInt64); got != math.MaxInt64 {
		t.Errorf("For: %d", got)
	}
	if got := Rate(math.MaxInt64).Ceil(math.MaxInt64); got != math.MaxInt64 {
		t.Errorf("Ceil: %d", got)
	}
	if got := Rate(math.MaxInt64).Ceil(3601); got != math.MaxInt64 {
		t.Errorf("Ceil just past the largest amount: %d", got)
	}
}

// However a span is cut into reports, repeated and reordered, it costs the same.
func TestAnyPartitionCostsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRate(t)
		reports := rapid.SliceOfN(rapid.Int64Range(0, 3_000_000), 1, 30).Draw(t, "reports")
		last := slices.Max(reports)
		twice := append(slices.Clone(reports), reports...)
		for _, order := range [][]int64{slices.Sorted(slices.Values(reports)), rapid.Permutation(twice).Draw(t, "order")} {
			var sum Amount
			for _, charge := range reported(r, order...) {
				if charge < 0 {
					t.Fatalf("a report gave money back: %d", charge)
				}
				sum += charge
			}
			if sum != r.For(last) {
				t.Fatalf("%v sums to %d, want %d", order, sum, r.For(last))
			}
		}
	})
}

func TestRunwayIsTight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		runs := make([]Run, rapid.IntRange(0, 5).Draw(t, "runs"))
		for i := range runs {
			runs[i] = Run{drawRate(t), rapid.Int64Range(0, 100_000_000).Draw(t, "elapsed")}
		}
		available := Amount(rapid.OneOf(rapid.Int64Range(-10, 100), rapid.Int64Range(0, 1e13), rapid.Int64Range(0, int64(MaxAmount))).Draw(t, "available"))
		cost := func(s int64) *big.Int {
			sum := new(big.Int)
			for _, r := range runs {
				sum.Add(sum, floorCost(r.Rate, r.Elapsed+s))
				sum.Sub(sum, floorCost(r.Rate, r.Elapsed))
			}
			return sum
		}
		s := AffordableSeconds(available, runs)
		have := big.NewInt(int64(available))
		if s < 0 || s > Forever {
			t.Fatalf("%d seconds", s)
		}
		if available >= 0 && cost(s).Cmp(have) > 0 {
			t.Fatalf("%d s cost %s of %s", s, cost(s), have)
		}
		if available >= 0 && s < Forever && cost(s+1).Cmp(have) <= 0 {
			t.Fatalf("%d s, but one more costs only %s of %s", s, cost(s+1), have)
		}
		if len(runs) == 1 {
			if total := AffordableFor(available, runs[0].Rate, runs[0].Elapsed); total != runs[0].Elapsed+s {
				t.Fatalf("AffordableFor %d, AffordableSeconds %d", total, s)
			}
		}
	})
}

func TestRunwayEdges(t *testing.T) {
	for name, tc := range map[string]struct {
		available Amount
		runs      []Run
		want      int64
	}{
		"nothing runs":             {0, nil, Forever},
		"only free runs":           {0, []Run{{0, 5}, {0, 9}}, Forever},
		"in debt":                  {-1, nil, 0},
		"no money":                 {0, []Run{{3_600_000_000, 0}}, 0},
		"no money, under a micro":  {0, []Run{{1, 0}}, 3599},
		"money for a century":      {MaxAmount, []Run{{1_000_000, 0}}, Forever},
		"beyond any amount":        {MaxAmount, []Run{{math.MaxInt64, 1e12}}, 0},
		"beyond any amount, later": {MaxAmount, []Run{{Rate(MaxAmount), 0}}, 3600},
	} {
		t.Run(name, func(t *testing.T) {
			if got := AffordableSeconds(tc.available, tc.runs); got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
		})
	}
}

// Lines sum to the total, each is its own floor or ceiling, nothing is lost.
func TestInvoiceLinesSumToTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(Currencies()).Draw(t, "currency")
		unit := c.Minor()
		var lines []Amount
		for _, l := range rapid.SliceOfN(rapid.Int64Range(-3*int64(unit), 50*int64(unit)), 0, 20).Draw(t, "lines") {
			lines = append(lines, Amount(l))
		}
		carry := Amount(rapid.Int64Range(-int64(unit)/2, int64(unit)/2-1).Draw(t, "carry"))
		minor, total, out := SplitInvoice(lines, carry, c)
		exact, sum := carry, int64(0)
		for i, l := range lines {
			exact, sum = exact+l, sum+minor[i]
			if low := floorDiv(l, unit); minor[i] != int64(low) && (minor[i] != int64(low)+1 || l%unit == 0) {
				t.Fatalf("line %d of %d micro is shown as %d", i, l, minor[i])
			}
		}
		if sum != total || out < -unit/2 || out >= unit/2 || Amount(total)*unit+out != exact {
			t.Fatalf("lines %d, total %d, carry %d, exact %d", sum, total, out, exact)
		}
	})
}

// Over 24 months all invoices together stay within half a minor unit of the
// ledger.
func TestCarryNeverDrifts(t *testing.T) {
	for _, code := range []string{"USD", "JPY", "KWD"} {
		c := currency(t, code)
		rapid.Check(t, func(t *rapid.T) {
			var ledger, invoiced, carry Amount
			for range 24 {
				var lines []Amount
				for range rapid.IntRange(0, 6).Draw(t, "lines") {
					lines = append(lines, drawRate(t).For(rapid.Int64Range(0, 31*86_400).Draw(t, "seconds")))
				}
				for _, l := range lines {
					ledger += l
				}
				var total int64
				_, total, carry = SplitInvoice(lines, carry, c)
				invoiced += Amount(total) * c.Minor()
				if d := ledger - invoiced; d < -c.Minor()/2 || d >= c.Minor()/2 || d != carry {
					t.Fatalf("%s: ledger %d, invoiced %d, carry %d", code, ledger, invoiced, carry)
				}
			}
		})
	}
}

func TestImpossibleArgumentsPanic(t *testing.T) {
	usd := currency(t, "USD")
	for name, call := range map[string]func(){
		"negative rate":      func() { Rate(-1).For(1) },
		"negative seconds":   func() { Rate(1).For(-1) },
		"carry too large":    func() { SplitInvoice(nil, usd.Minor()/2, usd) },
		"carry too small":    func() { SplitInvoice(nil, -usd.Minor()/2-1, usd) },
		"overflowing lines":  func() { SplitInvoice([]Amount{math.MaxInt64, 1}, 0, usd) },
		"underflowing lines": func() { SplitInvoice([]Amount{math.MinInt64, -1}, 0, usd) },
		"negative elapsed":   func() { AffordableSeconds(1, []Run{{1, -1}}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			call()
		})
	}
}
