package gpu

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

var (
	// ErrOverlap says that two placements want the same unit.
	ErrOverlap = errors.New("slices overlap")
	// ErrIllegalPlacement says that a start or size is not in the profile's table.
	ErrIllegalPlacement = errors.New("a slice cannot lie there")
	// ErrTooMany says that a card has no more engines for a profile.
	ErrTooMany = errors.New("too many slices of one kind")
)

// media is what a profile asks of the card's media engines.
type media int

const (
	mediaPlain media = iota // what comes with its compute
	mediaNone               // -me: none at all
	mediaSet                // +me: the one set a card can give to a slice
	mediaAll                // +me.all: every engine, so that others must be -me
	mediaGfx                // +gfx: graphics, engines as plain
)

func (p Profile) media() media {
	_, suffix, _ := strings.Cut(p.Name, "gb")
	switch suffix {
	case "-me":
		return mediaNone
	case "+me":
		return mediaSet
	case "+me.all":
		return mediaAll
	case "+gfx":
		return mediaGfx
	}
	return mediaPlain
}

// mask is the set of a card's placement units, bit i for unit i.
type mask uint32

// span is the mask of size units from start.
func span(start, size int) mask { return (1<<size - 1) << start }

// full is every unit of the card.
func (m Model) full() mask { return span(0, m.units()) }

// taken is the units that used covers. A whole card is all of it, however many
// units it was counted as when it was rented. So is a placement that makes no sense
// on this card: better to sell nothing than the same memory twice.
func (m Model) taken(used []Placement) mask {
	var t mask
	for _, u := range used {
		if u.Profile == Whole || u.Start < 0 || u.Size <= 0 || u.Start+u.Size > m.units() {
			return m.full()
		}
		t |= span(u.Start, u.Size)
	}
	return t
}

// engines returns how many more of p the card's engines allow beside used.
func (m Model) engines(p Profile, used []Placement) int {
	left := p.MaxInstances
	for _, u := range used {
		if u.Profile == p.Name {
			left--
			continue
		}
		// A used profile that this model does not know counts as a plain one.
		if mine, other := p.media(), (Profile{Name: u.Profile}).media(); mine == mediaSet && other == mediaSet ||
			mine == mediaAll && other != mediaNone || other == mediaAll && mine != mediaNone {
			return 0
		}
	}
	return max(0, left)
}

// FreeStarts returns the units, lowest first, at which p can be created beside
// used; empty when it fits nowhere.
//
// Source: NVIDIA MIG User Guide, "Supported MIG Profiles"; starts and sizes as
// `nvidia-smi mig -lgipp` prints them. An A100-40GB takes 3g.20gb at 0 and 4 only.
func (m Model) FreeStarts(p Profile, used []Placement) []int {
	if m.engines(p, used) == 0 {
		return nil
	}
	taken := m.taken(used)
	var free []int
	for _, s := range p.Starts {
		if span(s, p.Units)&taken == 0 {
			free = append(free, s)
		}
	}
	return free
}

// CountFit returns how many more of p alone can really be placed beside used.
// It is what an offer may call available on this card.
func (m Model) CountFit(p Profile, used []Placement) int {
	return min(countFit(p, m.taken(used)), m.engines(p, used))
}

// countFit places p from the lowest start on, which is the most that fits since
// all have one size.
func countFit(p Profile, taken mask) int {
	n := 0
	for _, s := range p.Starts {
		if at := span(s, p.Units); at&taken == 0 {
			taken |= at
			n++
		}
	}
	return n
}

// CheckLayout reports whether all of ps can lie on one card together. It fails
// with ErrUnknownProfile, ErrIllegalPlacement, ErrOverlap or ErrTooMany.
func (m Model) CheckLayout(ps []Placement) error {
	for i, place := range ps {
		p, err := m.Profile(place.Profile)
		if err != nil {
			return err
		}
		if place.Size != p.Units || !slices.Contains(p.Starts, place.Start) {
			return fmt.Errorf("%w: %s of size %d on %s; %s has size %d and starts at %v",
				ErrIllegalPlacement, place, place.Size, m.Name, p.Name, p.Units, p.Starts)
		}
		for _, other := range ps[:i] {
			if span(place.Start, place.Size)&span(other.Start, other.Size) != 0 {
				return fmt.Errorf("%w: %s and %s on %s", ErrOverlap, other, place, m.Name)
			}
		}
		if m.engines(p, ps[:i]) == 0 {
			return fmt.Errorf("%w: %s has no engines left for %s beside %v", ErrTooMany, m.Name, place, ps[:i])
		}
	}
	return nil
}
