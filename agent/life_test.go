package agent

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/agent/device/simulator"
	"berth/gpu"
	"berth/wire"
)

func TestLife(t *testing.T) {
	n := newNode(t)
	n.begin()
	p := n.portal
	card := n.card(0)
	place := slice(t, card, "1g.10gb", 3)

	s := p.put(desired(1, want("i1", wire.WantRunning, place)))
	if s.Generation != 1 {
		t.Errorf("generation %d after a put of 1", s.Generation)
	}
	events := p.events(0, is("i1", wire.PhaseRunning))
	wantPhases(t, events, "i1", 1, wire.PhasePulling, wire.PhaseStarting, wire.PhaseRunning)
	s = p.until("a counted second", func(s wire.State) bool { o, _ := instanceOf(s, "i1"); return o.Seconds >= 1 })
	if got := placements(s, card); !slices.Equal(got, []string{"1g.10gb@3"}) {
		t.Errorf("on the card: %v", got)
	}
	if o, _ := instanceOf(s, "i1"); len(o.Slices) != 1 || o.Slices[0] != place {
		t.Errorf("i1 holds %+v", o.Slices)
	}
	if !s.Host.Simulated || s.Host.MilliCPU != 48_000 || s.Host.MemoryMiB != 3*112<<10 || s.Host.Runtime.Mode == "" || s.Host.Name != "rack-1" {
		t.Errorf("host %+v", s.Host)
	}

	// Restart: a higher run replaces the running one.
	again := want("i1", wire.WantRunning, place)
	again.Run = 2
	p.put(desired(2, again))
	events = append(events, p.events(events[len(events)-1].Seq, func(ev wire.Event) bool { return ev.Run == 2 && ev.Phase == wire.PhaseRunning })...)
	wantPhases(t, events, "i1", 1, wire.PhasePulling, wire.PhaseStarting, wire.PhaseRunning, wire.PhaseStopped)
	for _, ev := range events {
		if ev.Run == 1 && ev.Phase == wire.PhaseStopped && (ev.Seconds < 1 || ev.Reason != wire.ReasonAsked) {
			t.Errorf("run 1 ended with %d s, %q", ev.Seconds, ev.Reason)
		}
	}

	// Stop: slices are free when it is told; start again with run 3.
	stop := again
	stop.Want = wire.WantStopped
	p.put(desired(3, stop))
	events = append(events, p.events(events[len(events)-1].Seq, is("i1", wire.PhaseStopped))...)
	s = p.until("the stop to show", func(s wire.State) bool { o, _ := instanceOf(s, "i1"); return o.Phase == wire.PhaseStopped })
	if got := placements(s, card); len(got) != 0 || !s.Devices[0].MIG {
		t.Errorf("after the stop: %v, MIG %v, want an A100 that stays ready for the next slice", got, s.Devices[0].MIG)
	}
	if o, _ := instanceOf(s, "i1"); o.Run != 2 || len(o.Slices) != 0 {
		t.Errorf("after the stop: %+v", o)
	}
	again.Run = 3
	p.put(desired(4, again))
	events = append(events, p.events(events[len(events)-1].Seq, is("i1", wire.PhaseRunning))...)

	gone := again
	gone.Want = wire.WantGone
	p.put(desired(5, gone))
	events = append(events, p.events(events[len(events)-1].Seq, is("i1", wire.PhaseGone))...)
	wantPhases(t, events, "i1", 3, wire.PhasePulling, wire.PhaseStarting, wire.PhaseRunning, wire.PhaseStopped, wire.PhaseGone)
	p.put(desired(6))
	s = p.until("nothing left", func(s wire.State) bool { return len(s.Instances) == 0 })
	for i := range events {
		if events[i].Seq != int64(i)+1 {
			t.Errorf("event %d has number %d", i+1, events[i].Seq)
		}
	}
	if left, err := n.box.List(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("left in the runtime: %v %v", left, err)
	}
}

