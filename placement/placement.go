// Package placement decides on which node, and on which of its GPUs, a request
// goes when several could take it. It owns the policies and what they know of the
// nodes; it knows nothing of accounts, leases or how a card is sliced. It is pure:
// no clock, no log, no I/O, and its only goroutines are the caller's.
//
// What always holds: a placement never takes more than is free, a release gives
// back exactly what was taken, equal choices go to the smaller node name, and the
// same calls with the same seed give the same answers.
package placement

import (
	"errors"
	"slices"
	"strings"
)

// Milli is a whole GPU in milli-GPU, the unit of shares.
const Milli = 1000

// Node is a host: what it has, and what of it is free.
type Node struct {
	Name                        string // distinct; the smaller one wins a tie
	Model                       string // of its GPUs
	MilliCPU, MemoryMiB         int    // that it has
	FreeMilliCPU, FreeMemoryMiB int    // of these
	FreeMilliGPU                []int  // of each GPU, 0 to Milli; leave out those that cannot be sold
}

// EmptyNode is a node on which nothing runs.
func EmptyNode(name, model string, milliCPU, memoryMiB, gpus int) Node {
	return Node{Name: name, Model: model, MilliCPU: milliCPU, MemoryMiB: memoryMiB,
		FreeMilliCPU: milliCPU, FreeMemoryMiB: memoryMiB, FreeMilliGPU: slices.Repeat([]int{Milli}, gpus)}
}

// Request is what is to be placed on one node. GPUs are different GPUs of it.
type Request struct {
	GPUs                int      // 0: processor and memory only
	MilliGPU            int      // of each GPU, 1 to Milli
	MilliCPU, MemoryMiB int      // of the host, for all GPUs together
	Models              []string // of GPU that will do; empty: any
}

// TotalMilliGPU is what the request takes of all GPUs together.
func (r Request) TotalMilliGPU() int { return r.GPUs * r.MilliGPU }

// shape tells requests apart: those of one shape have the same answers.
type shape struct {
	gpus, milliGPU, milliCPU, memoryMiB int
	models                              string
}

func (r Request) shape() shape {
	return shape{r.GPUs, r.MilliGPU, r.MilliCPU, r.MemoryMiB, strings.Join(r.Models, "|")}
}

// Seat is where a request was placed. Keep it for Release.
type Seat struct {
	Node    string
	GPUs    []int // indexes in the node's FreeMilliGPU, ascending; empty if none were asked for
	Request Request
}

// Policy places requests on the nodes it was made with.
type Policy interface {
	// Place takes room for r, or reports false when no node has it.
	Place(r Request) (Seat, bool)
	// Release gives a seat back. It fails with ErrNotHeld, and changes nothing, if
	// the node would then have more free than it has.
	Release(s Seat) error
	// Update brings the policy in line with what runs where: nodes is the whole
	// list. What is as the policy knew it costs next to nothing.
	Update(nodes []Node)
}

// ErrNotHeld is returned for a seat that cannot have been taken.
var ErrNotHeld = errors.New("placement: this seat is not held")
