package agent

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"berth/agent/device"
	"berth/gpu"
)

// tables is what this node's cards say of themselves where Berth's own table of
// slice profiles says otherwise. The card is right: its table goes to the portal,
// which places by it.
type tables struct {
	devices device.Driver
	log     *slog.Logger

	mu     sync.Mutex
	silent map[string]bool // by UUID of the card: it is said that its table cannot be read
	read   map[string]bool // by UUID of the card: whole, so that it need not be read again
	own    map[string][]gpu.Profile
}

func newTables(devices device.Driver, log *slog.Logger) *tables {
	return &tables{devices: devices, log: log, silent: map[string]bool{}, read: map[string]bool{}, own: map[string][]gpu.Profile{}}
}

// see reads the table of each card that was not read before, and logs how it
// differs. Older drivers say only of a divided card where slices start: its first
// division makes it be read once more. A card that does not answer is tried again.
func (t *tables) see(ctx context.Context, cards []device.Card) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range cards {
		model, err := gpu.Lookup(c.Model)
		whole, before := t.read[c.UUID]
		if err != nil || c.Health != device.HealthOK || whole || before && !c.MIG {
			continue
		}
		table, err := t.devices.Profiles(ctx, c.UUID)
		if err != nil {
			if !t.silent[c.UUID] {
				t.log.Warn("the card's table of slice profiles cannot be read yet; Berth's is used", "device", c.UUID, "error", err)
			}
			t.silent[c.UUID] = true
			continue
		}
		delete(t.silent, c.UUID)
		t.read[c.UUID] = c.MIG || !slices.ContainsFunc(table, func(p gpu.Profile) bool { return p.Starts == nil })
		if !model.Partitions() {
			continue // Berth has no geometry for it, whatever its driver offers
		}
		delete(t.own, c.UUID)
		if lines := model.Differences(table); len(lines) > 0 {
			t.log.Warn("the driver's table of slice profiles is not Berth's; the driver's is used", "device", c.UUID, "model", string(c.Model), "differences", lines)
			t.own[c.UUID] = table
		}
	}
}

// of is the table of a card that differs from Berth's; nil for any other.
func (t *tables) of(card string) []gpu.Profile {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.own[card]
}
