package placement

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// policies makes one of each; the trace is for FGD.
func policies(nodes []Node, trace []Request) map[string]Policy {
	return map[string]Policy{
		"random":    NewRandom(nodes, 1),
		"first fit": NewFirstFit(nodes),
		"best fit":  NewBestFit(nodes),
		"FGD":       NewFGD(nodes, trace),
		"horizon":   NewHorizon(nodes, 1),
	}
}

// stateOf is what a policy holds of its nodes.
func stateOf(p Policy) *cluster {
	switch p := p.(type) {
	case *Random:
		return p.cluster
	case *FirstFit:
		return p.cluster
	case *BestFit:
		return p.cluster
	case *FGD:
		return p.cluster
	case *Horizon:
		return p.cluster
	}
	panic("no such policy")
}

var someRequests = []Request{
	{GPUs: 1, MilliGPU: 1000, MilliCPU: 8000, MemoryMiB: 32 << 10},
	{GPUs: 1, MilliGPU: 500, MilliCPU: 4000, MemoryMiB: 16 << 10},
	{GPUs: 1, MilliGPU: 190, MilliCPU: 3152, MemoryMiB: 8 << 10, Models: []string{"T4", "A10"}},
	{GPUs: 2, MilliGPU: 1000, MilliCPU: 16000, MemoryMiB: 64 << 10, Models: []string{"H100"}},
	{GPUs: 2, MilliGPU: 400, MilliCPU: 1000},
	{GPUs: 8, MilliGPU: 1000, MilliCPU: 90000, MemoryMiB: 300 << 10},
	{MilliCPU: 12000, MemoryMiB: 40 << 10},
}

func drawRequest(t *rapid.T) Request { return rapid.SampledFrom(someRequests).Draw(t, "request") }

func drawNodes(t *rapid.T) (nodes []Node) {
	for i := range rapid.IntRange(1, 12).Draw(t, "nodes") {
		kind := rapid.SampledFrom([]Node{EmptyNode("", "T4", 104_000, 512<<10, 2), EmptyNode("", "H100", 96_000, 384<<10, 8),
			EmptyNode("", "A10", 8_000, 32<<10, 1), EmptyNode("", "", 16_000, 64<<10, 0)}).Draw(t, "kind")
		nodes = append(nodes, EmptyNode(fmt.Sprintf("node-%02d", i), kind.Model, kind.MilliCPU, kind.MemoryMiB, len(kind.FreeMilliGPU)))
	}
	return nodes
}

// A placement is on different GPUs of a model that will do, nothing is ever taken
// twice, a refusal means that no node has room, and giving all back leaves what was.
func TestNeverMoreThanThereIsAndReleaseRestores(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := drawNodes(t)
		for name, p := range policies(nodes, someRequests) {
			c := stateOf(p)
			var held []Seat
			for range rapid.IntRange(0, 80).Draw(t, "steps") {
				if len(held) > 0 && rapid.IntRange(0, 3).Draw(t, "release") == 0 {
					i := rapid.IntRange(0, len(held)-1).Draw(t, "seat")
					if err := p.Release(held[i]); err != nil {
						t.Fatalf("%s: release %+v: %v", name, held[i], err)
					}
					held = slices.Delete(held, i, i+1)
					continue
				}
				r := drawRequest(t)
				room := slices.ContainsFunc(c.nodes, func(n node) bool { return n.fits(r) })
				seat, ok := p.Place(r)
				if ok != room {
					t.Fatalf("%s: placed %v though a node with room is %v: %+v", name, ok, room, r)
				}
				if ok {
					held = append(held, seat)
				}
				if h, learns := p.(*Horizon); learns {
					h.Warm()
				}
				checkAgainst(t, name, nodes, c, held)
			}
			for _, s := range held {
				if err := p.Release(s); err != nil {
					t.Fatal(err)
				}
			}
			checkAgainst(t, name, nodes, c, nil)
		}
	})
}

// checkAgainst fails unless what is free is what the seats leave of nodes.
func checkAgainst(t *rapid.T, name string, nodes []Node, c *cluster, held []Seat) {
	allocated := 0
	for i, n := range nodes { // their names are in order
		want := Node{FreeMilliCPU: n.MilliCPU, FreeMemoryMiB: n.MemoryMiB, FreeMilliGPU: slices.Repeat([]int{Milli}, len(n.FreeMilliGPU))}
		for _, s := range held {
			if s.Node != n.Name {
				continue
			}
			if len(s.GPUs) != s.Request.GPUs || len(slices.Compact(slices.Clone(s.GPUs))) != len(s.GPUs) || !slices.IsSorted(s.GPUs) {
				t.Fatalf("%s: GPUs of seat %+v", name, s)
			}
			if m := s.Request.Models; len(m) > 0 && !slices.Contains(m, n.Model) {
				t.Fatalf("%s: model %s for %+v", name, n.Model, s.Request)
			}
			want.FreeMilliCPU -= s.Request.MilliCPU
			want.FreeMemoryMiB -= s.Request.MemoryMiB
			for _, g := range s.GPUs {
				want.FreeMilliGPU[g] -= s.Request.MilliGPU
				allocated += s.Request.MilliGPU
			}
		}
		got := c.nodes[i]
		if want.FreeMilliCPU < 0 || want.FreeMemoryMiB < 0 || slices.ContainsFunc(want.FreeMilliGPU, func(g int) bool { return g < 0 }) {
			t.Fatalf("%s: over-committed: %+v", name, want)
		}
		if got.FreeMilliCPU != want.FreeMilliCPU || got.FreeMemoryMiB != want.FreeMemoryMiB || !slices.Equal(got.FreeMilliGPU, want.FreeMilliGPU) {
			t.Fatalf("%s: free is %+v, want %+v", name, got.Node, want)
		}
	}
	if c.allocated != allocated {
		t.Fatalf("%s: %d allocated, want %d", name, c.allocated, allocated)
	}
}