func TestOlderGenerationRefused(t *testing.T) {
	n := newNode(t)
	n.begin()
	p := n.portal
	card := n.card(0)
	entry := want("i1", wire.WantRunning, slice(t, card, "1g.10gb", 0))
	p.put(desired(5, entry))
	p.untilPhase("i1", wire.PhaseRunning)
	if status := p.call("PUT", "/v1/desired", desired(4), nil); status != 409 {
		t.Errorf("an older generation: %d, want 409", status)
	}
	n.end()
	n.begin() // also after a restart
	if status := p.call("PUT", "/v1/desired", desired(4), nil); status != 409 {
		t.Errorf("an older generation after a restart: %d, want 409", status)
	}
	if o := p.untilPhase("i1", wire.PhaseRunning); o.Run != 1 {
		t.Errorf("i1 is %+v", o)
	}
	for name, bad := range map[string]wire.Desired{
		"twice":     desired(6, entry, entry),
		"bad id":    desired(6, want("../x", wire.WantGone)),
		"bad wish":  desired(6, want("i2", "paused")),
		"run zero":  desired(6, wire.DesiredInstance{ID: "i2", Want: wire.WantGone}),
		"empty id":  desired(6, want("", wire.WantGone)),
		"long name": desired(6, want(strings.Repeat("x", 200), wire.WantGone)),
	} {
		if status := p.call("PUT", "/v1/desired", bad, nil); status != 422 {
			t.Errorf("%s: %d, want 422", name, status)
		}
	}
	if g := p.state().Generation; g != 5 {
		t.Errorf("generation %d after refusals, want 5", g)
	}
}

// A run ends by itself at its paid seconds, and says so.
func TestPaidSeconds(t *testing.T) {
	n := newNode(t)
	n.begin()
	p := n.portal
	entry := want("i1", wire.WantRunning, slice(t, n.card(0), "1g.10gb", 0))
	entry.PaidSeconds = 2
	p.put(desired(1, entry))
	events := p.events(0, is("i1", wire.PhaseStopped))
	if end := events[len(events)-1]; end.Reason != wire.ReasonPaidUntil || end.Seconds != 2 {
		t.Errorf("ended with %q after %d s, want paid_until after 2", end.Reason, end.Seconds)
	}
	if got := placements(p.state(), n.card(0)); len(got) != 0 {
		t.Errorf("slices left: %v", got)
	}
}

func TestRenewedPaidSeconds(t *testing.T) {
	n := newNode(t)
	n.begin()
	p := n.portal
	entry := want("i1", wire.WantRunning, slice(t, n.card(0), "1g.10gb", 0))
	entry.PaidSeconds = 4
	p.put(desired(1, entry))
	p.untilPhase("i1", wire.PhaseRunning)
	entry.PaidSeconds = 3600
	p.put(desired(2, entry))
	p.until("beyond the first limit", func(s wire.State) bool {
		o, _ := instanceOf(s, "i1")
		return o.Phase == wire.PhaseRunning && o.Seconds > 5
	})
}

