package placement

import "math"

// tariff is what is charged for using scarce room, on top of the waste.
type tariff struct {
	price []int // by size, in grains, for those that could go elsewhere
}

// newTariff prices the sizes that requests of few choices depend on: per share of
// the cluster's GPUs, how large a share of the demand needs that size.
func newTariff(c *cluster, lesson []Request) tariff {
	demand, needs := 0, make([]int, len(c.sizes))
	for _, r := range lesson {
		demand += r.TotalMilliGPU()
		if !selective(c, r) {
			continue
		}
		for i, s := range c.sizes {
			if s.serves(r) {
				needs[i] += r.TotalMilliGPU()
			}
		}
	}
	t := tariff{make([]int, len(c.sizes))}
	for i, s := range c.sizes {
		if needs[i] > 0 {
			scarcity := float64(needs[i]) / float64(demand) * float64(c.capacity) / float64(s.nodes*s.gpus*Milli)
			t.price[i] = int(math.Round(100 * scarcity / grain))
		}
	}
	return t
}

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

// lastResort is charged where large requests would lose one of their last empty nodes.
const lastResort = 10_000_000

// charge is what r pays for n, in grains. packing is packingCharge.
func (t tariff) charge(c *cluster, n *node, r Request, selective bool, packing float64) int {
	cost, s := int(packing*float64(n.free)), &c.sizes[n.size]
	if !selective {
		cost += t.price[n.size]
	}
	if n.empty && s.gpus >= 4 && r.GPUs < s.gpus && 10*s.empty <= s.nodes {
		cost += lastResort
	}
	return cost
}
