// Package devicetest is what every device driver must do, as tests: the
// simulator in every run, real cards where there are some (docs/hardware.md). It
// needs one free card that can be divided.
package devicetest

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"berth/agent/device"
	"berth/gpu"
)

// Subject is a driver under test.
type Subject struct {
	Driver device.Driver
	// Occupy puts a process on a device and returns what ends it.
	Occupy func(t *testing.T, uuid string) (end func())
	// Reopen ends the driver and opens it again on the same host, which did not
	// restart.
	Reopen func(t *testing.T) device.Driver
}

// Run runs the suite. open gives each test a driver whose cards have no slices.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	for name, test := range map[string]func(*testing.T, *run){
		"a slice comes where it was asked for":         explicitPlacement,
		"a taken place and a full card are no room":    noRoom,
		"what the card cannot do is not supported":     notSupported,
		"MIG mode follows the slices, or stays":        mode,
		"programs share an undivided card":             sharedCard,
		"a held slice is not destroyed":                heldSlice,
		"a held card is not divided":                   heldCard,
		"destroying what is absent is success":         absent,
		"the list is fresh after a destroy (B20)":      fresh,
		"slices outlive the driver":                    reopened,
		"what is not measured is nil":                  readings,
		"the card's own table can be read and is true": profiles,
		"an empty card can be made undivided":          undivide,
		"a process on the whole card is seen":          processes,
		"slices have numbers of their own":             numbers,
		"a cancelled operation changes nothing":        cancelled,
		"a place is free again after destroy, and new": again,
	} {
		t.Run(name, func(t *testing.T) {
			r := &run{Subject: open(t), ctx: t.Context()}
			r.card, r.model = r.divisible(t)
			test(t, r)
		})
	}
}

type run struct {
	Subject
	ctx   context.Context
	card  device.Card
	model gpu.Model
}

