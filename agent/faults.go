package agent

import (
	"fmt"
	"maps"
	"sync"

	"berth/wire"
)

// faults is what was last seen of the health of this node's cards.
type faults struct {
	mu     sync.Mutex
	health map[string]string // by UUID, as described to the portal, with its own table
	seen   int64             // how often it was found changed
}

// see takes in the cards as they are described now, and returns whether anything
// is different: a card came, went, sickened, is well again, or told its own table.
func (f *faults) see(devices []wire.Device) bool {
	health := make(map[string]string, len(devices))
	for _, d := range devices {
		health[d.UUID] = fmt.Sprint(d.Health, d.Profiles)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if maps.Equal(health, f.health) {
		return false
	}
	f.health = health
	f.seen++
	return true
}

// note says that something else about the cards is different.
func (f *faults) note() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen++
}

func (f *faults) version() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen
}
