// Package devicetest is what every device driver must do, as tests: the
// simulator in every run, real cards where there are some (docs/hardware.md). It
// needs one free card that can be divided.
package devicetest

import (
	"context"
	"errors"
	"reflect"
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
