// Fanout compares Berth's live path with centrifuge's on this machine: how many
// messages reach WebSocket clients per second of the server's CPU time. Servers
// run in turn, each in a process of its own; the clients are in this one.
//
//	go run ./fanout                       20 instances, 5,000 viewers
//	go run ./fanout -instances 80 -watch 4    each viewer has a list of the four on one node
//
// Berth's side is the portal itself: a node's tick goes through the meter and its
// database, into the ring, and out to browsers that hold a session. Centrifuge's
// side publishes the same bytes at the same moments and does nothing else. So two
// figures are given: of all CPU time, and of what the viewers added to that of
// the same ticks without any.
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
	Watch     int           // instances of one node that each viewer has messages of
	Viewers   int           // sockets, spread evenly over the instances
	Nodes     int           // that tick at moments spread evenly over the second
	Window    time.Duration // that is measured
	Profile   string        // a file
}

func main() {
	l := load{}
	flag.IntVar(&l.Instances, "instances", 20, "instances, each with one message a second")
	flag.IntVar(&l.Watch, "watch", 1, "instances that each viewer watches; they are on one node, so that instances / nodes must be a multiple")
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
	if l.Instances%l.Nodes != 0 || l.Instances/l.Nodes%l.Watch != 0 {
		return fmt.Errorf("%d instances on %d nodes cannot be watched %d by %d", l.Instances, l.Nodes, l.Watch, l.Watch)
	}
	fmt.Printf("%d instances on %d nodes, %d viewers of %d each, %v each\n", l.Instances, l.Nodes, l.Viewers, l.Watch, l.Window)
	fmt.Printf("%-12s %12s %14s %14s %8s %8s %14s\n", "server", "delivered/s", "per CPU s", "of viewers", "p50 ms", "p99 ms", "KB per socket")
	all, added := map[string][]float64{}, map[string][]float64{}
	for range rounds {
		for _, kind := range []string{"berth", "centrifuge"} {
			r, err := measure(ctx, kind, l)
			if err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
			all[kind] = append(all[kind], float64(r.messages)/r.cpu.Seconds())
			added[kind] = append(added[kind], float64(r.messages)/(r.cpu-r.without).Seconds())
			fmt.Printf("%-12s %12.0f %14.0f %14.0f %8.1f %8.1f %14.1f\n", kind, float64(r.messages)/r.wall.Seconds(), all[kind][len(all[kind])-1], added[kind][len(added[kind])-1],
				ms(r.latency(0.5)), ms(r.latency(0.99)), r.bytesPerSocket/1024)
		}
	}
	for _, f := range []struct {
		what string
		per  map[string][]float64
	}{{"of all CPU time", all}, {"of the CPU time that viewers added", added}} {
		ours, theirs := median(f.per["berth"]), median(f.per["centrifuge"])
		fmt.Printf("median of %d, messages per second %s: berth %.0f, centrifuge %.0f: %.2f times\n", rounds, f.what, ours, theirs, ours/theirs)
	}
	return nil
}

// result is one measurement.
type result struct {
	messages       int64
	wall, cpu      time.Duration
	without        time.Duration   // CPU time of as long a while without viewers
	latencies      []time.Duration // a sample, sorted
	bytesPerSocket float64         // resident memory of the server that a connection added
}

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
	start, err := s.usage()
	if err != nil {
		return r, err
	}
	time.Sleep(l.Window)
	before, err := s.usage()
	if err != nil {
		return r, err
	}
	r.without = before.CPU - start.CPU
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
