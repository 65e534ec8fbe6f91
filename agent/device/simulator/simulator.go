// Package simulator is a device driver without hardware: cards that keep MIG's
// rules and answer its errors as NVML gives them, and that warm up, draw power
// and fill their memory as their holders work. Its state is a file, as a real
// card's is in the card: slices outlive the agent and are lost when the host
// restarts. What is simulated is never called anything else.
package simulator

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"berth/agent/device"
	"berth/gpu"
)

// Simulator is a device.Driver and a device.Follower.
type Simulator struct {
	dir string
	log *slog.Logger
	// clock is read for the physics only: seconds since any fixed moment.
	clock func() time.Duration

	mu      sync.Mutex
	state   state
	cards   []*card
	latency func() time.Duration // of one operation on a slice
	noise   *rand.Rand
	lastPID int // that was made up for a holder
}

// card is one simulated accelerator: what is kept (kept), what the model says,
// and what passes with the process.
type card struct {
	kept    *keptCard
	model   gpu.Model
	lost    string // why the card does not answer, if it does not
	xid     int    // the fault that somebody gave it; 0: none
	busy    sync.Mutex
	heat    heat
	holders map[string]map[string]load // device UUID → holder → what it does
}

// New opens the simulated cards kept in dir, adding those of models that are not
// there yet; no models means those that are kept. It fails when dir keeps more
// cards of a model than asked for: a card may be somebody's, so it is never
// taken out silently. The seed
// rules noise and delays; 0 takes a random one. One process at a time may have dir.
func New(dir string, models []gpu.ModelID, seed uint64, log *slog.Logger) (*Simulator, error) {
	kept, err := openState(dir, models, seed)
	if err != nil {
		return nil, err
	}
	started := time.Now()
	s := &Simulator{
		dir:   dir,
		log:   log,
		state: kept,
		clock: func() time.Duration { return time.Since(started) },
		noise: rand.New(rand.NewPCG(kept.Seed, 1)),
	}
	// Creating or destroying a GPU instance takes a fraction of a second on a real
	// card; a launch should feel so here.
	delays := rand.New(rand.NewPCG(kept.Seed, 2))
	s.latency = func() time.Duration {
		return 150*time.Millisecond + time.Duration(delays.Int64N(int64(200*time.Millisecond)))
	}
	for i := range s.state.Cards {
		k := &s.state.Cards[i]
		model, err := gpu.Lookup(k.Model)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.state.path, err)
		}
		s.cards = append(s.cards, &card{kept: k, model: model, heat: atRest(model), holders: map[string]map[string]load{}})
	}
	if err := s.layNodes(); err != nil {
		return nil, err
	}
	return s, nil
}

// Inventory implements device.Driver.
func (s *Simulator) Inventory(ctx context.Context) ([]device.Card, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.feelFaults(); err != nil {
		return nil, err
	}
	var out []device.Card
	ofModel := map[gpu.ModelID]int{}
	for i, c := range s.cards {
		nth := ofModel[c.model.ID]
		ofModel[c.model.ID]++
		d := device.Card{
			UUID:      c.kept.UUID,
			Index:     i,
			Model:     c.model.ID,
			Name:      c.model.Product,
			MemoryMiB: c.model.MemoryMiB,
			LinkGroup: linkGroup(c.model, nth),
			NUMANode:  numaNode(i, len(s.cards)),
			MIG:       c.kept.MIG,
			Health:    device.HealthOK,
			Xid:       c.xid,
			PCI:       fmt.Sprintf("0000:%02x:00.0", i+1),
			Driver:    "simulated",
			Node:      s.node(c.kept.UUID),
		}
		if c.lost != "" {
			d.Health = c.lost
		}
		if !c.kept.MIG {
			d.Processes = c.processes()
		}
		for _, k := range c.kept.Slices {
			d.Slices = append(d.Slices, s.slice(c, k))
		}
		out = append(out, d)
	}
	return out, ctx.Err()
}

// linkGroup says with which others the nth card of its model is linked: boards
// with NVLink carry eight, and those of two models are never on one board.
func linkGroup(m gpu.Model, nth int) int {
	if m.NVLink == "" {
		return 0
	}
	return 1 + nth/8
}

// numaNode is where the ith of all cards sits: a host with four or more has two
// sockets, with half of the cards each.
func numaNode(i, all int) int {
	if all < 4 {
		return 0
	}
	return i * 2 / all
}

func (s *Simulator) slice(c *card, k keptSlice) device.Slice {
	profile, _ := c.model.Profile(k.Placement.Profile) // known: Create checked it
	return device.Slice{
		UUID:        k.UUID,
		Card:        c.kept.UUID,
		Placement:   k.Placement,
		MemoryMiB:   profile.MemoryMiB,
		Node:        s.node(k.UUID),
		GPUInstance: k.Number,
	}
}

