package placement

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func someNodes(n int) (nodes []Node) {
	for i := range n {
		if i%3 == 0 {
			nodes = append(nodes, EmptyNode(fmt.Sprintf("node-%03d", i), "T4", 104_000, 512<<10, 2))
		} else {
			nodes = append(nodes, EmptyNode(fmt.Sprintf("node-%03d", i), "H100", 96_000, 384<<10, 8))
		}
	}
	return nodes
}

// It learns at 64 requests, with each doubling up to 2,000, then each 1,000.
func TestWhenHorizonLearns(t *testing.T) {
	h := NewHorizon(someNodes(3), 1)
	var at []int
	for i, gpuOnly := 1, someRequests[1]; i <= 4100; i++ {
		if seat, ok := h.Place(gpuOnly); ok {
			if err := h.Release(seat); err != nil {
				t.Fatal(err)
			}
		}
		h.Place(Request{MilliCPU: 1_000_000}) // without GPUs: nothing to learn
		if h.Warm() {
			at = append(at, i)
		}
	}
	if want := []int{64, 128, 256, 512, 1024, 2000, 3000, 4000}; !slices.Equal(at, want) {
		t.Errorf("learned at %v, want %v", at, want)
	}
}

// Caches are only caches: a fresh one with all it has worked out answers as one
// that has worked out nothing.
func TestCachesDoNotChangeAnswers(t *testing.T) {
	nodes := newCluster(someNodes(30))
	lesson := randomRequests(500, 1)
	used := newOutlook(nodes, lesson, 7)
	for _, r := range randomRequests(300, 2) {
		fresh := newOutlook(nodes, lesson, 7)
		got, want := used.choose(nodes, r, nil), fresh.choose(nodes, r, nil)
		if got != want {
			t.Fatalf("%+v: %+v, without caches %+v", r, got, want)
		}
		if got.node >= 0 {
			nodes.take(got.node, r, nodes.nodes[got.node].tightest(r))
		}
	}
}

// A goroutine that warms and others that place and release do not disturb each other.
func TestHorizonFromSeveralGoroutines(t *testing.T) {
	h := NewHorizon(someNodes(20), 1)
	var all sync.WaitGroup
	for g := range uint64(3) {
		all.Go(func() {
			for _, r := range randomRequests(200, g) {
				if seat, ok := h.Place(r); ok {
					if err := h.Release(seat); err != nil {
						t.Error(err)
					}
				}
				h.Warm()
			}
		})
	}
	all.Wait()
	if h.cluster.allocated != 0 {
		t.Errorf("%d milli-GPU still taken", h.cluster.allocated)
	}
}

func TestChoose(t *testing.T) {
	nodes := someNodes(9)
	h := NewHorizon(nodes, 1)
	if node, ok := h.Choose(nodes, someRequests[0], func(node string) bool { return node == "node-007" }); !ok || node != "node-007" {
		t.Errorf("%q %v", node, ok)
	}
	if node, ok := h.Choose(nodes, someRequests[0], func(string) bool { return false }); ok {
		t.Errorf("%q, though none is able", node)
	}
	node, _ := h.Choose(nodes, someRequests[0], nil)
	if h.cluster.allocated != 0 || h.asked != 0 {
		t.Error("asking took room, or was learned from")
	}
	if seat, ok := h.Place(someRequests[0]); !ok || seat.Node != node {
		t.Errorf("placed on %q, %q was chosen", seat.Node, node)
	}
	h.Learn(someRequests[0])
	if h.asked != 2 {
		t.Errorf("%d learned of, want 2", h.asked)
	}
}

// Node a has just the processors that its GPUs will need, b has plenty: what wants
// none of the GPUs goes to b, though a comes first.
func TestHorizonLeavesProcessorsToThoseWhoNeedThem(t *testing.T) {
	h := NewHorizon([]Node{EmptyNode("a", "T4", 32_000, 1<<20, 4), EmptyNode("b", "T4", 128_000, 1<<20, 4)}, 1)
	one := Request{GPUs: 1, MilliGPU: Milli, MilliCPU: 8_000}
	for range firstLook {
		seat, ok := h.Place(one)
		if !ok {
			t.Fatal("refused on empty nodes")
		}
		if err := h.Release(seat); err != nil {
			t.Fatal(err)
		}
	}
	if !h.Warm() {
		t.Fatal("did not learn")
	}
	for range 8 {
		if seat, _ := h.Place(Request{MilliCPU: 12_000}); seat.Node != "b" {
			t.Errorf("without GPUs on %q", seat.Node)
		}
	}
	for range 8 {
		if _, ok := h.Place(one); !ok {
			t.Error("GPUs stranded")
		}
	}
}

