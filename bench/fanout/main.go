// Fanout compares Berth's live path with centrifuge's on this machine: how many
// messages reach WebSocket clients per second of the server's CPU time. Servers
// run in turn, each in a process of its own; the clients are in this one.
//
//	go run ./fanout                       20 instances, 5,000 viewers
//	go run ./fanout -instances 2000 -viewers 2000
//
// Berth's side is the portal itself: a node's tick goes through the meter and its
// database, into the ring, and out to browsers that hold a session. Centrifuge's
// side publishes the same bytes at the same moments and does nothing else.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"
)

// load is what both servers do.
type load struct {
	Instances int           // each is one topic, at one message a second
	Viewers   int           // sockets, spread evenly over the instances
	Nodes     int           // that tick at moments spread evenly over the second
	Window    time.Duration // that is measured
	Profile   string        // a file
}

func main() {
	l := load{}
	flag.IntVar(&l.Instances, "instances", 20, "instances, each with one message a second")
	flag.IntVar(&l.Viewers, "viewers", 5000, "sockets, spread evenly over the instances")
	flag.IntVar(&l.Nodes, "nodes", 20, "nodes that the instances are on")
	flag.DurationVar(&l.Window, "window", 10*time.Second, "how long to measure")
	rounds := flag.Int("rounds", 3, "measurements of each server, in turn")
	flag.StringVar(&l.Profile, "profile", "", "write the CPU profile of Berth's server here")
	serves := flag.String("serve", "", "be the server of this kind (used by fanout itself)")
	flag.Parse()
	ctx := context.Background()
	err := error(nil)
	if *serves != "" {
		err = serve(ctx, *serves, l)
	} else {
		err = compare(ctx, l, *rounds)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fanout:", err)
		os.Exit(1)
	}
}

func compare(ctx context.Context, l load, rounds int) error {
	fmt.Printf("%d instances on %d nodes, %d viewers, %v each\n", l.Instances, l.Nodes, l.Viewers, l.Window)
	fmt.Printf("%-12s %12s %14s %8s %8s %14s\n", "server", "delivered/s", "msg per CPU s", "p50 ms", "p99 ms", "KB per socket")
	perCPU := map[string][]float64{}
	for range rounds {
		for _, kind := range []string{"berth", "centrifuge"} {
			r, err := measure(ctx, kind, l)
			if err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
			perCPU[kind] = append(perCPU[kind], r.perCPU())
			fmt.Printf("%-12s %12.0f %14.0f %8.1f %8.1f %14.1f\n", kind, float64(r.messages)/r.wall.Seconds(), r.perCPU(),
				ms(r.latency(0.5)), ms(r.latency(0.99)), r.bytesPerSocket/1024)
		}
	}
	ours, theirs := median(perCPU["berth"]), median(perCPU["centrifuge"])
	fmt.Printf("median of %d: berth %.0f, centrifuge %.0f messages per CPU second: %.2f times\n", rounds, ours, theirs, ours/theirs)
	return nil
}

// result is one measurement.
type result struct {
	messages       int64
	wall, cpu      time.Duration
	latencies      []time.Duration // a sample, sorted
	bytesPerSocket float64         // resident memory of the server that a connection added
}

func (r result) perCPU() float64 { return float64(r.messages) / r.cpu.Seconds() }

func (r result) latency(quantile float64) time.Duration {
	if len(r.latencies) == 0 {
		return 0
	}
	return r.latencies[int(quantile*float64(len(r.latencies)-1))]
}

func measure(ctx context.Context, kind string, l load) (r result, err error) {
	s, err := start(ctx, kind, l)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	before, err := s.usage()
	if err != nil {
		return r, err
	}
	viewers, err := connect(s.ready, l)
	if err != nil {
		return r, err
	}
	defer viewers.close()
	if err := viewers.all(time.Minute); err != nil {
		return r, err
	}
	from, err := s.usage()
	if err != nil {
		return r, err
	}
	began := time.Now()
	viewers.begin()
	time.Sleep(l.Window)
	r.messages, r.latencies = viewers.end()
	to, err := s.usage()
	r.wall, r.cpu = time.Since(began), to.CPU-from.CPU
	r.bytesPerSocket = float64(from.RSS-before.RSS) / float64(l.Viewers)
	slices.Sort(r.latencies)
	return r, err
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}