// What cannot be run fails with a reason and never starts to cost.
func TestFailures(t *testing.T) {
	n := newNode(t)
	n.begin()
	p := n.portal
	card, whole := n.card(0), n.card(2)
	image := want("image", wire.WantRunning, slice(t, card, "1g.10gb", 0))
	image.Spec.Image = "pytorch"
	script := want("script", wire.WantRunning, slice(t, card, "1g.10gb", 1))
	script.Spec.StartupScript = "exit 3"
	exits := want("exits", wire.WantRunning, slice(t, card, "1g.10gb", 2))
	exits.Spec.Command = []string{"sh", "-c", "exit 7"}
	missing := want("missing", wire.WantRunning, slice(t, card, "1g.10gb", 3))
	missing.Spec.Command = []string{"/no/such"}
	absent := want("absent", wire.WantRunning, slice(t, "GPU-none", "1g.10gb", 0))
	undivided := want("undivided", wire.WantRunning, slice(t, whole, "1g.10gb", 0))
	p.put(desired(1, image, script, exits, missing, absent, undivided))
	for id, reason := range map[string]string{
		"image": wire.ReasonImage, "script": wire.ReasonStartup, "exits": wire.ReasonExited, "missing": wire.ReasonCommand,
		"absent": wire.ReasonSlices, "undivided": wire.ReasonSlices,
	} {
		o := p.untilPhase(id, wire.PhaseStopped)
		if o.Reason != reason || o.Detail == "" && id != "exits" {
			t.Errorf("%s ended with %q %q, want %q", id, o.Reason, o.Detail, reason)
		}
		if o.Seconds != 0 && id != "exits" {
			t.Errorf("%s cost %d s", id, o.Seconds)
		}
		if id == "exits" && (o.ExitCode == nil || *o.ExitCode != 7) {
			t.Errorf("exits ended with %v", o.ExitCode)
		}
	}
	if s := p.state(); len(placements(s, card)) != 0 || s.Devices[2].Health != "ok" {
		t.Errorf("left after failures: %v", placements(s, card))
	}
}

// A granted slice that vanishes ends the run at once, and only that run. (B8,
// fewer devices inside than granted at the start, is the sandbox's TestDevices.)
func TestSliceVanishes(t *testing.T) {
	n := newNode(t)
	n.begin()
	p := n.portal
	card := n.card(0)
	held := want("i0", wire.WantRunning, slice(t, n.card(1), "1g.10gb", 0))
	first := want("i1", wire.WantRunning, slice(t, card, "1g.10gb", 0), slice(t, card, "1g.10gb", 1))
	p.put(desired(1, held, first))
	p.untilPhase("i1", wire.PhaseRunning)
	cards, err := n.sim.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := n.sim.Lose(cards[0].Slices[1].UUID); err != nil {
		t.Fatal(err)
	}
	p.put(desired(2, held, first))
	events := p.events(0, is("i1", wire.PhaseStopped))
	wantPhases(t, events, "i1", 1, wire.PhasePulling, wire.PhaseStarting, wire.PhaseRunning, wire.PhaseStopped)
	if end := events[len(events)-1]; end.Reason != wire.ReasonDevices || !strings.HasPrefix(end.Detail, "1 of 2 slices") {
		t.Errorf("ended with %q %q after %d s", end.Reason, end.Detail, end.Seconds)
	}
	if got := placements(p.state(), card); len(got) != 0 {
		t.Errorf("slices left: %v", got)
	}
	if o, _ := instanceOf(p.state(), "i0"); o.Phase == wire.PhaseStopped {
		t.Errorf("the neighbour ended too: %+v", o)
	}
}

// A place that its last holder is still leaving is waited for.
func TestPlaceChangesHands(t *testing.T) {
	n := newNode(t)
	n.begin()
	p := n.portal
	card := n.card(0)
	whole := slice(t, card, gpu.Whole, 0)
	p.put(desired(1, want("i1", wire.WantRunning, whole)))
	p.untilPhase("i1", wire.PhaseRunning)
	p.put(desired(2, want("i1", wire.WantGone, whole), want("i2", wire.WantRunning, slice(t, card, "3g.40gb", 4), slice(t, card, "1g.10gb", 0))))
	p.untilPhase("i2", wire.PhaseRunning)
	if got := placements(p.state(), card); !slices.Equal(got, []string{"1g.10gb@0", "3g.40gb@4"}) {
		t.Errorf("on the card: %v", got)
	}
	// A place that its holder keeps is not.
	p.put(desired(3, want("i2", wire.WantRunning, slice(t, card, "3g.40gb", 4), slice(t, card, "1g.10gb", 0)), want("i3", wire.WantRunning, slice(t, card, "2g.20gb", 4))))
	if o := p.untilPhase("i3", wire.PhaseStopped); o.Reason != wire.ReasonSlices || !strings.Contains(o.Detail, "held by instance i2") {
		t.Errorf("i3 ended with %q %q", o.Reason, o.Detail)
	}
}

