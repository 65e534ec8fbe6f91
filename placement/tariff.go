package placement

import "math"

// tariff is what is charged for using scarce room, on top of the waste.
type tariff struct {
	price []int // by size, in grains, for requests that could go elsewhere
	// By size: the part of the demand that wants all GPUs of such a node, and of
	// that the part that is selective; 0 to 1.
	whole, selectiveWhole []float64
}

// newTariff prices the sizes that selective requests depend on: per share of the
// cluster's GPUs, how large a share of the demand needs that size.
func newTariff(c *cluster, lesson []Request) tariff {
	demand, needs := 0.0, make([]float64, len(c.sizes))
	t := tariff{make([]int, len(c.sizes)), make([]float64, len(c.sizes)), make([]float64, len(c.sizes))}
	for _, r := range lesson {
		gpu, picky, able := float64(r.TotalMilliGPU()), selective(c, r), 0
		demand += gpu
		for _, s := range c.sizes {
			if s.wholly(r) {
				able += s.nodes
			}
		}
		for i, s := range c.sizes {
			if picky && s.serves(r) {
				needs[i] += gpu
			}
			if s.wholly(r) { // where several sizes would do, each has its part
				t.whole[i] += gpu * float64(s.nodes) / float64(able)
				if picky {
					t.selectiveWhole[i] += gpu * float64(s.nodes) / float64(able)
				}
			}
		}
	}
	for i, s := range c.sizes {
		t.whole[i] /= demand
		t.selectiveWhole[i] /= demand
		if needs[i] > 0 {
			scarcity := needs[i] / demand * float64(c.capacity) / float64(s.nodes*s.gpus*Milli)
			t.price[i] = int(math.Round(100 * scarcity / grain))
		}
	}
	return t
}

// wholly reports whether r takes all GPUs of a node of this size.
func (s size) wholly(r Request) bool { return r.GPUs == s.gpus && s.serves(r) }

// selective reports whether the sizes of node that r could go on hold less than
// half of all GPUs.
func selective(c *cluster, r Request) bool {
	able := 0
	for _, s := range c.sizes {
		if s.serves(r) {
			able += s.nodes * s.gpus * Milli
		}
	}
	return 2*able < c.capacity
}

// packingCharge is what each free milli-GPU of a node costs, in grains: next to
// nothing until the cluster is nearly full, then fuller nodes come first.
func packingCharge(c *cluster) float64 {
	if c.capacity == 0 {
		return 0
	}
	return 1600 * math.Pow(float64(c.allocated)/float64(c.capacity), 8) / 8000 / grain
}

// lastResort is charged where large requests would lose an empty node they will need.
const lastResort = 10_000_000

// charge is what r pays for n, in grains. packing is packingCharge.
func (t tariff) charge(c *cluster, n *node, r Request, selective bool, packing float64) int {
	cost := int(packing * float64(n.free))
	if !selective {
		cost += t.price[n.size]
	}
	if n.empty && c.sizes[n.size].gpus >= 4 && float64(c.sizes[n.size].empty) <= t.reserve(c, n.size, r, selective) {
		cost += lastResort
	}
	return cost
}

// reserve is how many nodes of a size stay empty while r has room elsewhere: what
// is expected to be asked for until the cluster is full, with a margin for chance,
// and one in ten at least. From those who want a whole node it is kept only for
// those who cannot go elsewhere.
func (t tariff) reserve(c *cluster, size int, r Request, selective bool) float64 {
	s := c.sizes[size]
	coming := 1.3 * float64(c.capacity-c.allocated) / float64(s.gpus*Milli)
	switch {
	case r.GPUs < s.gpus:
		return max(float64(s.nodes)/10, t.whole[size]*coming)
	case !selective:
		return t.selectiveWhole[size] * coming
	default:
		return -1
	}
}
