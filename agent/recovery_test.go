package agent

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"berth/agent/runtime/shim"
	"berth/wire"
)

// Killed at random moments of a busy life and started again, the agent comes to
// the same: events in order without a gap, one run, slices as wanted, nothing
// left over. The instances notice nothing.
func TestKilledAtRandomMoments(t *testing.T) {
	n := newNode(t)
	p := n.portal
	n.beginChild()
	a, b := n.card(0), n.card(1)
	generation, after := int64(0), int64(0)
	var events []wire.Event
	put := func(entries ...wire.DesiredInstance) {
		generation++
		p.put(desired(generation, entries...))
	}
	random := rand.New(rand.NewPCG(1, 2))
	killAndBegin := func() {
		time.Sleep(time.Duration(random.Int64N(int64(700 * time.Millisecond)))) // where the kill falls is the point
		n.end()
		n.beginChild()
	}
	collect := func(enough func(wire.Event) bool) {
		t.Helper()
		events = append(events, p.events(after, enough)...)
		after = events[len(events)-1].Seq
	}

	kept := want("kept", wire.WantRunning, slice(t, a, "3g.40gb", 4))
	put(kept)
	collect(is("kept", wire.PhaseRunning))
	began := n.process("kept")
	for run := 1; run <= 6; run++ {
		entry := want("busy", wire.WantRunning, slice(t, a, "1g.10gb", run%4), slice(t, b, "2g.20gb", 2))
		entry.Run = run
		put(kept, entry)
		killAndBegin()
		collect(func(ev wire.Event) bool {
			return ev.Instance == "busy" && ev.Run == run && ev.Phase == wire.PhaseRunning
		})
		entry.Want = wire.WantStopped
		put(kept, entry)
		killAndBegin()
		collect(func(ev wire.Event) bool {
			return ev.Instance == "busy" && ev.Run == run && ev.Phase == wire.PhaseStopped
		})
		if got := placements(p.state(), b); len(got) != 0 {
			t.Errorf("run %d stopped, slices left: %v", run, got)
		}
	}
	gone := want("busy", wire.WantGone)
	gone.Run = 6
	put(kept, gone)
	killAndBegin()
	collect(is("busy", wire.PhaseGone))
	put(kept)

	s := p.until("only the kept one", func(s wire.State) bool { return len(s.Instances) == 1 })
	if got := placements(s, a); !slices.Equal(got, []string{"3g.40gb@4"}) {
		t.Errorf("on the first card: %v", got)
	}
	for i, ev := range events {
		if ev.Seq != int64(i)+1 {
			t.Fatalf("event %d has number %d", i+1, ev.Seq)
		}
	}
	for run := 1; run <= 6; run++ {
		phases := slices.Compact(phasesOf(events, "busy", run)) // a kill between doing and telling may tell twice
		want := []wire.Phase{wire.PhasePulling, wire.PhaseStarting, wire.PhaseRunning, wire.PhaseStopped}
		if run == 6 {
			want = append(want, wire.PhaseGone)
		}
		if !slices.Equal(phases, want) {
			t.Errorf("run %d went through %v", run, phases)
		}
	}
	wantPhases(t, events, "kept", 1, wire.PhasePulling, wire.PhaseStarting, wire.PhaseRunning)
	o, _ := instanceOf(s, "kept")
	if now := n.process("kept"); now != began {
		t.Errorf("the kept instance is another process: %s, was %s", now, began)
	}
	if o.Phase != wire.PhaseRunning || o.Run != 1 {
		t.Errorf("the kept instance is %+v", o)
	}
}

// shim is what the shim of an instance's first run last wrote down.
func (n *node) shim(id string) shim.State {
	n.t.Helper()
	s, err := shim.ReadState(filepath.Join(n.dir, "sandbox", "instances", id, "runs", "1"))
	if err != nil {
		n.t.Fatal(err)
	}
	return s
}

// process identifies the first process inside an instance's first run.
func (n *node) process(id string) string {
	n.t.Helper()
	s := n.shim(id)
	return fmt.Sprintf("%d since %d", s.InitPID, s.InitStart)
}

