package agent

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"berth/agent/device"
	"berth/agent/device/simulator"
	"berth/gpu"
)

// otherTable is a simulator whose cards say something else of one profile than
// Berth's table, as a newer driver may; an old one does not say where it starts
// until the card is divided.
type otherTable struct {
	*simulator.Simulator
	old     bool
	refuses *bool
}

func (o otherTable) Profiles(ctx context.Context, card string) ([]gpu.Profile, error) {
	if *o.refuses {
		return nil, device.ErrPermission
	}
	table, err := o.Simulator.Profiles(ctx, card)
	if err != nil {
		return nil, err
	}
	cards, err := o.Inventory(ctx)
	if err != nil {
		return nil, err
	}
	divided := slices.ContainsFunc(cards, func(c device.Card) bool { return c.UUID == card && c.MIG })
	for i, p := range table {
		if p.Name == "2g.20gb" {
			table[i].Starts = []int{0, 4}
		}
		if o.old && !divided {
			table[i].Starts, table[i].Units = nil, 0
		}
	}
	return table, nil
}

func TestDriversTable(t *testing.T) {
	for name, old := range map[string]bool{"": false, "of an old driver": true} {
		t.Run(name, func(t *testing.T) {
			sim, err := simulator.New(t.TempDir(), []gpu.ModelID{"a100-80gb", "rtx4090"}, 7, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			refuses := true
			tables := newTables(otherTable{sim, old, &refuses}, slog.New(slog.NewTextHandler(&log, nil)))
			see := func() (card string) {
				t.Helper()
				cards, err := sim.Inventory(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				tables.see(t.Context(), cards)
				described := describeDevices(cards, nil, tables)
				if described[1].Profiles != nil {
					t.Errorf("a card that cannot be divided has %+v", described[1].Profiles)
				}
				if differs := described[0].Profiles != nil; differs != (cards[0].MIG || !old) {
					t.Errorf("in MIG mode %v the card has a table of its own: %v", cards[0].MIG, differs)
				}
				return cards[0].UUID
			}
			cards, err := sim.Inventory(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for range 3 { // once a second, and said once for each card
				tables.see(t.Context(), cards)
			}
			if n := strings.Count(log.String(), "cannot be read yet"); n != len(cards) {
				t.Errorf("said %d times of %d cards", n, len(cards))
			}
			refuses = false
			card := see()
			if _, err := sim.Create(t.Context(), card, "1g.10gb", 0); err != nil {
				t.Fatal(err)
			}
			see()
			if n := strings.Count(log.String(), "2g.20gb has size 2 and starts at [0 4] by the driver"); n != 1 {
				t.Errorf("logged %d times:\n%s", n, log.String())
			}
		})
	}
}
