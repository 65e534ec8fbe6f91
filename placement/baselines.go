package placement

import (
	"math/rand/v2"
	"slices"
)

// Random takes any node that fits and any GPUs of it that do.
type Random struct {
	*cluster
	rng *rand.Rand
}

// NewRandom makes a Random; the same seed gives the same answers.
func NewRandom(nodes []Node, seed uint64) *Random {
	return &Random{newCluster(nodes), rand.New(rand.NewPCG(seed, 0))}
}

// Place implements Policy.
func (p *Random) Place(r Request) (Seat, bool) {
	chosen, fitting := -1, 0
	for i := range p.nodes {
		if p.nodes[i].fits(r) {
			if fitting++; p.rng.IntN(fitting) == 0 { // each of those so far is as likely
				chosen = i
			}
		}
	}
	if chosen < 0 {
		return Seat{}, false
	}
	var gpus []int
	for g, free := range p.nodes[chosen].FreeMilliGPU {
		if free >= r.MilliGPU {
			gpus = append(gpus, g)
		}
	}
	p.rng.Shuffle(len(gpus), func(i, j int) { gpus[i], gpus[j] = gpus[j], gpus[i] })
	return p.take(chosen, r, ascending(gpus[:r.GPUs])), true
}

// FirstFit takes the first node by name that fits, and its tightest GPUs. On the
// openb trace it is ahead of best fit, so no policy should be read without it.
type FirstFit struct{ *cluster }

// NewFirstFit makes a FirstFit.
func NewFirstFit(nodes []Node) *FirstFit { return &FirstFit{newCluster(nodes)} }

// Place implements Policy.
func (p *FirstFit) Place(r Request) (Seat, bool) {
	for i := range p.nodes {
		if p.nodes[i].fits(r) {
			return p.take(i, r, p.nodes[i].tightest(r)), true
		}
	}
	return Seat{}, false
}

// BestFit takes the node that has least left, processor and GPU counted alike as
// parts of the largest node, and its tightest GPUs.
//
// Source: hkust-adsl/kubernetes-scheduler-simulator, best_fit_score.go: weights
// 0.5 and 0.5, of 128 vCPU and 8 GPUs, the score cut to an integer of 0 to 100.
type BestFit struct{ *cluster }

// NewBestFit makes a BestFit.
func NewBestFit(nodes []Node) *BestFit { return &BestFit{newCluster(nodes)} }

// Place implements Policy.
func (p *BestFit) Place(r Request) (Seat, bool) {
	best, score := -1, -1
	for i := range p.nodes {
		n := &p.nodes[i]
		if !n.fits(r) {
			continue
		}
		left := float64(n.FreeMilliCPU-r.MilliCPU)/128_000*0.5 + float64(n.free-r.TotalMilliGPU())/8_000*0.5
		if s := max(0, int((1-left)*100)); s > score {
			best, score = i, s
		}
	}
	if best < 0 {
		return Seat{}, false
	}
	return p.take(best, r, p.nodes[best].tightest(r)), true
}

func ascending(gpus []int) []int {
	slices.Sort(gpus)
	return gpus
}
