package main

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"berth/placement"
)

// outcome is what one policy did with one seed.
type outcome struct {
	value     float64         // allocated or served GPU, %
	refused   float64         // GPUs of the requests refused before 95 % of the cluster was asked for
	decisions []time.Duration // each Place
	learning  []time.Duration // each Warm that learned
}

// makePolicy returns a fresh policy of that name; FGD is told the trace.
func makePolicy(name string, nodes []placement.Node, trace []placement.Request, seed uint64) (placement.Policy, error) {
	switch name {
	case "random":
		return placement.NewRandom(nodes, seed), nil
	case "firstfit":
		return placement.NewFirstFit(nodes), nil
	case "bestfit":
		return placement.NewBestFit(nodes), nil
	case "fgd":
		return placement.NewFGD(nodes, trace), nil
	case "horizon":
		return placement.NewHorizon(nodes, seed), nil
	}
	return nil, fmt.Errorf("no policy %q: random, firstfit, bestfit, fgd or horizon", name)
}

// place takes the time of one decision; learning comes after it, as in the background.
func (o *outcome) place(p placement.Policy, r placement.Request) (placement.Seat, bool) {
	began := time.Now()
	seat, ok := p.Place(r)
	o.decisions = append(o.decisions, time.Since(began))
	if h, learns := p.(*placement.Horizon); learns {
		began = time.Now()
		if h.Warm() {
			o.learning = append(o.learning, time.Since(began))
		}
	}
	return seat, ok
}

// fill places the requests one after the other; none ever leaves.
func fill(p placement.Policy, requests []placement.Request, capacity int) outcome {
	o, asked, allocated := outcome{}, 0, 0
	for _, r := range requests {
		asked += r.TotalMilliGPU()
		if _, ok := o.place(p, r); ok {
			allocated += r.TotalMilliGPU()
		} else if 100*asked < 95*capacity {
			o.refused += float64(r.TotalMilliGPU()) / placement.Milli
		}
	}
	o.value = 100 * float64(allocated) / float64(capacity)
	return o
}

// lease is a seat until its time is over.
type lease struct {
	ends float64
	seat placement.Seat
}

type leases []lease

func (l leases) Len() int           { return len(l) }
func (l leases) Less(i, j int) bool { return l[i].ends < l[j].ends }
func (l leases) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *leases) Push(x any)        { *l = append(*l, x.(lease)) }
func (l *leases) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}

// churn draws requests from trace at random moments and lets each run for a
// random time, both exponential, of mean one life. They ask for load times the
// capacity. The first two lives only fill the cluster; of what is asked for in the
// next two, value is the part served, each request weighing its GPU times its life.
func churn(p placement.Policy, trace []placement.Request, capacity int, load float64, rng *rand.Rand) (outcome, error) {
	mean := 0.0 // milli-GPU of a request
	for _, r := range trace {
		mean += float64(r.TotalMilliGPU()) / float64(len(trace))
	}
	rate := load * float64(capacity) / mean // requests in one life
	var o outcome
	var running leases
	offered, served := 0.0, 0.0
	for now := rng.ExpFloat64() / rate; now < 4; now += rng.ExpFloat64() / rate {
		r, life := trace[rng.IntN(len(trace))], rng.ExpFloat64()
		for len(running) > 0 && running[0].ends <= now {
			if err := p.Release(heap.Pop(&running).(lease).seat); err != nil {
				return o, err
			}
		}
		seat, ok := o.place(p, r)
		if ok {
			heap.Push(&running, lease{now + life, seat})
		}
		if now >= 2 {
			offered += life * float64(r.TotalMilliGPU())
			if ok {
				served += life * float64(r.TotalMilliGPU())
			}
		}
	}
	o.value = 100 * served / offered
	return o, nil
}

// quantile of times, which it sorts.
func quantile(times []time.Duration, q float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return times[int(q*float64(len(times)-1))]
}

func meanTime(times []time.Duration) time.Duration {
	sum := time.Duration(0)
	for _, t := range times {
		sum += t
	}
	return sum / time.Duration(max(1, len(times)))
}