// A slice that Berth did not make is reported and left alone; the card is not sold.
func TestForeignSlice(t *testing.T) {
	n := newNode(t)
	n.begin()
	p := n.portal
	card := n.card(0)
	if _, err := n.sim.Create(t.Context(), card, "2g.20gb", 0); err != nil {
		t.Fatal(err)
	}
	beside := want("i2", wire.WantRunning, slice(t, card, "1g.10gb", 6))
	for i, in := range []wire.DesiredInstance{want("i1", wire.WantRunning, slice(t, card, "1g.10gb", 0)), want("i3", wire.WantRunning, slice(t, card, "2g.20gb", 0))} {
		p.put(desired(int64(i)+1, in, beside)) // one after the other: they would claim the place from each other
		if o := p.untilPhase(in.ID, wire.PhaseStopped); o.Reason != wire.ReasonSlices || !strings.Contains(o.Detail, "insufficient resources") {
			t.Errorf("%s ended with %q %q", in.ID, o.Reason, o.Detail)
		}
	}
	p.untilPhase("i2", wire.PhaseRunning)
	p.put(desired(3))
	s := p.until("i2 ended", func(s wire.State) bool { o, _ := instanceOf(s, "i2"); return o.Phase == wire.PhaseStopped })
	if got := placements(s, card); !slices.Equal(got, []string{"2g.20gb@0"}) || !strings.HasPrefix(s.Devices[0].Health, "occupied outside Berth") {
		t.Errorf("on the card: %v, health %q", got, s.Devices[0].Health)
	}
	if s.Devices[1].Health != "ok" {
		t.Errorf("the other card: %q", s.Devices[1].Health)
	}
}

// B11: a card that somebody's process has open is reported, with it, and not
// touched, until the process ends.
func TestForeignProcess(t *testing.T) {
	n := newNode(t)
	n.begin()
	p := n.portal
	card := n.card(0)
	n.sim.Occupy(card, "somebody")
	n.sim.Load(card, "somebody", 1, 30<<10)
	s := p.until("the process is seen", func(s wire.State) bool { return s.Devices[0].Health != "ok" })
	if h := s.Devices[0].Health; h != "occupied outside Berth: process 1 (30 GiB)" || s.Devices[1].Health != "ok" {
		t.Errorf("health %q and %q", h, s.Devices[1].Health)
	}
	for i, place := range []wire.Slice{slice(t, card, gpu.Whole, 0), slice(t, card, "1g.10gb", 0)} {
		id := fmt.Sprintf("i%d", i)
		p.put(desired(int64(i)+1, want(id, wire.WantRunning, place)))
		if o := p.untilPhase(id, wire.PhaseStopped); o.Reason != wire.ReasonSlices || !strings.Contains(o.Detail, "in use by another client") {
			t.Errorf("%s ended with %q %q", id, o.Reason, o.Detail)
		}
	}
	n.sim.Vacate(card, "somebody")
	p.until("the card is free", func(s wire.State) bool { return s.Devices[0].Health == "ok" })
	p.put(desired(3, want("i3", wire.WantRunning, slice(t, card, gpu.Whole, 0))))
	p.untilPhase("i3", wire.PhaseRunning)
	if h := p.state().Devices[0].Health; h != "ok" {
		t.Errorf("a card held by Berth's own instance is %q", h)
	}
}

