package gpu

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// ErrBlocked says that slices in use stand in the way of a layout that would be
// possible without them.
var ErrBlocked = errors.New("slices in use are in the way")

// Held is a slice on a card and who uses it.
type Held struct {
	Placement
	Holder string // empty: idle, it may be removed
}

// Plan is the way from the slices on a card to a wanted layout: first all of
// Remove, then all of Make. Keep is untouched, and what is in use is among it.
type Plan struct {
	Keep         []Held
	Remove, Make []Placement
}

// Plan finds how to come from the slices now on a card to the wanted profiles,
// as many times each as they are named. Slices in use stay where they are and
// count towards what is wanted; of the idle ones as many are kept as can be. It
// decides before anything is touched: it fails with ErrBlocked, naming the holders
// that are in the way; with ErrNoPlacement for what no card of the model can have;
// or with the errors of CheckLayout for slices that cannot be there now.
func (m Model) Plan(now []Held, want []string) (Plan, error) {
	var lies []Placement
	for _, h := range now {
		lies = append(lies, h.Placement)
	}
	if err := m.CheckLayout(lies); err != nil {
		return Plan{}, fmt.Errorf("the slices now on the card: %w", err)
	}
	if _, err := m.PlaceAll(want, nil); err != nil {
		return Plan{}, err
	}
	p, ok := m.plan(now, want)
	if !ok {
		return Plan{}, m.blocked(now, want)
	}
	return p, nil
}

// plan tries to keep every set of idle slices beside those in use, the largest
// sets first; at most seven slices lie on a card, so there are few.
func (m Model) plan(now []Held, want []string) (Plan, bool) {
	var busy, idle []Held
	for _, h := range now {
		if h.Holder != "" {
			busy = append(busy, h)
		} else {
			idle = append(idle, h)
		}
	}
	var best *Plan
	for set := range 1 << len(idle) {
		if best != nil && bits.OnesCount(uint(set)) <= len(best.Keep)-len(busy) {
			continue
		}
		p := Plan{Keep: slices.Clone(busy)}
		for i, h := range idle {
			if set&(1<<i) != 0 {
				p.Keep = append(p.Keep, h)
			} else {
				p.Remove = append(p.Remove, h.Placement)
			}
		}
		rest, ok := without(want, p.Keep)
		if !ok {
			continue
		}
		var kept []Placement
		for _, h := range p.Keep {
			kept = append(kept, h.Placement)
		}
		var err error
		if p.Make, err = m.PlaceAll(rest, kept); err == nil {
			best = &p
		}
	}
	if best == nil {
		return Plan{}, false
	}
	return *best, true
}

// without takes the profiles of kept slices out of what is wanted; ok is false
// when one is not wanted, or not so often.
func without(want []string, kept []Held) (rest []string, ok bool) {
	rest = slices.Clone(want)
	for _, h := range kept {
		i := slices.Index(rest, h.Profile)
		if i < 0 {
			return nil, false
		}
		rest = slices.Delete(rest, i, i+1)
	}
	return rest, true
}

// blocked names who is in the way: each holder without whom it would be possible,
// or all of them where no single one decides.
func (m Model) blocked(now []Held, want []string) error {
	var alone, all []string
	for i, h := range now {
		if h.Holder == "" {
			continue
		}
		said := fmt.Sprintf("%s of %s", h.Placement, h.Holder)
		all = append(all, said)
		idle := slices.Clone(now)
		idle[i].Holder = ""
		if _, ok := m.plan(idle, want); ok {
			alone = append(alone, said)
		}
	}
	if len(alone) > 0 {
		return fmt.Errorf("%w: %s", ErrBlocked, strings.Join(alone, " or "))
	}
	return fmt.Errorf("%w: %s", ErrBlocked, strings.Join(all, ", "))
}