// The same calls give the same answers, in whatever order the nodes were listed.
func TestSameSeedSameAnswers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := drawNodes(t)
		mixed := rapid.Permutation(nodes).Draw(t, "order")
		requests := rapid.SliceOfN(rapid.Custom(drawRequest), 0, 200).Draw(t, "requests")
		one, other := policies(nodes, someRequests), policies(mixed, someRequests)
		for name := range one {
			for _, r := range requests {
				a, placed := one[name].Place(r)
				b, also := other[name].Place(r)
				if placed != also || a.Node != b.Node || !slices.Equal(a.GPUs, b.GPUs) {
					t.Fatalf("%s: %+v and %+v for %+v", name, a, b, r)
				}
				if h, learns := one[name].(*Horizon); learns && h.Warm() != other[name].(*Horizon).Warm() {
					t.Fatal("one learned, the other did not")
				}
			}
		}
	})
}

func TestTiesGoToTheSmallerName(t *testing.T) {
	nodes := []Node{EmptyNode("c", "T4", 96_000, 1<<20, 2), EmptyNode("a", "T4", 96_000, 1<<20, 2), EmptyNode("b", "T4", 96_000, 1<<20, 2)}
	for name, p := range policies(nodes, someRequests) {
		if name == "random" {
			continue
		}
		if seat, ok := p.Place(someRequests[0]); !ok || seat.Node != "a" || !slices.Equal(seat.GPUs, []int{0}) {
			t.Errorf("%s: %+v", name, seat)
		}
	}
}

func TestReleaseOfWhatIsNotHeld(t *testing.T) {
	for name, p := range policies([]Node{EmptyNode("a", "T4", 96_000, 1<<20, 2)}, someRequests) {
		held, _ := p.Place(someRequests[1])
		for what, s := range map[string]Seat{
			"another node":     {Node: "b", GPUs: held.GPUs, Request: held.Request},
			"the other GPU":    {Node: "a", GPUs: []int{1 - held.GPUs[0]}, Request: held.Request},
			"no such GPU":      {Node: "a", GPUs: []int{2}, Request: held.Request},
			"a GPU twice":      {Node: "a", GPUs: []int{held.GPUs[0], held.GPUs[0]}, Request: Request{GPUs: 2, MilliGPU: 250}},
			"too few GPUs":     {Node: "a", Request: held.Request},
			"more processors":  {Node: "a", GPUs: held.GPUs, Request: Request{GPUs: 1, MilliGPU: 500, MilliCPU: 5000}},
			"nothing but host": {Node: "a", Request: Request{MemoryMiB: 17 << 10}},
		} {
			if err := p.Release(s); !errors.Is(err, ErrNotHeld) {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
		if err := p.Release(held); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What the caller says of the nodes counts, and nodes may come and go.
func TestUpdate(t *testing.T) {
	a, b := EmptyNode("a", "T4", 96_000, 1<<20, 1), EmptyNode("b", "T4", 96_000, 1<<20, 1)
	whole := someRequests[0]
	for name, p := range policies([]Node{a}, someRequests) {
		p.Place(whole)
		if _, ok := p.Place(whole); ok {
			t.Errorf("%s: placed on a full node", name)
		}
		p.Update([]Node{a}) // it was not kept after all
		if seat, _ := p.Place(whole); seat.Node != "a" {
			t.Errorf("%s: %+v after the node became free", name, seat)
		}
		full := a
		full.FreeMilliGPU = []int{0}
		p.Update([]Node{b, full})
		if seat, _ := p.Place(whole); seat.Node != "b" {
			t.Errorf("%s: %+v after a node came", name, seat)
		}
		p.Update([]Node{full})
		if _, ok := p.Place(whole); ok || len(stateOf(p).nodes) != 1 {
			t.Errorf("%s: placed after the node went", name)
		}
		if full.FreeMilliGPU[0] != 0 || a.FreeMilliGPU[0] != Milli {
			t.Errorf("%s: the caller's nodes changed", name)
		}
	}
}

// randomRequests are so many of someRequests.
func randomRequests(n int, seed uint64) (out []Request) {
	rng := rand.New(rand.NewPCG(seed, 0))
	for range n {
		out = append(out, someRequests[rng.IntN(len(someRequests))])
	}
	return out
}
