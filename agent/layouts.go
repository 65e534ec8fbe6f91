package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"berth/agent/device"
	"berth/gpu"
	"berth/wire"
)

// nobody holds the slices that lie ready on divided cards.
const nobody = ""

// layouts keeps cards divided as the portal wants: the slices that no instance
// has lie ready. Each card is brought there by itself, so one that fails holds up
// no other; what was done of a failed change is undone, and the same wish is tried
// again.
type layouts struct {
	slicer *slicer
	now    func() time.Time
	told   func() // what is said of the cards has changed
	awake  chan struct{}

	mu       sync.Mutex
	wanted   []wire.Layout
	troubles map[string]trouble // by card
}

// trouble is why a card is not divided as it is to be.
type trouble struct {
	what  string
	tries int
	again time.Time
}

const (
	layoutRetryMin = time.Second
	layoutRetryMax = time.Minute
	layoutPatience = 30 * time.Second // for one step on a card
)

func newLayouts(s *slicer, now func() time.Time, told func()) *layouts {
	return &layouts{slicer: s, now: now, told: told, awake: make(chan struct{}, 1), troubles: map[string]trouble{}}
}

// want takes the whole list. A card that is not in it is divided as is asked for.
func (l *layouts) want(list []wire.Layout) {
	l.mu.Lock()
	l.wanted, l.troubles = list, map[string]trouble{} // a new wish is tried at once
	l.mu.Unlock()
	l.wake()
}

func (l *layouts) wake() {
	select {
	case l.awake <- struct{}{}:
	default: // one is coming
	}
}

// trouble returns what is wrong with dividing a card, empty if nothing is.
func (l *layouts) trouble(card string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	t, ok := l.troubles[card]
	if !ok {
		return ""
	}
	return fmt.Sprintf("partitioning failed: %s; next try at %s", t.what, t.again.UTC().Format("15:04:05"))
}

// run keeps the cards divided until ctx ends.
func (l *layouts) run(ctx context.Context) {
	for {
		wait := l.pass(ctx)
		timer := time.NewTimer(wait)
		select {
		case <-l.awake:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// pass brings every card as far as it goes and returns when to look again.
func (l *layouts) pass(ctx context.Context) time.Duration {
	l.mu.Lock()
	wanted := map[string][]gpu.Placement{}
	for _, w := range l.wanted {
		wanted[w.DeviceUUID] = w.Placements
	}
	l.mu.Unlock()
	for _, h := range l.slicer.grants.of(nobody) {
		if _, ok := wanted[h.DeviceUUID]; !ok {
			wanted[h.DeviceUUID] = nil
		}
	}
	next := sweepEvery
	for card, layout := range wanted {
		l.mu.Lock()
		before, failing := l.troubles[card]
		l.mu.Unlock()
		if wait := before.again.Sub(l.now()); failing && wait > 0 {
			next = min(next, wait)
			continue
		}
		changed, err := l.divide(ctx, card, layout)
		if ctx.Err() != nil {
			return next
		}
		l.mu.Lock()
		if err != nil {
			wait := min(layoutRetryMax, layoutRetryMin<<min(before.tries, 10))
			l.troubles[card] = trouble{what: err.Error(), tries: before.tries + 1, again: l.now().Add(wait)}
			next = min(next, wait)
		} else {
			delete(l.troubles, card)
		}
		l.mu.Unlock()
		if err != nil {
			l.slicer.log.Warn("a card cannot be divided as is wanted", "device", card, "error", err)
		}
		if changed || failing || err != nil {
			l.told()
		}
	}
	return next
}

// divide brings one card from the slices that lie ready on it to those that are to.
// It changes all of it or, where a step fails, goes back; the error names the step.
func (l *layouts) divide(ctx context.Context, card string, layout []gpu.Placement) (changed bool, err error) {
	remove, create, err := l.steps(ctx, card, layout)
	if err != nil {
		return false, err
	}
	all := len(remove) + len(create)
	if all == 0 {
		return false, nil
	}
	var removed, made []heldSlice
	fail := func(what string, at gpu.Placement, err error) error {
		err = fmt.Errorf("step %d of %d, %s %s: %w", len(removed)+len(made)+1, all, what, at, err)
		if back := l.undo(ctx, removed, made); back != nil {
			err = fmt.Errorf("%w; going back failed too: %w", err, back)
		}
		return err
	}
	for _, h := range remove {
		if err := l.step(ctx, func(ctx context.Context) error { return l.slicer.destroy(ctx, nobody, h) }); err != nil {
			return len(removed) > 0, fail("remove", h.Placement, err)
		}
		removed = append(removed, h)
	}
	for _, h := range create {
		err := l.step(ctx, func(ctx context.Context) error { return l.slicer.create(ctx, nobody, h.Slice) })
		var taken *takenError
		if errors.As(err, &taken) { // an instance was faster: it is its slice now
			all--
			continue
		}
		if err != nil {
			return true, fail("make", h.Placement, err)
		}
		made = append(made, h)
	}
	return true, nil
}

// steps are the slices that lie ready and shall not, and the other way round.
func (l *layouts) steps(ctx context.Context, card string, layout []gpu.Placement) (remove, create []heldSlice, err error) {
	c, err := l.slicer.card(ctx, card)
	if errors.Is(err, device.ErrNotFound) || err == nil && c.Health != device.HealthOK {
		return nil, nil, nil // a card that is away or ill is not worked on; the portal sees that it is
	}
	if err != nil {
		return nil, nil, err
	}
	ready := l.slicer.grants.of(nobody)
	for _, h := range ready {
		there := h.UUID == "" || slices.ContainsFunc(c.Slices, func(s device.Slice) bool { return s.UUID == h.UUID })
		if h.DeviceUUID == card && (!there || !slices.Contains(layout, h.Placement)) {
			remove = append(remove, h) // what a reset took is crossed out the same way
		}
	}
	for _, p := range layout {
		s := wire.Slice{DeviceUUID: card, Placement: p}
		if !undivided(p) && !slices.ContainsFunc(l.slicer.grants.all(), func(h heldSlice) bool {
			return overlap(h.Slice, s) && !slices.ContainsFunc(remove, func(r heldSlice) bool { return same(r.Slice, h.Slice) })
		}) {
			create = append(create, heldSlice{Slice: s})
		}
	}
	return remove, create, nil
}

// undo goes back to what was before a change that failed half-way, as far as it
// goes: the next try begins from whatever is there.
func (l *layouts) undo(ctx context.Context, removed, made []heldSlice) (err error) {
	for _, h := range slices.Backward(made) {
		for _, now := range l.slicer.grants.of(nobody) { // not if an instance has it meanwhile
			if same(now.Slice, h.Slice) {
				err = errors.Join(err, l.step(ctx, func(ctx context.Context) error { return l.slicer.destroy(ctx, nobody, now) }))
			}
		}
	}
	for _, h := range removed {
		var taken *takenError
		if e := l.step(ctx, func(ctx context.Context) error { return l.slicer.create(ctx, nobody, h.Slice) }); !errors.As(e, &taken) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// step gives one step its time. A driver that hangs is given up, and the card with
// it until the next try.
func (l *layouts) step(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, layoutPatience)
	defer cancel()
	l.slicer.ready.Lock()
	defer l.slicer.ready.Unlock()
	return do(ctx)
}