// C7: the node was cut off, the renter terminated meanwhile, the node returns and
// still has it: it is ended and its slices are free within 30 s. Until the portal
// has spoken, a stale or lost list ends nothing.
func TestUnexplainedIsEnded(t *testing.T) {
	n := newNode(t)
	n.begin()
	p := n.portal
	card := n.card(0)
	p.put(desired(1, want("i1", wire.WantRunning, slice(t, card, "3g.40gb", 0)), want("i2", wire.WantRunning, slice(t, card, "3g.40gb", 4))))
	p.untilPhase("i1", wire.PhaseRunning)
	p.untilPhase("i2", wire.PhaseRunning)
	n.end()
	if err := os.Remove(filepath.Join(n.dir, "desired.json")); err != nil { // the worst of stale lists
		t.Fatal(err)
	}
	n.begin()
	p.until("a few seconds on", func(s wire.State) bool { o, _ := instanceOf(s, "i1"); return o.Seconds >= 3 })
	for _, id := range []string{"i1", "i2"} {
		if o, _ := instanceOf(p.state(), id); o.Phase != wire.PhaseRunning {
			t.Errorf("before the portal spoke, %s is %+v", id, o)
		}
	}
	began := time.Now()
	p.put(desired(2, want("i2", wire.WantRunning, slice(t, card, "3g.40gb", 4))))
	events := p.events(0, is("i1", wire.PhaseStopped))
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("ended after %s", took)
	}
	if end := events[len(events)-1]; end.Reason != wire.ReasonUnexpected || end.Seconds < 3 {
		t.Errorf("ended with %q after %d s", end.Reason, end.Seconds)
	}
	s := p.state()
	if got := placements(s, card); !slices.Equal(got, []string{"3g.40gb@4"}) {
		t.Errorf("on the card: %v", got)
	}
	if o, _ := instanceOf(s, "i2"); o.Phase != wire.PhaseRunning {
		t.Errorf("the explained one is %+v", o)
	}
	// Its disk is there until the portal says gone.
	if o, ok := instanceOf(s, "i1"); !ok || o.Phase != wire.PhaseStopped {
		t.Errorf("the unexplained one is %+v", o)
	}
	p.put(desired(3, want("i1", wire.WantGone), want("i2", wire.WantRunning, slice(t, card, "3g.40gb", 4))))
	p.events(events[len(events)-1].Seq, is("i1", wire.PhaseGone))
}

// With the portal away a restarted agent goes on from its own disk: it ends what
// was to be ended and starts what was to be started.
func TestContinuesWithoutPortal(t *testing.T) {
	n := newNode(t)
	n.begin()
	p := n.portal
	card := n.card(0)
	n.end()
	n.portal.server.CloseClientConnections()
	if err := writeJSON(filepath.Join(n.dir, "desired.json"), desired(9, want("i1", wire.WantRunning, slice(t, card, "1g.10gb", 2)))); err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	p.unknown = true // no link, whatever the agent tries
	p.mu.Unlock()
	n.begin()
	deadline := time.Now().Add(patience)
	for {
		o, err := n.box.Observe(t.Context(), "i1", 0)
		if err == nil && o.Phase == "running" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("not started without the portal: %+v %v", o, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.mu.Lock()
	p.unknown = false
	p.mu.Unlock()
	wantPhases(t, p.events(0, is("i1", wire.PhaseRunning)), "i1", 1, wire.PhasePulling, wire.PhaseStarting, wire.PhaseRunning)
	if g := p.state().Generation; g != 9 {
		t.Errorf("generation %d, want 9", g)
	}
}

// C2: it ran here and the inventory lacks it: lost at the first look.
func TestSeenThenGone(t *testing.T) {
	n := newNode(t)
	n.begin()
	p := n.portal
	p.put(desired(1, want("i1", wire.WantRunning, slice(t, n.card(0), "1g.10gb", 0))))
	p.untilPhase("i1", wire.PhaseRunning)
	p.until("counted", func(s wire.State) bool { o, _ := instanceOf(s, "i1"); return o.Seconds >= 1 })
	// Behind the agent's back, and not in order: that would be an end somebody asked for.
	if err := syscall.Kill(n.shim("i1").ShimPID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := n.box.Remove(t.Context(), "i1"); err != nil {
		t.Fatal(err)
	}
	o := p.untilPhase("i1", wire.PhaseStopped)
	if o.Reason != wire.ReasonSupervisor && o.Reason != wire.ReasonNode || o.Seconds < 1 {
		t.Errorf("ended with %q %q after %d s", o.Reason, o.Detail, o.Seconds)
	}
	if got := placements(p.state(), n.card(0)); len(got) != 0 {
		t.Errorf("slices left: %v", got)
	}
}

// C4: the same wish sent again and again, over broken connections, starts once.
func TestRepeatedWishStartsOnce(t *testing.T) {
	n := newNode(t)
	n.begin()
	p := n.portal
	entry := want("i1", wire.WantRunning, slice(t, n.card(0), "1g.10gb", 0))
	for range 3 {
		p.put(desired(1, entry))
		p.drop()
	}
	events := p.events(0, is("i1", wire.PhaseRunning))
	wantPhases(t, events, "i1", 1, wire.PhasePulling, wire.PhaseStarting, wire.PhaseRunning)
	if listed, err := n.box.List(t.Context()); err != nil || len(listed) != 1 {
		t.Errorf("in the runtime: %+v %v", listed, err)
	}
}

// The simulated host restarts under the agent: the instance has lost its slices.
func TestRebootedDevices(t *testing.T) {
	n := newNode(t)
	n.begin()
	p := n.portal
	entry := want("i1", wire.WantRunning, slice(t, n.card(0), "1g.10gb", 0))
	p.put(desired(1, entry))
	p.untilPhase("i1", wire.PhaseRunning)
	if err := n.sim.Reboot(); err != nil {
		t.Fatal(err)
	}
	if o := p.untilPhase("i1", wire.PhaseStopped); o.Reason != wire.ReasonDevices {
		t.Errorf("ended with %q %q", o.Reason, o.Detail)
	}
	entry.Run = 2
	p.put(desired(2, entry)) // and starts on new ones
	p.untilPhase("i1", wire.PhaseRunning)
}
