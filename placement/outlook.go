package placement

import (
	"math"
	"math/rand/v2"
)

// outlook is what Horizon learned from a list of requests, and the answers it has
// worked out from that. Waste is in milli-GPU throughout.
type outlook struct {
	tables   []table // by size
	rollout  rollout
	tariff   tariff
	rankings map[shape]*ranking
}

// ranking keeps what is known of one shape of request.
type ranking struct {
	selective bool
	rises     []rise // by node
}

// rise is how much the expected waste of a node grows when it takes a request, in
// grains. A rise of another version of the node is void.
type rise struct {
	version uint32 // of the node, plus one: the zero value is none
	grains  int32  // noRoom when the request does not fit
}

const (
	// grain is how many milli-GPU of waste make a difference: less is a tie, which
	// goes to the smaller name. That packs nodes in order; a finer one does worse.
	grain  = 20
	noRoom = math.MaxInt32
	// finalists are ranked again by the rollout, which is dearer than the table.
	finalists = 8
)

func newOutlook(c *cluster, lesson []Request, seed uint64) *outlook {
	rng := rand.New(rand.NewPCG(seed, uint64(len(lesson))))
	return &outlook{tables: newTables(c, lesson, rng), rollout: newRollout(c, lesson, rng), tariff: newTariff(c, lesson), rankings: map[shape]*ranking{}}
}

// choice is a node and, for a share, its GPU; node is -1 when none has room.
type choice struct{ node, gpu int }

// choose decides where r goes, of the nodes that are able (nil: all): those that
// the table likes best are ranked again by the rollout.
func (o *outlook) choose(c *cluster, r Request, able func(node string) bool) choice {
	known := o.ranking(c, r)
	packing := packingCharge(c)
	var best [finalists]struct{ node, cost int } // ascending by cost
	found := 0
	for i := range c.nodes {
		n := &c.nodes[i]
		if known.rises[i].version != n.version+1 {
			known.rises[i] = rise{n.version + 1, int32(o.tables[n.size].rise(n, r))}
		}
		grains := int(known.rises[i].grains)
		if grains == noRoom || able != nil && !able(n.Name) {
			continue
		}
		cost := grains + o.tariff.charge(c, n, r, known.selective, packing)
		if found == finalists && cost >= best[found-1].cost {
			continue
		}
		at := min(found, finalists-1)
		for at > 0 && best[at-1].cost > cost { // behind its equals: they have smaller names
			best[at] = best[at-1]
			at--
		}
		best[at].node, best[at].cost = i, cost
		found = min(found+1, finalists)
	}
	chosen, least := choice{node: -1}, 0
	for _, f := range best[:found] {
		n := &c.nodes[f.node]
		grains, gpu := o.rollout.rise(n, r)
		cost := grains + o.tariff.charge(c, n, r, known.selective, packing)
		if chosen.node < 0 || cost < least || cost == least && f.node < chosen.node {
			chosen, least = choice{f.node, gpu}, cost
		}
	}
	return chosen
}

// maxRankings bounds the memory: 8 bytes for each node and shape.
const maxRankings = 1000

func (o *outlook) ranking(c *cluster, r Request) *ranking {
	s := r.shape()
	known := o.rankings[s]
	if known == nil {
		if len(o.rankings) == maxRankings {
			clear(o.rankings)
		}
		known = &ranking{selective: selective(c, r), rises: make([]rise, len(c.nodes))}
		o.rankings[s] = known
	}
	return known
}

// grains of a change in waste. Opening an empty node costs one more.
func grains(change float64, opens bool) int {
	if opens {
		change += grain
	}
	return int(math.Floor(change / grain))
}
