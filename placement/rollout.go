package placement

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
)

// rollout estimates the waste of a node by placing streams of requests on it.
type rollout struct {
	streams [][][]rolled // by size of node: those of each stream that it could ever take
	memo    map[string]float64
	key     []byte // reused
	gpus    []int  // reused
	left    []int  // reused
}

type rolled struct{ milliCPU, memoryMiB, gpus, milliGPU int }

const (
	streams    = 32
	streamView = 32       // requests of a stream
	memoryStep = 16 << 10 // MiB
	maxMemo    = 200_000  // some 20 MB
)

// newRollout draws the streams from lesson, each request once before any comes again.
func newRollout(c *cluster, lesson []Request, rng *rand.Rand) rollout {
	o := rollout{memo: map[string]float64{}, streams: make([][][]rolled, len(c.sizes))}
	var order []int
	for range streams {
		drawn := make([][]rolled, len(c.sizes))
		for range streamView {
			if len(order) == 0 {
				order = rng.Perm(len(lesson))
			}
			r := lesson[order[0]]
			order = order[1:]
			for i, s := range c.sizes {
				if s.serves(r) {
					drawn[i] = append(drawn[i], rolled{r.MilliCPU, r.MemoryMiB, r.GPUs, r.MilliGPU})
				}
			}
		}
		for i := range drawn {
			o.streams[i] = append(o.streams[i], drawn[i])
		}
	}
	return o
}

// rise is how much the waste of n grows with r, which fits, in grains; and for a
// share the GPU where it grows least.
func (o *rollout) rise(n *node, r Request) (least, gpu int) {
	before := o.waste(n, n.FreeMilliCPU, n.FreeMemoryMiB, nil, 0)
	cpu, memory := n.FreeMilliCPU-r.MilliCPU, n.FreeMemoryMiB-r.MemoryMiB
	if !r.isShare() {
		return grains(o.waste(n, cpu, memory, n.tightest(r), r.MilliGPU)-before, n.empty), 0
	}
	least = noRoom
	n.levels(r, func(g int) {
		if rise := grains(o.waste(n, cpu, memory, []int{g}, r.MilliGPU)-before, n.empty); rise < least {
			least, gpu = rise, g
		}
	})
	return least, gpu
}

// waste of n with so much free CPU and memory, and less free on the taken GPUs.
// CPU and memory count in steps, so that few different nodes are to be worked out.
func (o *rollout) waste(n *node, milliCPU, memoryMiB int, taken []int, milliGPU int) float64 {
	o.gpus = append(o.gpus[:0], n.FreeMilliGPU...)
	for _, g := range taken {
		o.gpus[g] -= milliGPU
	}
	slices.Sort(o.gpus)
	o.key = binary.AppendUvarint(o.key[:0], uint64(n.size))
	o.key = binary.AppendUvarint(o.key, uint64(milliCPU/cpuStep))
	o.key = binary.AppendUvarint(o.key, uint64(memoryMiB/memoryStep))
	for _, g := range o.gpus {
		o.key = binary.AppendUvarint(o.key, uint64(g))
	}
	if known, ok := o.memo[string(o.key)]; ok {
		return known
	}
	if len(o.memo) == maxMemo {
		clear(o.memo)
	}
	sum := 0
	for _, stream := range o.streams[n.size] {
		o.left = append(o.left[:0], o.gpus...)
		sum += place(stream, milliCPU/cpuStep*cpuStep, memoryMiB/memoryStep*memoryStep, o.left)
	}
	waste := float64(sum) / streams
	o.memo[string(o.key)] = waste
	return waste
}

// place puts each request of stream that fits on the tightest GPUs and returns
// what is free in the end. gpus is ascending, and used up.
func place(stream []rolled, milliCPU, memoryMiB int, gpus []int) (free int) {
	for _, g := range gpus {
		free += g
	}
	for _, r := range stream {
		if r.milliCPU > milliCPU || r.memoryMiB > memoryMiB || r.gpus*r.milliGPU > free {
			continue
		}
		at := 0
		for at < len(gpus) && gpus[at] < r.milliGPU {
			at++
		}
		if len(gpus)-at < r.gpus {
			continue
		}
		milliCPU -= r.milliCPU
		memoryMiB -= r.memoryMiB
		if free -= r.gpus * r.milliGPU; free == 0 {
			return 0
		}
		for i := at; i < at+r.gpus; i++ { // each moves down to where it is in order again
			rest, to := gpus[i]-r.milliGPU, i
			for ; to > 0 && gpus[to-1] > rest; to-- {
				gpus[to] = gpus[to-1]
			}
			gpus[to] = rest
		}
	}
	return free
}
