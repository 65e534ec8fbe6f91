package placement

import (
	"cmp"
	"slices"
)

// node is a Node as policies work on it.
type node struct {
	Node
	size    int    // index in cluster.sizes
	free    int    // milli-GPU of all its GPUs
	empty   bool   // nothing runs on it
	version uint32 // another one after each change: what caches compare
}

// size is what nodes of one kind have in common, and how many there are.
type size struct {
	model                     string
	milliCPU, memoryMiB, gpus int
	nodes, empty              int
}

// cluster is what each policy knows of its nodes: sorted by name, so that the
// first of equal choices is the one with the smaller name.
type cluster struct {
	nodes               []node
	byName              map[string]int
	sizes               []size
	capacity, allocated int // milli-GPU
	members             int // counts changes of which nodes there are
}

func newCluster(nodes []Node) *cluster {
	c := &cluster{}
	c.Update(nodes)
	return c
}

// Update implements Policy.
func (c *cluster) Update(nodes []Node) {
	if len(nodes) != len(c.nodes) || slices.ContainsFunc(nodes, func(n Node) bool {
		i, known := c.byName[n.Name]
		return !known || !sameKind(c.nodes[i].Node, n)
	}) {
		c.rebuild(nodes)
		return
	}
	for _, n := range nodes {
		i := c.byName[n.Name]
		if known := &c.nodes[i]; known.FreeMilliCPU != n.FreeMilliCPU || known.FreeMemoryMiB != n.FreeMemoryMiB || !slices.Equal(known.FreeMilliGPU, n.FreeMilliGPU) {
			c.change(i, func(old *node) {
				old.FreeMilliCPU, old.FreeMemoryMiB = n.FreeMilliCPU, n.FreeMemoryMiB
				copy(old.FreeMilliGPU, n.FreeMilliGPU)
			})
		}
	}
}

func sameKind(a, b Node) bool {
	return a.Model == b.Model && a.MilliCPU == b.MilliCPU && a.MemoryMiB == b.MemoryMiB && len(a.FreeMilliGPU) == len(b.FreeMilliGPU)
}

