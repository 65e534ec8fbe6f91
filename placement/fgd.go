package placement

import (
	"cmp"
	"math"
	"slices"
)

// FGD is fragmentation gradient descent: it takes the node where the GPU that the
// next request is expected to find unusable grows least. It is told beforehand
// what requests will come.
//
// Source: Weng et al., "Beware of Fragmentation", USENIX ATC 2023, in the form of
// the authors' simulator (hkust-adsl/kubernetes-scheduler-simulator, frag.go and
// fgd_score.go), with its integer score: that and the tie to the smaller name are
// part of the published result.
type FGD struct {
	*cluster
	typical []typicalRequest
	scores  map[shape][]fgdScore
	members int // of the cluster when scores were made
}

type typicalRequest struct {
	Request
	share float64 // of the requests, 0 to 1
}

type fgdScore struct {
	version uint32 // of the node, plus one: the zero value is no score
	score   int32  // -1: does not fit
	gpu     int32  // that a share would go to
}

// NewFGD makes an FGD that expects requests like those in trace.
func NewFGD(nodes []Node, trace []Request) *FGD {
	return &FGD{cluster: newCluster(nodes), typical: typical(trace)}
}

// typical returns the most frequent shapes that make up 95 % of trace, rounded up
// to tens of shapes, with their shares among themselves. Memory is not part of a
// shape here. Both as in the source.
func typical(trace []Request) (out []typicalRequest) {
	counts := map[shape]int{}
	first := map[shape]Request{}
	for _, r := range trace {
		r.MemoryMiB = 0
		counts[r.shape()]++
		first[r.shape()] = r
	}
	var shapes []shape
	for s := range counts {
		shapes = append(shapes, s)
	}
	slices.SortFunc(shapes, func(a, b shape) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.milliCPU, b.milliCPU), cmp.Compare(a.gpus, b.gpus),
			cmp.Compare(a.milliGPU, b.milliGPU), cmp.Compare(a.models, b.models))
	})
	seen := 0
	for _, s := range shapes {
		if seen*100 >= len(trace)*95 && len(out)%10 == 0 {
			break
		}
		seen += counts[s]
		out = append(out, typicalRequest{first[s], float64(counts[s])})
	}
	for i := range out {
		out[i].share /= float64(seen)
	}
	return out
}

// Place implements Policy.
func (p *FGD) Place(r Request) (Seat, bool) {
	if p.members != p.cluster.members || p.scores == nil {
		p.scores, p.members = map[shape][]fgdScore{}, p.cluster.members
	}
	scores := p.scores[r.shape()]
	if scores == nil {
		scores = make([]fgdScore, len(p.nodes))
		p.scores[r.shape()] = scores
	}
	best := -1
	for i := range p.nodes {
		if scores[i].version != p.nodes[i].version+1 {
			scores[i] = p.score(&p.nodes[i], r)
		}
		if scores[i].score >= 0 && (best < 0 || scores[i].score > scores[best].score) {
			best = i
		}
	}
	if best < 0 {
		return Seat{}, false
	}
	gpus := p.nodes[best].tightest(r)
	if r.isShare() {
		gpus = []int{int(scores[best].gpu)}
	}
	return p.take(best, r, gpus), true
}

// score is 0 to 100 for the best GPUs of n, -1 when r does not fit.
func (p *FGD) score(n *node, r Request) fgdScore {
	best := fgdScore{version: n.version + 1, score: -1}
	if !n.fits(r) {
		return best
	}
	before := p.fragment(n)
	try := func(gpus ...int) {
		after := *n
		after.FreeMilliCPU -= r.MilliCPU
		after.FreeMilliGPU = slices.Clone(n.FreeMilliGPU)
		after.free -= r.TotalMilliGPU()
		for _, g := range gpus {
			after.FreeMilliGPU[g] -= r.MilliGPU
		}
		less := (before - p.fragment(&after)) / Milli
		if s := int32(100 / (1 + math.Exp(-less))); s > best.score {
			best.score = s
			if len(gpus) > 0 {
				best.gpu = int32(gpus[0])
			}
		}
	}
	if r.isShare() {
		n.levels(r, func(gpu int) { try(gpu) })
	} else {
		try(n.tightest(r)...)
	}
	return best
}

// fragment is the free milli-GPU of n that the next request is expected not to be
// able to use: all of it when the request does not fit or wants none, else that
// of the GPUs which are too small for it.
func (p *FGD) fragment(n *node) float64 {
	sum := 0.0
	for _, t := range p.typical {
		lost := n.free
		if t.GPUs > 0 && n.FreeMilliCPU >= t.MilliCPU && (len(t.Models) == 0 || slices.Contains(t.Models, n.Model)) {
			small, able := 0, 0
			for _, g := range n.FreeMilliGPU {
				if g < t.MilliGPU {
					small += g
				} else {
					able++
				}
			}
			if able >= t.GPUs {
				lost = small
			}
		}
		sum += t.share * float64(lost)
	}
	return sum
}