// A card in MIG mode without slices, as Ampere stays after them, can be rented whole.
func TestWholeOfACardInMIGMode(t *testing.T) {
	n := newNode(t)
	n.begin()
	p := n.portal
	card := n.card(0)
	made, err := n.sim.Create(t.Context(), card, "1g.10gb", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.sim.Destroy(t.Context(), made.UUID); err != nil {
		t.Fatal(err)
	}
	if s := p.state(); !s.Devices[0].MIG {
		t.Fatalf("%+v", s.Devices[0])
	}
	p.put(desired(1, want("i1", wire.WantRunning, slice(t, card, gpu.Whole, 0))))
	p.untilPhase("i1", wire.PhaseRunning)
	if s := p.state(); s.Devices[0].MIG {
		t.Error("rented whole in MIG mode")
	}
}

// C13: a launch that is cancelled at any point leaves nothing and costs nothing.
func TestCancelInTheMiddle(t *testing.T) {
	n := newNode(t)
	n.begin()
	p := n.portal
	card := n.card(0)
	generation := int64(0)
	after := int64(0)
	for round := range 12 {
		entry := want("i1", wire.WantRunning, slice(t, card, "2g.20gb", 0), slice(t, card, "1g.10gb", 6))
		entry.Run = round + 1
		p.put(desired(generation+1, entry))
		time.Sleep(time.Duration(round) * 100 * time.Millisecond) // where the cancellation falls is the point
		entry.Want = wire.WantGone
		began := time.Now()
		p.put(desired(generation+2, entry))
		events := p.events(after, is("i1", wire.PhaseGone))
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("round %d: gone after %s", round, took)
		}
		end := events[len(events)-1]
		after = end.Seq
		if running := slices.Contains(phasesOf(events, "i1", entry.Run), wire.PhaseRunning); end.Run != entry.Run || !running && end.Seconds != 0 || end.Seconds > 2 {
			t.Errorf("round %d: ended as %+v", round, end)
		}
		if got := placements(p.state(), card); len(got) != 0 {
			t.Errorf("round %d: slices left: %v", round, got)
		}
		generation += 2
	}
	if left, err := n.box.List(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("left in the runtime: %v %v", left, err)
	}
}

// C9, B14: a card fails under a slice: its run ends at once with the reason, its
// neighbour on another card goes on, also when its program makes a mistake (Xid 94),
// and ticks say that the inventory is another.
func TestCardFails(t *testing.T) {
	n := newNode(t)
	n.begin()
	p := n.portal
	sick, well := n.card(0), n.card(1)
	p.put(desired(1, want("i1", wire.WantRunning, slice(t, sick, "1g.10gb", 3)), want("i2", wire.WantRunning, slice(t, well, "1g.10gb", 3))))
	p.untilPhase("i1", wire.PhaseRunning)
	p.untilPhase("i2", wire.PhaseRunning)
	before := p.state().Inventory
	if err := simulator.SetFault(filepath.Join(n.dir, "simulator"), sick, 79); err != nil {
		t.Fatal(err)
	}
	s := p.until("the card to be sick", func(s wire.State) bool { return s.Devices[0].Health != "ok" && s.Inventory != before })
	if !strings.Contains(s.Devices[0].Health, "Xid 79") || s.Devices[1].Health != "ok" {
		t.Errorf("%+v", s.Devices)
	}
	ended := p.untilPhase("i1", wire.PhaseStopped)
	if ended.Reason != wire.ReasonFault || !strings.Contains(ended.Detail, "fallen off the bus") {
		t.Errorf("it ended for %q: %s", ended.Reason, ended.Detail)
	}
	if err := simulator.SetFault(filepath.Join(n.dir, "simulator"), well, 94); err != nil {
		t.Fatal(err)
	}
	was, _ := instanceOf(p.state(), "i2")
	s = p.until("a few seconds with a contained error", func(s wire.State) bool { o, _ := instanceOf(s, "i2"); return o.Seconds > was.Seconds+2 })
	if o, _ := instanceOf(s, "i2"); o.Phase != wire.PhaseRunning || s.Devices[1].Health != "ok" {
		t.Errorf("the neighbour is %s on a card that is %s", o.Phase, s.Devices[1].Health)
	}
	if err := simulator.SetFault(filepath.Join(n.dir, "simulator"), sick, 0); err != nil {
		t.Fatal(err)
	}
	s = p.until("the card to be well", func(s wire.State) bool { return s.Devices[0].Health == "ok" })
	if len(s.Devices[0].Slices) != 0 {
		t.Errorf("after its reset it has %v", s.Devices[0].Slices)
	}
}
