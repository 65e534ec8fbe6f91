package agent

import (
	"testing"

	"berth/agent/device"
	"berth/gpu"
	"berth/wire"
)

// The readings follow what the instance really does, in its own slice only, and
// are nil where no meter is.
func TestSamplesFollowLoad(t *testing.T) {
	n := newNode(t)
	n.begin()
	p := n.portal
	card := n.card(0)
	busy := want("busy", wire.WantRunning, slice(t, card, "3g.40gb", 4))
	busy.Spec.Command = []string{"sh", "-c", "while :; do :; done"}
	idle := want("idle", wire.WantRunning, slice(t, card, "1g.10gb", 0))
	whole := want("whole", wire.WantRunning, wire.Slice{DeviceUUID: n.card(2), Placement: gpu.Placement{Profile: gpu.Whole, Size: 1}, MemoryMiB: 24564})
	whole.Spec.Command = []string{"berth-load", "80", "--memory", "3000"}
	p.put(desired(1, busy, idle, whole))
	for _, id := range []string{"busy", "idle", "whole"} {
		p.untilPhase(id, wire.PhaseRunning)
	}
	seen := map[string]wire.InstanceSample{}
	last := int64(0)
	for tick := range ticks(t, p, 60) {
		if tick.Seq <= last || tick.BootID == "" {
			t.Fatalf("tick %d after %d", tick.Seq, last)
		}
		last = tick.Seq
		for _, i := range tick.Instances {
			seen[i.ID] = i
		}
		for _, d := range tick.Devices {
			if divided := d.UUID == card; divided != (d.UtilizationPercent == nil) || d.PowerW == nil || d.TemperatureC == nil {
				t.Fatalf("card %+v, divided %v", d, divided)
			}
		}
		b, w := seen["busy"], seen["whole"]
		if b.UtilizationPercent != nil && *b.UtilizationPercent > 60 && w.MemoryMiB != nil && *w.MemoryMiB >= 3000 && *w.UtilizationPercent > 70 {
			break
		}
	}
	b, i, w := seen["busy"], seen["idle"], seen["whole"]
	if b.UtilizationPercent == nil || *b.UtilizationPercent <= 60 || b.PowerW != nil {
		t.Errorf("the busy slice: %+v", b)
	}
	if i.UtilizationPercent == nil || *i.UtilizationPercent > 25 || i.PowerW != nil || i.TemperatureC == nil || i.MemoryMiB == nil {
		t.Errorf("the idle slice: %+v", i)
	}
	if w.PowerW == nil || w.MemoryMiB == nil || *w.MemoryMiB < 3000 {
		t.Errorf("the whole card: %+v", w)
	}
	p.put(desired(2, idle, whole))
	p.untilPhase("busy", wire.PhaseStopped)
	first := true // may be from just before the end
	for tick := range ticks(t, p, 3) {
		for _, s := range tick.Instances {
			if s.ID == "busy" && !first { // E5
				t.Errorf("a sample after its end: %+v", s)
			}
		}
		first = false
	}
}

// Several devices of one instance read as one; what one of them lacks, all lack.
func TestTogether(t *testing.T) {
	f := func(v float64) *float64 { return &v }
	m := func(v int64) *int64 { return &v }
	got := together([]device.Reading{
		{UtilizationPercent: f(10), MemoryMiB: m(100), TemperatureC: f(50)},
		{UtilizationPercent: f(90), MemoryMiB: m(300), TemperatureC: f(60), PowerW: f(200)},
	})
	if *got.UtilizationPercent != 50 || *got.MemoryMiB != 400 || *got.TemperatureC != 60 || got.PowerW != nil {
		t.Errorf("%+v", got)
	}
	if got := together(nil); got != (device.Reading{}) {
		t.Errorf("of no devices: %+v", got)
	}
	if got := together([]device.Reading{{UtilizationPercent: f(10)}, {}}); got.UtilizationPercent != nil {
		t.Errorf("one unmeasured: %v", *got.UtilizationPercent)
	}
}

// A listener that never reads loses ticks; the one beside it gets them all and
// nobody waits.
func TestSlowListenerLosesTicks(t *testing.T) {
	s := &sampler{listeners: map[chan wire.Tick]struct{}{}}
	slow, endSlow := s.listen()
	quick, endQuick := s.listen()
	for seq := int64(1); seq <= 100; seq++ {
		s.publish(wire.Tick{Seq: seq})
		if got := <-quick; got.Seq != seq {
			t.Fatalf("the quick listener got %d, want %d", got.Seq, seq)
		}
	}
	if len(slow) != tickQueue {
		t.Errorf("the slow listener has %d ticks waiting, want %d", len(slow), tickQueue)
	}
	endSlow()
	endQuick()
	if late, end := s.listen(); (<-late).Seq != 100 {
		t.Error("a new listener does not begin with the latest tick")
	} else {
		end()
	}
	if len(s.listeners) != 0 {
		t.Errorf("%d listeners left", len(s.listeners))
	}
}