func (r *run) divisible(t *testing.T) (device.Card, gpu.Model) {
	t.Helper()
	cards, err := r.Driver.Inventory(r.ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cards {
		if m, err := gpu.Lookup(c.Model); err == nil && m.Partitions() && len(c.Slices) == 0 {
			table, err := r.Driver.Profiles(r.ctx, c.UUID)
			if err != nil {
				t.Fatal(err)
			}
			return c, m.WithDriver(table)
		}
	}
	t.Skip("the suite needs a card without slices that can be divided")
	return device.Card{}, gpu.Model{}
}

// profile returns the model's smallest sold profile, or that of n compute slices.
func (r *run) profile(t *testing.T, compute int) gpu.Profile {
	t.Helper()
	for _, p := range r.model.Sold() {
		if p.Name != gpu.Whole && p.ComputeSlices == compute {
			return p
		}
	}
	t.Fatalf("a %s sells no profile of %d compute slices", r.model.Name, compute)
	return gpu.Profile{}
}

func (r *run) create(t *testing.T, p gpu.Profile, start int) device.Slice {
	t.Helper()
	s, err := r.Driver.Create(r.ctx, r.card.UUID, p.Name, start)
	if err != nil {
		t.Fatalf("create %s@%d: %v", p.Name, start, err)
	}
	return s
}

func (r *run) destroy(t *testing.T, uuid string) {
	t.Helper()
	if err := r.Driver.Destroy(r.ctx, uuid); err != nil {
		t.Fatalf("destroy %s: %v", uuid, err)
	}
}

// now reads the card anew.
func (r *run) now(t *testing.T) device.Card {
	t.Helper()
	cards, err := r.Driver.Inventory(r.ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cards {
		if c.UUID == r.card.UUID {
			return c
		}
	}
	t.Fatalf("card %s is not in the inventory", r.card.UUID)
	return device.Card{}
}

func (r *run) wantSlices(t *testing.T, want ...device.Slice) {
	t.Helper()
	got := r.now(t).Slices
	if len(got) != len(want) {
		t.Fatalf("slices %v, want %v", got, want)
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("slice %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}

func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

func explicitPlacement(t *testing.T, r *run) {
	p := r.profile(t, 1)
	start := p.Starts[len(p.Starts)/2]
	s := r.create(t, p, start)
	if s.Placement != p.At(start) || s.Card != r.card.UUID || s.MemoryMiB != p.MemoryMiB || s.UUID == "" {
		t.Errorf("made %+v, want %v of %d MiB on %s", s, p.At(start), p.MemoryMiB, r.card.UUID)
	}
	r.wantSlices(t, s)
}

func noRoom(t *testing.T, r *run) {
	p := r.profile(t, 1)
	first := r.create(t, p, p.Starts[0])
	_, err := r.Driver.Create(r.ctx, r.card.UUID, p.Name, p.Starts[0])
	wantError(t, err, device.ErrNoRoom) // the same place: never a second grant of it
	r.wantSlices(t, first)
	for _, start := range p.Starts[1:] {
		r.create(t, p, start)
	}
	full := r.now(t).Slices
	for _, q := range r.model.Sold()[1:] {
		_, err = r.Driver.Create(r.ctx, r.card.UUID, q.Name, q.Starts[0])
		wantError(t, err, device.ErrNoRoom)
	}
	r.wantSlices(t, full...)
}

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

func heldSlice(t *testing.T, r *run) {
	p := r.profile(t, 1)
	s := r.create(t, p, p.Starts[0])
	end := r.Occupy(t, s.UUID)
	wantError(t, r.Driver.Destroy(r.ctx, s.UUID), device.ErrInUse)
	r.create(t, p, p.Starts[1]) // a neighbour is not disturbed and does not disturb
	end()
	r.destroy(t, s.UUID)
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

func absent(t *testing.T, r *run) {
	p := r.profile(t, 1)
	s := r.create(t, p, p.Starts[0])
	r.destroy(t, s.UUID)
	r.destroy(t, s.UUID)
	r.destroy(t, "MIG-none")
	_, err := r.Driver.Sample(r.ctx, s.UUID)
	wantError(t, err, device.ErrNotFound)
}

func fresh(t *testing.T, r *run) {
	p := r.profile(t, 1)
	u1, u2, u3 := r.create(t, p, p.Starts[0]), r.create(t, p, p.Starts[1]), r.create(t, p, p.Starts[2])
	r.destroy(t, u2.UUID)
	r.wantSlices(t, u1, u3)
	u4 := r.create(t, p, p.Starts[1])
	r.wantSlices(t, u1, u4, u3)
	if u4.UUID == u2.UUID {
		t.Error("a new slice has the UUID of a destroyed one")
	}
}

func reopened(t *testing.T, r *run) {
	p := r.profile(t, 1)
	s := r.create(t, p, p.Starts[1])
	r.Driver = r.Reopen(t)
	r.wantSlices(t, s)
	if !r.now(t).MIG {
		t.Error("MIG mode was lost")
	}
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

func cancelled(t *testing.T, r *run) {
	ctx, cancel := context.WithCancel(r.ctx)
	cancel()
	p := r.profile(t, 1)
	if s, err := r.Driver.Create(ctx, r.card.UUID, p.Name, p.Starts[0]); err == nil {
		r.wantSlices(t, s) // a driver may finish all the same, then it must say so
		r.destroy(t, s.UUID)
	}
	r.wantSlices(t)
}

func again(t *testing.T, r *run) {
	p := r.profile(t, 2)
	first := r.create(t, p, p.Starts[0])
	r.destroy(t, first.UUID)
	second := r.create(t, p, p.Starts[0])
	if first.UUID == second.UUID {
		t.Error("a UUID was used twice")
	}
	r.wantSlices(t, second)
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

func numbers(t *testing.T, r *run) {
	p := r.profile(t, 1)
	var seen []int
	for _, start := range p.Starts[:3] {
		s := r.create(t, p, start)
		if slices.Contains(seen, s.GPUInstance) {
			t.Errorf("slices %v and again %d", seen, s.GPUInstance)
		}
		seen = append(seen, s.GPUInstance)
	}
}