func TestTable(t *testing.T) {
	half := Request{GPUs: 1, MilliGPU: 500, MilliCPU: 4_000}
	tab := newTables(newCluster([]Node{EmptyNode("a", "T4", 96_000, 1<<20, 2)}), []Request{half}, rand.New(rand.NewPCG(1, 1)))[0]
	for name, tc := range map[string]struct{ got, want float64 }{
		"a whole GPU is sold":           {tab.hole[1000], 0},
		"the rest of a third is not":    {tab.hole[800], 300},
		"too small":                     {tab.hole[499], 499},
		"processors for all":            {tab.waste(96_000, 2000, 0), 0},
		"for three of four halves":      {tab.waste(12_000, 2000, 0), 500},
		"for none":                      {tab.waste(3_500, 2000, 0), 2000},
		"a hole is lost, whatever else": {tab.waste(3_500, 2000, 300), 2000},
		"and the rest sold":             {tab.waste(96_000, 1800, 300), 300},
	} {
		if math.Abs(tc.got-tc.want) > 1e-6 {
			t.Errorf("%s: %g, want %g", name, tc.got, tc.want)
		}
	}
}

func TestStreamOnANode(t *testing.T) {
	share := func(milli, cpu int) rolled { return rolled{cpu, 0, 1, milli} }
	for name, tc := range map[string]struct {
		stream []rolled
		cpu    int
		gpus   []int
		free   int
	}{
		"nothing comes":            {nil, 8_000, []int{200, 1000}, 1200},
		"on the tightest":          {[]rolled{share(150, 0), share(1000, 0)}, 0, []int{200, 1000}, 50},
		"in order after a share":   {[]rolled{share(700, 0), share(200, 0), share(300, 0)}, 0, []int{200, 1000}, 0},
		"no processors left":       {[]rolled{share(500, 6_000), share(500, 6_000)}, 8_000, []int{1000, 1000}, 1500},
		"two GPUs":                 {[]rolled{{0, 0, 2, 1000}}, 0, []int{500, 1000, 1000}, 500},
		"two GPUs that are not":    {[]rolled{{0, 0, 2, 1000}}, 0, []int{500, 600, 1000}, 2100},
		"two shares of different":  {[]rolled{{0, 0, 2, 400}, share(600, 0)}, 0, []int{500, 600, 1000}, 700},
		"later ones may still fit": {[]rolled{share(1000, 0), share(100, 0)}, 0, []int{500}, 400},
	} {
		if got := place(tc.stream, tc.cpu, 0, slices.Clone(tc.gpus)); got != tc.free {
			t.Errorf("%s: %d free, want %d", name, got, tc.free)
		}
	}
}

// A stream takes only what is free and leaves the GPUs in order.
func TestStreamProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gpus := rapid.SliceOfN(rapid.IntRange(0, Milli), 0, 8).Draw(t, "gpus")
		slices.Sort(gpus)
		before := 0
		for _, g := range gpus {
			before += g
		}
		stream := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) rolled {
			return rolled{rapid.IntRange(0, 20_000).Draw(t, "cpu"), 0, rapid.IntRange(1, 4).Draw(t, "count"), rapid.IntRange(1, Milli).Draw(t, "milli")}
		}), 0, 20).Draw(t, "stream")
		left := slices.Clone(gpus)
		free := place(stream, 96_000, 0, left)
		if free < 0 || free > before {
			t.Fatalf("%d free of %d", free, before)
		}
		if free > 0 { // else it stopped at once
			sum := 0
			for _, g := range left {
				sum += g
			}
			if sum != free || !slices.IsSorted(left) || left[0] < 0 {
				t.Fatalf("%v is left, %d in all", left, free)
			}
		}
	})
}

func TestTypicalRequests(t *testing.T) {
	var trace []Request
	for i := range 12 { // the first is asked for 100 times, the others once
		for range 1 + 99*(1-min(i, 1)) {
			trace = append(trace, Request{GPUs: 1, MilliGPU: 100 + i, MemoryMiB: len(trace)})
		}
	}
	got := typical(trace)
	if len(got) != 10 || got[0].MilliGPU != 100 || math.Abs(got[0].share-100.0/109) > 1e-9 {
		t.Errorf("%+v", got)
	}
}
