package placement

import (
	"slices"
	"sync"
)

// Horizon takes the node where the GPU that stays unsold over the coming stream
// of requests is expected to grow least. Where FGD asks what the next request
// cannot use, this sees processors that run out later. It is told nothing of what
// will come: it learns from the requests it is asked for, when Warm is called.
//
// It may be used from several goroutines at once.
type Horizon struct {
	mu      sync.Mutex
	cluster *cluster
	outlook *outlook
	recent  []Request // that asked for GPUs, the last at the end
	asked   int       // of these there were in all
	learned int       // was asked when the outlook was made

	warming sync.Mutex // one Warm at a time
	seed    uint64
}

const (
	memory    = 2000 // requests learned from
	firstLook = 64   // requests after which it first learns, then with each doubling
	nextLook  = 1000 // requests between lessons once the memory is full
)

// NewHorizon makes a Horizon. The seed decides which of its recent requests stand
// for the future; any will do.
func NewHorizon(nodes []Node, seed uint64) *Horizon {
	c := newCluster(nodes)
	return &Horizon{cluster: c, outlook: newOutlook(c, firstGuess(), seed), seed: seed}
}

// firstGuess is what it expects before it has seen anything: whole GPUs, halves,
// quarters and pairs, with the processors that such requests often ask for.
func firstGuess() []Request {
	return []Request{
		{GPUs: 1, MilliGPU: Milli, MilliCPU: 8000},
		{GPUs: 1, MilliGPU: Milli / 2, MilliCPU: 4000},
		{GPUs: 1, MilliGPU: Milli / 4, MilliCPU: 4000},
		{GPUs: 2, MilliGPU: Milli, MilliCPU: 16000},
	}
}

// Place implements Policy.
func (h *Horizon) Place(r Request) (Seat, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remember(r)
	c := h.outlook.choose(h.cluster, r, nil)
	if c.node < 0 {
		return Seat{}, false
	}
	gpus := []int{c.gpu}
	if !r.isShare() {
		gpus = h.cluster.nodes[c.node].tightest(r)
	}
	return h.cluster.take(c.node, r, gpus), true
}

// Choose returns the node on which Place would put r if what is free were as in
// nodes, of those that are able, by name, for reasons of the caller's (nil: all
// are). It takes no room and learns nothing: for callers that keep their own
// books, who may see them differently at the same moment. See Learn.
func (h *Horizon) Choose(nodes []Node, r Request, able func(node string) bool) (node string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.update(nodes)
	c := h.outlook.choose(h.cluster, r, able)
	if c.node < 0 {
		return "", false
	}
	return h.cluster.nodes[c.node].Name, true
}

// Learn takes note that r was asked for, whether it found room or not.
func (h *Horizon) Learn(r Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remember(r)
}

// remember keeps r among the recent requests.
func (h *Horizon) remember(r Request) {
	if r.TotalMilliGPU() <= 0 || r.MilliGPU > Milli { // nothing is to be learned of GPUs
		return
	}
	if len(h.recent) == 2*memory { // not with each request
		h.recent = append(h.recent[:0], h.recent[memory:]...)
	}
	h.recent = append(h.recent, r)
	h.asked++
}

// Release implements Policy.
func (h *Horizon) Release(s Seat) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cluster.Release(s)
}

// Update implements Policy.
func (h *Horizon) Update(nodes []Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.update(nodes)
}

func (h *Horizon) update(nodes []Node) {
	before := h.cluster.members
	h.cluster.Update(nodes)
	if h.cluster.members != before { // what was learned is by size and node
		h.outlook = newOutlook(h.cluster, h.lesson(), h.seed)
		h.learned = h.asked
	}
}

// lesson is what there is to learn from now.
func (h *Horizon) lesson() []Request {
	if h.asked < firstLook {
		return firstGuess()
	}
	return slices.Clone(h.recent[max(0, len(h.recent)-memory):])
}

// due reports whether enough has been asked since it last learned.
func (h *Horizon) due() bool {
	switch {
	case h.asked < firstLook:
		return false
	case h.learned < memory:
		return h.asked >= min(memory, max(firstLook, 2*h.learned))
	default:
		return h.asked >= h.learned+nextLook
	}
}

// Warm learns from recent requests, if there are enough new ones, and fills the
// caches for them; it reports whether it did. It takes tens of milliseconds but
// holds Place up only to copy the nodes and to put the result in place, so call it
// after each placement from a goroutine of its own, or whenever there is time.
// Without it the policy goes on with what it knows.
func (h *Horizon) Warm() bool {
	h.warming.Lock()
	defer h.warming.Unlock()
	h.mu.Lock()
	if !h.due() {
		h.mu.Unlock()
		return false
	}
	nodes, lesson, asked := h.cluster.clone(), h.lesson(), h.asked
	h.mu.Unlock()

	fresh := newOutlook(nodes, lesson, h.seed+uint64(asked))
	seen := map[shape]bool{}
	for _, r := range lesson {
		if s := r.shape(); !seen[s] {
			seen[s] = true
			fresh.choose(nodes, r, nil)
		}
	}

	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cluster.members != nodes.members { // nodes came or went: learn again
		return false
	}
	h.outlook, h.learned = fresh, asked
	return true
}
