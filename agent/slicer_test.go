package agent

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"berth/agent/device"
	"berth/agent/device/simulator"
	"berth/gpu"
	"berth/wire"
)

// halfMade is a simulator on which slices are only half there: a real card has
// such when the making or unmaking of one was cut off. They have other names then.
type halfMade struct {
	*simulator.Simulator
	names map[string]string // by UUID of the simulator's
}

func (h halfMade) Inventory(ctx context.Context) ([]device.Card, error) {
	cards, err := h.Simulator.Inventory(ctx)
	for _, c := range cards {
		for i, s := range c.Slices {
			if name, half := h.names[s.UUID]; half {
				c.Slices[i].UUID, c.Slices[i].HalfMade = name, true
			}
		}
	}
	return cards, err
}

func (h halfMade) Destroy(ctx context.Context, uuid string) error {
	for of, name := range h.names {
		if name == uuid {
			return h.Simulator.Destroy(ctx, of)
		}
	}
	if _, half := h.names[uuid]; half {
		return nil // nothing has that name
	}
	return h.Simulator.Destroy(ctx, uuid)
}

func TestHalfMadeSlices(t *testing.T) {
	ctx := t.Context()
	begin := func(t *testing.T) (halfMade, *slicer, wire.Slice) {
		t.Helper()
		sim, err := simulator.New(t.TempDir(), []gpu.ModelID{"a100-80gb"}, 7, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		cards, err := sim.Inventory(ctx)
		if err != nil {
			t.Fatal(err)
		}
		g, err := openGrants(filepath.Join(t.TempDir(), "grants.json"))
		if err != nil {
			t.Fatal(err)
		}
		h := halfMade{sim, map[string]string{}}
		return h, &slicer{devices: h, grants: g, log: slog.New(slog.DiscardHandler), freed: func() {}}, slice(t, cards[0].UUID, "2g.20gb", 2)
	}
	on := func(t *testing.T, h halfMade) []device.Slice {
		t.Helper()
		cards, err := h.Inventory(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return cards[0].Slices
	}

	t.Run("a crash in the middle of making one", func(t *testing.T) {
		h, s, w := begin(t)
		if _, _, err := s.grants.claim("i1", w); err != nil {
			t.Fatal(err)
		}
		made, err := h.Create(ctx, w.DeviceUUID, w.Placement.Profile, w.Placement.Start)
		if err != nil {
			t.Fatal(err)
		}
		h.names[made.UUID] = w.DeviceUUID + "-gi1"
		given, err := s.make(ctx, "i1", []wire.Slice{w})
		if err != nil || len(given) != 1 || given[0].UUID == made.UUID || given[0].UUID == h.names[made.UUID] {
			t.Errorf("given %+v, %v", given, err)
		}
		if left := on(t, h); len(left) != 1 || left[0].HalfMade || left[0].UUID != given[0].UUID {
			t.Errorf("on the card %+v", left)
		}
	})
	t.Run("a crash in the middle of destroying one", func(t *testing.T) {
		h, s, w := begin(t)
		given, err := s.make(ctx, "i1", []wire.Slice{w})
		if err != nil {
			t.Fatal(err)
		}
		h.names[given[0].UUID] = given[0].UUID // in one session it keeps its name
		if still, missing, err := s.given(ctx, "i1"); err != nil || len(still) != 0 || len(missing) != 1 {
			t.Errorf("half a slice is given: %+v, missing %+v, %v", still, missing, err)
		}
		h.names[given[0].UUID] = w.DeviceUUID + "-gi1" // in the next one it has another
		cards, err := h.Inventory(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if got := describeDevices(cards, s.grants.all(), newTables(h, s.log)); got[0].Health != device.HealthOK {
			t.Errorf("what is left of it is taken for somebody else's: %q", got[0].Health)
		}
		if err := s.release(ctx, "i1"); err != nil {
			t.Fatal(err)
		}
		if left := on(t, h); len(left) != 0 || len(s.grants.of("i1")) != 0 {
			t.Errorf("left on the card %+v, on record %+v", left, s.grants.of("i1"))
		}
	})
}
