package gpu

import (
	"errors"
	"fmt"
	"slices"
)

// ErrNoPlacement says that slices cannot all be placed on one card.
var ErrNoPlacement = errors.New("the slices do not fit on one card")

// PlaceAll finds a place for every profile on one card beside used, or places
// none. The result is in the order of profiles. It tries all arrangements, so
// it fails only where none exists: with ErrNoPlacement, or ErrUnknownProfile.
func (m Model) PlaceAll(profiles []string, used []Placement) ([]Placement, error) {
	wanted := make([]Profile, len(profiles))
	units := 0
	for i, name := range profiles {
		p, err := m.Profile(name)
		if err != nil {
			return nil, err
		}
		wanted[i] = p
		units += p.Units
	}
	free := m.units()
	for t := m.taken(used); t != 0; t &= t - 1 {
		free--
	}
	if units > free {
		return nil, fmt.Errorf("%w: %v needs %d memory units, %s has %d and %d of them free",
			ErrNoPlacement, profiles, units, m.Name, m.units(), free)
	}

	// Large ones first: they have the fewest places.
	order := make([]int, len(wanted))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if wanted[a].Units != wanted[b].Units {
			return wanted[b].Units - wanted[a].Units
		}
		return len(wanted[a].Starts) - len(wanted[b].Starts)
	})
	placed := make([]Placement, len(wanted))
	all := slices.Clip(slices.Clone(used))
	var place func(n int) bool
	place = func(n int) bool {
		if n == len(order) {
			return true
		}
		i := order[n]
		for _, s := range m.byPreference(wanted[i], all) {
			placed[i] = wanted[i].At(s)
			all = append(all, placed[i])
			if place(n + 1) {
				return true
			}
			all = all[:len(all)-1]
		}
		return false
	}
	if !place(0) {
		return nil, fmt.Errorf("%w: %v beside %v on %s; %d units are free but no arrangement has every slice at a legal start",
			ErrNoPlacement, profiles, used, m.Name, free)
	}
	return placed, nil
}
