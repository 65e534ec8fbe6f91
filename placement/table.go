package placement

import (
	"math/rand/v2"
	"slices"
)

// table estimates the waste of a node from two sums, quickly enough for all nodes.
type table struct {
	hole [Milli + 1]float64 // what stays of a GPU with so much free
	sold [][]int            // by free CPU in steps: milli-GPU sold until it runs out, on each path, ascending
	sums [][]int            // of the first so many of these
}

const (
	cpuStep  = 500 // milli-CPU
	paths    = 64
	holeView = 8 // requests that a hole sees
)

func newTable(c *cluster, lesson []Request, rng *rand.Rand) table {
	t := table{}
	t.fillHoles(lesson)
	t.fillSold(c, lesson, rng)
	return t
}

// fillHoles finds the mean rest of a GPU after the next requests, each of which
// takes its part if there is room: exactly, from what is left one request later.
func (t *table) fillHoles(lesson []Request) {
	counts := map[int]int{}
	for _, r := range lesson {
		counts[r.MilliGPU]++
	}
	type part struct {
		milliGPU int
		share    float64
	}
	var parts []part
	for m := 1; m <= Milli; m++ { // in order, so that sums are the same each time
		if counts[m] > 0 {
			parts = append(parts, part{m, float64(counts[m]) / float64(len(lesson))})
		}
	}
	for g := range t.hole {
		t.hole[g] = float64(g)
	}
	for range holeView {
		later := t.hole
		for g := range t.hole {
			rest := later[g]
			for _, p := range parts {
				if p.milliGPU > g {
					break
				}
				rest += p.share * (later[g-p.milliGPU] - later[g])
			}
			t.hole[g] = rest
		}
	}
}

// fillSold draws paths of requests and notes what each has sold when the CPU ends.
func (t *table) fillSold(c *cluster, lesson []Request, rng *rand.Rand) {
	mostCPU, mostGPU := 0, 0
	for _, s := range c.sizes {
		mostCPU, mostGPU = max(mostCPU, s.milliCPU), max(mostGPU, s.gpus*Milli)
	}
	steps := mostCPU/cpuStep + 1
	t.sold, t.sums = make([][]int, steps), make([][]int, steps)
	for range paths {
		for cpu, gpu, at := 0, 0, 0; at < steps; {
			r := lesson[rng.IntN(len(lesson))]
			cpu += r.MilliCPU
			for ; at < steps && (at*cpuStep < cpu || gpu >= mostGPU); at++ {
				t.sold[at] = append(t.sold[at], gpu)
			}
			gpu += r.TotalMilliGPU()
		}
	}
	for at := range t.sold {
		slices.Sort(t.sold[at])
		t.sums[at] = make([]int, paths+1)
		for i, v := range t.sold[at] {
			t.sums[at][i+1] = t.sums[at][i] + v
		}
	}
}

// waste of a node with so much free CPU and GPU, of which holes are lost anyway.
func (t *table) waste(milliCPU, free int, holes float64) float64 {
	at := min(milliCPU/cpuStep, len(t.sold)-1)
	usable := float64(free) - holes
	sold := t.sold[at]
	low, high := 0, len(sold) // the paths that sell less than is usable
	for low < high {
		if mid := (low + high) / 2; float64(sold[mid]) < usable {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return holes + (float64(low)*usable-float64(t.sums[at][low]))/float64(len(sold))
}

// rise is how much the waste of n grows with r, in grains, at the best GPU for it;
// noRoom when r does not fit.
func (t *table) rise(n *node, r Request) int32 {
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
		return int32(grains(t.waste(cpu, free, holes)-before, n.empty))
	}
	best := noRoom
	n.levels(r, func(gpu int) {
		g := n.FreeMilliGPU[gpu]
		best = min(best, grains(t.waste(cpu, free, holes+t.hole[g-r.MilliGPU]-t.hole[g])-before, n.empty))
	})
	return int32(best)
}
