package placement

import (
	"math/rand/v2"
	"slices"
)

// table estimates the waste of a node from sums alone, quickly enough for all
// nodes at each decision. It knows of two causes: holes, the rests of GPUs that no
// request is small enough for, and GPUs whose node has no processors left.
type table struct {
	hole [Milli + 1]float64 // the mean rest of a GPU with so much free, from 0
	sold [][]int            // by free CPU in steps: milli-GPU sold until it runs out, on each path, ascending
	sums [][]int            // of the first so many of these, from 0
}

const (
	cpuStep  = 500 // milli-CPU
	paths    = 64
	holeView = 8 // requests that come by a hole
)

// newTables makes one for each size, of the requests it could serve. A size that
// serves none wastes all it has, so it is the first to be used for anything else.
func newTables(c *cluster, lesson []Request, rng *rand.Rand) (out []table) {
	for _, s := range c.sizes {
		var served []Request
		for _, r := range lesson {
			if s.serves(r) {
				served = append(served, r)
			}
		}
		t := table{}
		t.fillHoles(served)
		t.fillSold(s, served, rng)
		out = append(out, t)
	}
	return out
}

// fillHoles finds the mean rest of a GPU after the next requests, each of which
// takes its part if there is room: exactly, from the rests one request later.
func (t *table) fillHoles(served []Request) {
	var counts [Milli + 1]int
	for _, r := range served {
		counts[r.MilliGPU]++
	}
	type part struct {
		milliGPU int
		share    float64
	}
	var parts []part // ascending
	for m, n := range counts {
		if n > 0 {
			parts = append(parts, part{m, float64(n) / float64(len(served))})
		}
	}
	for g := range t.hole {
		t.hole[g] = float64(g)
	}
	for range holeView {
		later := t.hole
		for g := range t.hole {
			for _, p := range parts {
				if p.milliGPU > g {
					break
				}
				t.hole[g] += p.share * (later[g-p.milliGPU] - later[g])
			}
		}
	}
}

// fillSold draws paths, each an endless row of requests, and notes what each has
// sold when so much CPU is used up.
func (t *table) fillSold(s size, served []Request, rng *rand.Rand) {
	steps := s.milliCPU/cpuStep + 1
	t.sold, t.sums = make([][]int, steps), make([][]int, steps)
	for range paths {
		for cpu, gpu, at := 0, 0, 0; at < steps; {
			next := Request{MilliCPU: s.milliCPU + cpuStep} // none served: nothing is sold
			if len(served) > 0 {
				next = served[rng.IntN(len(served))]
			}
			cpu += next.MilliCPU
			for ; at < steps && (at*cpuStep < cpu || gpu >= s.gpus*Milli); at++ {
				t.sold[at] = append(t.sold[at], gpu)
			}
			gpu += next.TotalMilliGPU()
		}
	}
	for at, sold := range t.sold {
		slices.Sort(sold)
		t.sums[at] = make([]int, paths+1)
		for i, v := range sold {
			t.sums[at][i+1] = t.sums[at][i] + v
		}
	}
}

// waste of a node with so much free CPU and GPU, of which holes are lost anyway:
// these, and what of the rest is not sold when the CPU runs out.
func (t *table) waste(milliCPU, free int, holes float64) float64 {
	at := min(milliCPU/cpuStep, len(t.sold)-1)
	usable := float64(free) - holes
	sold := t.sold[at]
	low, high := 0, len(sold) // to be: how many paths sell less than is usable
	for low < high {
		if middle := (low + high) / 2; float64(sold[middle]) < usable {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return holes + (float64(low)*usable-float64(t.sums[at][low]))/float64(len(sold))
}

// rise is how much the waste of n grows with r, in grains, on the best GPU for it;
// noRoom when r does not fit.
func (t *table) rise(n *node, r Request) int {
	if !n.fits(r) {
		return noRoom
	}
	holes := 0.0
	for _, g := range n.FreeMilliGPU {
		holes += t.hole[g]
	}
	before := t.waste(n.FreeMilliCPU, n.free, holes)
	cpu, free := n.FreeMilliCPU-r.MilliCPU, n.free-r.TotalMilliGPU()
	if !r.isShare() {
		for _, g := range n.tightest(r) {
			holes += t.hole[n.FreeMilliGPU[g]-r.MilliGPU] - t.hole[n.FreeMilliGPU[g]]
		}
		return grains(t.waste(cpu, free, holes)-before, n.empty)
	}
	best := noRoom
	n.levels(r, func(gpu int) {
		g := n.FreeMilliGPU[gpu]
		best = min(best, grains(t.waste(cpu, free, holes+t.hole[g-r.MilliGPU]-t.hole[g])-before, n.empty))
	})
	return best
}