func (c *cluster) rebuild(nodes []Node) {
	*c = cluster{byName: map[string]int{}, members: c.members + 1}
	nodes = slices.SortedFunc(slices.Values(nodes), func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	for i, n := range nodes {
		n.FreeMilliGPU = slices.Clone(n.FreeMilliGPU) // the caller's stays the caller's
		c.nodes = append(c.nodes, node{Node: n, size: c.sizeOf(n)})
		c.byName[n.Name] = i
		c.count(i, +1)
	}
}

// sizeOf finds the size of n, or adds it.
func (c *cluster) sizeOf(n Node) int {
	for i, s := range c.sizes {
		if s.model == n.Model && s.milliCPU == n.MilliCPU && s.memoryMiB == n.MemoryMiB && s.gpus == len(n.FreeMilliGPU) {
			return i
		}
	}
	c.sizes = append(c.sizes, size{model: n.Model, milliCPU: n.MilliCPU, memoryMiB: n.MemoryMiB, gpus: len(n.FreeMilliGPU)})
	return len(c.sizes) - 1
}

// change edits what is free on a node and keeps the sums.
func (c *cluster) change(i int, edit func(*node)) {
	c.count(i, -1)
	edit(&c.nodes[i])
	c.nodes[i].version++
	c.count(i, +1)
}

// count adds node i to the sums of the cluster, or takes it out.
func (c *cluster) count(i, sign int) {
	n, s := &c.nodes[i], &c.sizes[c.nodes[i].size]
	n.free = 0
	for _, g := range n.FreeMilliGPU {
		n.free += g
	}
	n.empty = n.free == s.gpus*Milli && n.FreeMilliCPU == n.MilliCPU && n.FreeMemoryMiB == n.MemoryMiB
	s.nodes += sign
	if n.empty {
		s.empty += sign
	}
	c.capacity += sign * s.gpus * Milli
	c.allocated += sign * (s.gpus*Milli - n.free)
}

// fits reports whether n has room for r now.
func (n *node) fits(r Request) bool {
	if n.FreeMilliCPU < r.MilliCPU || n.FreeMemoryMiB < r.MemoryMiB || n.free < r.TotalMilliGPU() {
		return false
	}
	if len(r.Models) > 0 && !slices.Contains(r.Models, n.Model) {
		return false
	}
	able := 0
	for _, g := range n.FreeMilliGPU {
		if g >= r.MilliGPU {
			able++
		}
	}
	return able >= r.GPUs
}

// serves reports whether an empty node of this size has room for r.
func (s size) serves(r Request) bool {
	return s.milliCPU >= r.MilliCPU && s.memoryMiB >= r.MemoryMiB && s.gpus >= r.GPUs &&
		(len(r.Models) == 0 || slices.Contains(r.Models, s.model))
}

// tightest returns the GPUs on which r leaves least, the first of equals.
func (n *node) tightest(r Request) []int {
	var able []int
	for i, g := range n.FreeMilliGPU {
		if g >= r.MilliGPU {
			able = append(able, i)
		}
	}
	slices.SortStableFunc(able, func(a, b int) int { return cmp.Compare(n.FreeMilliGPU[a], n.FreeMilliGPU[b]) })
	able = able[:min(r.GPUs, len(able))]
	slices.Sort(able)
	return able
}

// levels calls yield with the first GPU of each fill level on which a share of
// one GPU could go; for anything else there is no choice, and it calls none.
func (n *node) levels(r Request, yield func(gpu int)) {
	if !r.isShare() {
		return
	}
	for i, g := range n.FreeMilliGPU {
		if g >= r.MilliGPU && !slices.Contains(n.FreeMilliGPU[:i], g) {
			yield(i)
		}
	}
}

// isShare reports whether r asks for a part of one GPU, so that its GPU is a choice.
func (r Request) isShare() bool { return r.GPUs == 1 && r.MilliGPU < Milli }

// take places r on these GPUs of node i, which fits.
func (c *cluster) take(i int, r Request, gpus []int) Seat {
	c.change(i, func(n *node) {
		n.FreeMilliCPU -= r.MilliCPU
		n.FreeMemoryMiB -= r.MemoryMiB
		for _, g := range gpus {
			n.FreeMilliGPU[g] -= r.MilliGPU
		}
	})
	return Seat{Node: c.nodes[i].Name, GPUs: gpus, Request: r}
}

// Release implements Policy.
func (c *cluster) Release(s Seat) error {
	i, known := c.byName[s.Node]
	if !known || !c.nodes[i].held(s) {
		return ErrNotHeld
	}
	c.change(i, func(n *node) {
		n.FreeMilliCPU += s.Request.MilliCPU
		n.FreeMemoryMiB += s.Request.MemoryMiB
		for _, g := range s.GPUs {
			n.FreeMilliGPU[g] += s.Request.MilliGPU
		}
	})
	return nil
}

// held reports whether s can have been taken of n.
func (n *node) held(s Seat) bool {
	if n.FreeMilliCPU+s.Request.MilliCPU > n.MilliCPU || n.FreeMemoryMiB+s.Request.MemoryMiB > n.MemoryMiB || len(s.GPUs) != s.Request.GPUs {
		return false
	}
	for at, g := range s.GPUs {
		if g < 0 || g >= len(n.FreeMilliGPU) || n.FreeMilliGPU[g]+s.Request.MilliGPU > Milli || slices.Contains(s.GPUs[:at], g) {
			return false
		}
	}
	return true
}

// clone is a copy that shares nothing which changes.
func (c *cluster) clone() *cluster {
	out := *c
	out.nodes, out.sizes = slices.Clone(c.nodes), slices.Clone(c.sizes)
	var all []int // one piece of memory for the GPUs of all
	for i := range out.nodes {
		all = append(all, out.nodes[i].FreeMilliGPU...)
	}
	for i := range out.nodes {
		n := len(out.nodes[i].FreeMilliGPU)
		out.nodes[i].FreeMilliGPU, all = all[:n:n], all[n:]
	}
	return &out
}