// Create implements device.Driver with the errors of nvmlDeviceCreateGpuInstanceWithPlacement.
func (s *Simulator) Create(ctx context.Context, uuid, profile string, start int) (device.Slice, error) {
	s.mu.Lock()
	c, err := s.card(uuid)
	s.mu.Unlock()
	if err != nil {
		return device.Slice{}, err
	}
	c.busy.Lock()
	defer c.busy.Unlock()
	if err := s.work(ctx); err != nil {
		return device.Slice{}, err
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	place, err := c.mayCreate(profile, start)
	if err != nil {
		return device.Slice{}, err
	}
	k := keptSlice{UUID: "MIG-" + newUUID(), Placement: place, Number: c.kept.freeNumber()}
	if err := s.layNode(k.UUID); err != nil {
		return device.Slice{}, err
	}
	before := *c.kept
	c.kept.MIG = true
	c.kept.Slices = slices.SortedFunc(slices.Values(append(slices.Clone(c.kept.Slices), k)),
		func(a, b keptSlice) int { return a.Placement.Start - b.Placement.Start })
	if err := s.state.save(); err != nil {
		*c.kept = before
		s.liftNode(k.UUID)
		return device.Slice{}, err
	}
	s.log.Info("slice made", "device", uuid, "slice", place.String())
	return s.slice(c, k), nil
}

// mayCreate checks what the hardware would.
func (c *card) mayCreate(profile string, start int) (gpu.Placement, error) {
	if c.lost != "" {
		return gpu.Placement{}, fmt.Errorf("%w: %s", device.ErrLost, c.lost)
	}
	p, err := c.model.Profile(profile)
	if err != nil || profile == gpu.Whole {
		return gpu.Placement{}, fmt.Errorf("%w: %s has no slices of profile %q", device.ErrNotSupported, c.model.Name, profile)
	}
	if !slices.Contains(p.Starts, start) {
		return gpu.Placement{}, fmt.Errorf("%w: %s starts at %v, not at %d", device.ErrNotSupported, profile, p.Starts, start)
	}
	if n := len(c.holders[c.kept.UUID]); n > 0 { // switching the mode needs a card nobody holds
		return gpu.Placement{}, fmt.Errorf("%w: the whole card is held by %d client(s)", device.ErrInUse, n)
	}
	if !slices.Contains(c.model.FreeStarts(p, c.kept.placements()), start) {
		return gpu.Placement{}, fmt.Errorf("%w: %s@%d beside %v", device.ErrNoRoom, profile, start, c.kept.placements())
	}
	return p.At(start), nil
}

// Destroy implements device.Driver.
func (s *Simulator) Destroy(ctx context.Context, uuid string) error {
	s.mu.Lock()
	c, _ := s.holder(uuid)
	s.mu.Unlock()
	if c == nil {
		return nil
	}
	c.busy.Lock()
	defer c.busy.Unlock()
	if err := s.work(ctx); err != nil {
		return err
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if c.lost != "" {
		return fmt.Errorf("%w: %s", device.ErrLost, c.lost)
	}
	i := slices.IndexFunc(c.kept.Slices, func(k keptSlice) bool { return k.UUID == uuid })
	if i < 0 {
		return nil
	}
	if n := len(c.holders[uuid]); n > 0 {
		return fmt.Errorf("%w: slice %s is held by %d client(s)", device.ErrInUse, c.kept.Slices[i].Placement, n)
	}
	before := *c.kept
	place := c.kept.Slices[i].Placement
	c.kept.Slices = slices.Delete(slices.Clone(c.kept.Slices), i, i+1)
	c.kept.MIG = len(c.kept.Slices) > 0 || !c.model.ResetlessMIG
	if err := s.state.save(); err != nil {
		*c.kept = before
		return err
	}
	s.liftNode(uuid)
	c.heat.forget(uuid)
	s.log.Info("slice destroyed", "device", c.kept.UUID, "slice", place.String())
	return nil
}

// Undivide implements device.Driver.
func (s *Simulator) Undivide(ctx context.Context, uuid string) error {
	s.mu.Lock()
	c, err := s.card(uuid)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	c.busy.Lock()
	defer c.busy.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case c.lost != "":
		return fmt.Errorf("%w: %s", device.ErrLost, c.lost)
	case len(c.kept.Slices) > 0:
		return fmt.Errorf("%w: %d slice(s) are on card %s", device.ErrInUse, len(c.kept.Slices), uuid)
	case !c.kept.MIG:
		return ctx.Err()
	}
	c.kept.MIG = false
	if err := s.state.save(); err != nil {
		c.kept.MIG = true
		return err
	}
	return ctx.Err()
}

// Profiles implements device.Driver.
func (s *Simulator) Profiles(ctx context.Context, uuid string) ([]gpu.Profile, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.card(uuid)
	if err != nil {
		return nil, err
	}
	if c.lost != "" {
		return nil, fmt.Errorf("%w: %s", device.ErrLost, c.lost)
	}
	return slices.Clone(c.model.Profiles), ctx.Err()
}

// Sample implements device.Driver.
func (s *Simulator) Sample(ctx context.Context, uuid string) (device.Reading, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, k := s.holder(uuid)
	if c == nil {
		return device.Reading{}, fmt.Errorf("%w: %s", device.ErrNotFound, uuid)
	}
	if c.lost != "" {
		return device.Reading{}, fmt.Errorf("%w: %s", device.ErrLost, c.lost)
	}
	c.heat.advance(s.clock(), c)
	if k == nil {
		return c.readCard(s.noise), ctx.Err()
	}
	return c.readSlice(*k, s.noise), ctx.Err()
}

// holder finds the card that has the device, and the slice if it is one; the
// caller holds mu.
func (s *Simulator) holder(uuid string) (*card, *keptSlice) {
	for _, c := range s.cards {
		if c.kept.UUID == uuid {
			return c, nil
		}
		for i := range c.kept.Slices {
			if c.kept.Slices[i].UUID == uuid {
				return c, &c.kept.Slices[i]
			}
		}
	}
	return nil, nil
}

func (s *Simulator) card(uuid string) (*card, error) {
	c, k := s.holder(uuid)
	if c == nil || k != nil {
		return nil, fmt.Errorf("%w: card %s", device.ErrNotFound, uuid)
	}
	return c, nil
}

// work takes as long as the hardware would; a cancelled caller is let go before
// anything has changed.
func (s *Simulator) work(ctx context.Context) error {
	s.mu.Lock()
	d := s.latency()
	s.mu.Unlock()
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
