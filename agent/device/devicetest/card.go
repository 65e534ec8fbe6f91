package devicetest

import (
	"testing"

	"berth/agent/device"
	"berth/gpu"
)

func notSupported(t *testing.T, r *run) {
	_, err := r.Driver.Create(r.ctx, r.card.UUID, "9g.999gb", 0)
	wantError(t, err, device.ErrNotSupported)
	_, err = r.Driver.Create(r.ctx, r.card.UUID, gpu.Whole, 0)
	wantError(t, err, device.ErrNotSupported)
	_, err = r.Driver.Create(r.ctx, r.card.UUID, r.profile(t, 1).Name, 99)
	wantError(t, err, device.ErrNotSupported)
	_, err = r.Driver.Create(r.ctx, "GPU-none", r.profile(t, 1).Name, 0)
	wantError(t, err, device.ErrNotFound)
	cards, err := r.Driver.Inventory(r.ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cards {
		if m, err := gpu.Lookup(c.Model); err == nil && !m.Partitions() {
			_, err = r.Driver.Create(r.ctx, c.UUID, "1g.10gb", 0)
			wantError(t, err, device.ErrNotSupported)
		}
	}
	r.wantSlices(t)
}

func mode(t *testing.T, r *run) {
	if r.card.MIG {
		t.Error("a card without slices is in MIG mode")
	}
	p := r.profile(t, 1)
	a, b := r.create(t, p, p.Starts[0]), r.create(t, p, p.Starts[1])
	if !r.now(t).MIG {
		t.Error("a card with slices is not in MIG mode")
	}
	r.destroy(t, a.UUID)
	if !r.now(t).MIG {
		t.Error("MIG mode ended while a slice is left")
	}
	r.destroy(t, b.UUID)
	if mig := r.now(t).MIG; mig == r.model.ResetlessMIG {
		t.Errorf("after the last slice the card is in MIG mode: %v; a change costs a reset: %v", mig, !r.model.ResetlessMIG)
	}
	if err := r.Driver.Undivide(r.ctx, r.card.UUID); err != nil {
		t.Error(err)
	}
	if r.now(t).MIG {
		t.Error("undivided, the card is in MIG mode")
	}
}

func heldCard(t *testing.T, r *run) {
	p := r.profile(t, 1)
	end := r.Occupy(t, r.card.UUID)
	_, err := r.Driver.Create(r.ctx, r.card.UUID, p.Name, p.Starts[0])
	wantError(t, err, device.ErrInUse)
	r.wantSlices(t)
	end()
	r.create(t, p, p.Starts[0])
}

func readings(t *testing.T, r *run) {
	p := r.profile(t, 1)
	got, err := r.Driver.Sample(r.ctx, r.card.UUID)
	if err != nil {
		t.Fatal(err)
	}
	if got.UtilizationPercent == nil || got.MemoryMiB == nil || got.TemperatureC == nil || got.PowerW == nil {
		t.Errorf("an undivided card reads %+v, want all four", got)
	}
	s := r.create(t, p, p.Starts[0])
	if got, err = r.Driver.Sample(r.ctx, s.UUID); err != nil {
		t.Fatal(err)
	}
	if got.PowerW != nil {
		t.Error("a slice has no power meter, yet reads one")
	}
	if got.MemoryMiB == nil || got.TemperatureC == nil {
		t.Errorf("a slice reads %+v, want memory and the card's temperature", got)
	}
	if got, err = r.Driver.Sample(r.ctx, r.card.UUID); err != nil {
		t.Fatal(err)
	}
	if got.UtilizationPercent != nil {
		t.Error("a card in MIG mode has no utilisation, yet reads one")
	}
	if got.PowerW == nil {
		t.Error("a card in MIG mode still has a power meter")
	}
}

func profiles(t *testing.T, r *run) {
	table, err := r.Driver.Profiles(r.ctx, r.card.UUID)
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, p := range table {
		if p.Name == "" || p.ComputeSlices < 1 || p.MaxInstances < 1 {
			t.Errorf("a profile of %+v", p)
		}
		for _, start := range p.Starts {
			tried++
			s, err := r.Driver.Create(r.ctx, r.card.UUID, p.Name, start)
			if err != nil {
				t.Errorf("%s has start %d in the table: %v", p.Name, start, err)
				continue
			}
			if s.Placement != p.At(start) || s.MemoryMiB != p.MemoryMiB {
				t.Errorf("made %+v, by the table %v of %d MiB", s, p.At(start), p.MemoryMiB)
			}
			r.destroy(t, s.UUID)
		}
	}
	if tried == 0 {
		t.Errorf("the table %+v says of nothing where it may lie", table)
	}
	_, err = r.Driver.Profiles(r.ctx, "GPU-none")
	wantError(t, err, device.ErrNotFound)
	cards, err := r.Driver.Inventory(r.ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cards {
		if m, err := gpu.Lookup(c.Model); err == nil && !m.Partitions() {
			if table, err := r.Driver.Profiles(r.ctx, c.UUID); err != nil || len(table) != 0 {
				t.Errorf("a card that cannot be divided has the table %+v, %v", table, err)
			}
		}
	}
}

func undivide(t *testing.T, r *run) {
	for range 2 { // again changes nothing
		if err := r.Driver.Undivide(r.ctx, r.card.UUID); err != nil {
			t.Error(err)
		}
	}
	p := r.profile(t, 1)
	s := r.create(t, p, p.Starts[0])
	wantError(t, r.Driver.Undivide(r.ctx, r.card.UUID), device.ErrInUse)
	r.wantSlices(t, s)
	wantError(t, r.Driver.Undivide(r.ctx, "GPU-none"), device.ErrNotFound)
}

func processes(t *testing.T, r *run) {
	if len(r.card.Processes) > 0 {
		t.Errorf("a free card has the processes %+v", r.card.Processes)
	}
	end := r.Occupy(t, r.card.UUID)
	if got := r.now(t).Processes; len(got) != 1 || got[0].PID == 0 {
		t.Errorf("processes %+v, want the one that holds the card", got)
	}
	end()
	if got := r.now(t).Processes; len(got) > 0 {
		t.Errorf("processes %+v after the last one ended", got)
	}
}

// sharedCard has two programs on one card at once, as time shares have.
func sharedCard(t *testing.T, r *run) {
	first, second := r.Occupy(t, r.card.UUID), r.Occupy(t, r.card.UUID)
	if got := r.now(t).Processes; len(got) != 2 || got[0].PID == got[1].PID {
		t.Errorf("processes %+v, want both that hold the card", got)
	}
	first()
	left := r.now(t).Processes
	if len(left) != 1 {
		t.Errorf("processes %+v, want the one that is left", left)
	}
	p := r.profile(t, 1)
	_, err := r.Driver.Create(r.ctx, r.card.UUID, p.Name, p.Starts[0])
	wantError(t, err, device.ErrInUse) // never in shares and in slices
	second()
	r.create(t, p, p.Starts[0])
}
