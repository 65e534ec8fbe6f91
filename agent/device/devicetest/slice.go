package devicetest

import (
	"context"
	"slices"
	"testing"

	"berth/agent/device"
)

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

func heldSlice(t *testing.T, r *run) {
	p := r.profile(t, 1)
	s := r.create(t, p, p.Starts[0])
	end := r.Occupy(t, s.UUID)
	wantError(t, r.Driver.Destroy(r.ctx, s.UUID), device.ErrInUse)
	r.create(t, p, p.Starts[1]) // a neighbour is not disturbed and does not disturb
	end()
	r.destroy(t, s.UUID)
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
