package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"berth/gpu"
	"berth/models/store"
	"berth/placement"
)

// pools chooses among nodes, for each model of card by itself: it keeps what is
// expected to be asked for placeable, having learned that from what was. It holds
// no truth, only experience: what is free is told to it each time.
//
// Of processor and memory each slice gets its card's share of the host, so these
// never run out before the cards and are left out.
type pools struct {
	mu      sync.Mutex
	byModel map[gpu.ModelID]*placement.Horizon
	asked   chan struct{} // there is something to learn
}

func newPools() *pools {
	return &pools{byModel: map[gpu.ModelID]*placement.Horizon{}, asked: make(chan struct{}, 1)}
}

// poolSeed makes the choices of one portal the same each time.
const poolSeed = 1

func (p *pools) of(model gpu.ModelID) *placement.Horizon {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.byModel[model]
	if h == nil {
		h = placement.NewHorizon(nil, poolSeed)
		p.byModel[model] = h
	}
	return h
}

// choose picks one of the sites that are able; all is the fleet that they are of.
// The sites' nodes have distinct names.
func (p *pools) choose(all, able []site, model gpu.Model, want placement.Request) site {
	if len(able) == 1 {
		return able[0]
	}
	var nodes []placement.Node
	for _, s := range all {
		if n := poolNode(s, model); len(n.FreeMilliGPU) > 0 {
			nodes = append(nodes, n)
		}
	}
	byName := make(map[string]site, len(able))
	for _, s := range able {
		byName[s.node.Name] = s
	}
	name, ok := p.of(model.ID).Choose(nodes, want, func(name string) bool { _, ok := byName[name]; return ok })
	if !ok { // it sees less room than there is: whoever comes first by name
		return able[0]
	}
	return byName[name]
}

// poolNode is a site as one model's pool sees it. A node that is not sold now is
// full, rather than gone: it comes back.
func poolNode(s site, model gpu.Model) placement.Node {
	n := placement.Node{Name: s.node.Name, Model: string(model.ID)}
	for _, c := range s.cards {
		if c.model.ID != model.ID {
			continue
		}
		free := 0
		if s.node.Sells() {
			free = milli(c.model, c.freeUnits())
		}
		n.FreeMilliGPU = append(n.FreeMilliGPU, free)
	}
	return n
}

// freeUnits is how many placement units of a card are not taken.
func (c card) freeUnits() int {
	free := max(1, c.model.MemoryUnits)
	for _, u := range c.used {
		free -= u.Size
	}
	return max(0, free)
}

func milli(m gpu.Model, units int) int { return units * placement.Milli / max(1, m.MemoryUnits) }

// wish is a SKU as its model's pool sees it.
func wish(sku gpu.SKU, model gpu.Model, profile gpu.Profile) placement.Request {
	return placement.Request{GPUs: sku.Count, MilliGPU: milli(model, profile.Units)}
}

// learn takes note of what was asked for.
func (p *pools) learn(sku gpu.SKU) {
	model, profile, err := sku.Slice()
	if err != nil {
		return
	}
	p.of(model.ID).Learn(wish(sku, model, profile))
	select {
	case p.asked <- struct{}{}:
	default: // somebody is told already
	}
}

// recalled is how many launches are remembered from before this portal started.
const recalled = 2000

// recall learns from the launches that the store has.
func (p *pools) recall(ctx context.Context, st *store.Store) error {
	var ids []string
	err := st.View(ctx, func(tx *store.Tx) (err error) {
		ids, err = tx.LatestSKUs(recalled)
		return err
	})
	if err != nil {
		return fmt.Errorf("recall what was asked for: %w", err)
	}
	for _, id := range slices.Backward(ids) {
		if sku, err := gpu.ParseSKU(id); err == nil {
			p.learn(sku)
		}
	}
	return nil
}

// run works out in the background what was learned, until ctx ends.
func (p *pools) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.asked:
		}
		p.mu.Lock()
		all := slices.Collect(maps.Values(p.byModel))
		p.mu.Unlock()
		for _, h := range all {
			h.Warm()
		}
	}
}
