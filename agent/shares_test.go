package agent

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"berth/agent/device/simulator"
	"berth/gpu"
	"berth/wire"
)

func share(card, profile string, start int) wire.Slice {
	return wire.Slice{DeviceUUID: card, Placement: gpu.Placement{Profile: profile, Start: start, Size: 1}, MemoryMiB: 6141}
}

// Two shares of one card run side by side, read as far as they can be told apart,
// outlive the agent, and end together when the card fails.
func TestShares(t *testing.T) {
	n := newNode(t)
	n.begin()
	p := n.portal
	card := n.card(2)
	first := want("first", wire.WantRunning, share(card, "ts4", 0))
	first.Spec.Command = []string{"berth-load", "60", "--memory", "20000"}
	p.put(desired(1, first))
	p.untilPhase("first", wire.PhaseRunning)
	for tick := range ticks(t, p, 30) { // it comes first, so it gets what it asks for
		if i := tick.Instances; len(i) == 1 && i[0].MemoryMiB != nil && *i[0].MemoryMiB >= 20000 {
			break
		}
	}
	second := want("second", wire.WantRunning, share(card, "ts4", 3))
	second.Spec.Command = []string{"sh", "-c", "echo $BERTH_GPU_MEMORY_MIB $NVIDIA_VISIBLE_DEVICES; exec berth-load 60 --memory 8000"}
	p.put(desired(2, first, second))
	p.untilPhase("second", wire.PhaseRunning)
	var a, b wire.InstanceSample
	var whole wire.DeviceSample
	for tick := range ticks(t, p, 30) {
		for _, i := range tick.Instances {
			switch i.ID {
			case "first":
				a = i
			case "second":
				b = i
			}
		}
		for _, d := range tick.Devices {
			if d.UUID == card {
				whole = d
			}
		}
		if whole.MemoryMiB != nil && *whole.MemoryMiB == 24564 && whole.UtilizationPercent != nil && *whole.UtilizationPercent > 90 {
			break
		}
	}
	for _, s := range []wire.InstanceSample{a, b} {
		if s.UtilizationPercent != nil || s.PowerW != nil || s.TemperatureC == nil || s.MemoryMiB == nil {
			t.Fatalf("%+v", s)
		}
	}
	if *a.MemoryMiB < 20000 || *b.MemoryMiB > 24564-20000 || *a.MemoryMiB+*b.MemoryMiB < 24500 || whole.UtilizationPercent == nil || *whole.UtilizationPercent < 90 {
		t.Errorf("first %d MiB, second %d MiB, card %+v", *a.MemoryMiB, *b.MemoryMiB, whole)
	}
	if s := p.state(); slices.Contains([]bool{s.Devices[2].MIG, s.Devices[2].Health != "ok"}, true) || len(s.Devices[2].Slices) > 0 {
		t.Errorf("%+v", s.Devices[2])
	}

	n.end()
	n.begin()
	for _, id := range []string{"first", "second"} {
		p.until(id+" is adopted", func(s wire.State) bool {
			o, ok := instanceOf(s, id)
			return ok && o.Run == 1 && o.Phase == wire.PhaseRunning && len(o.Slices) == 1
		})
	}

	if err := simulator.SetFault(filepath.Join(n.dir, "simulator"), card, 79); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"first", "second"} {
		if o := p.untilPhase(id, wire.PhaseStopped); o.Reason != wire.ReasonFault || !strings.Contains(o.Detail, "fallen off the bus") {
			t.Errorf("%s ended for %q: %s", id, o.Reason, o.Detail)
		}
	}
}

// Shares of one kind lie beside each other; nothing else does.
func TestSharesOverlap(t *testing.T) {
	at := func(profile string, start, size int) wire.Slice {
		return wire.Slice{DeviceUUID: "GPU-a", Placement: gpu.Placement{Profile: profile, Start: start, Size: size}}
	}
	held := at("ts4", 1, 1)
	for other, want := range map[wire.Slice]bool{
		at("ts4", 1, 1):     true,
		at("ts4", 2, 1):     false,
		at("ts2", 0, 1):     true,
		at("1g.10gb", 3, 1): true,
		at(gpu.Whole, 0, 4): true,
		{DeviceUUID: "GPU-b", Placement: held.Placement}: false,
	} {
		if overlap(held, other) != want || overlap(other, held) != want {
			t.Errorf("%s with %s of %s: %v, want %v", held.Placement, other.Placement, other.DeviceUUID, !want, want)
		}
	}
	if !overlap(at(gpu.Whole, 0, 1), at(gpu.Whole, 0, 1)) {
		t.Error("a whole card with itself")
	}
}
