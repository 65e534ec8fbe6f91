package gpu

import "slices"

// geometry is what can be worked out once per model.
type geometry struct {
	sold []Profile // see Sold
	// layouts[t] is how many sets of sold slices, the empty one included, can
	// still be placed on a card whose units t are taken.
	layouts []int
}

// newGeometry counts the layouts for every mask, from the full card down: at the
// lowest free unit either nothing starts, or one of the profiles does.
func newGeometry(m Model) *geometry {
	full := m.full()
	g := &geometry{sold: m.sells(), layouts: make([]int, full+1)}
	g.layouts[full] = 1
	for t := int(full) - 1; t >= 0; t-- {
		taken := mask(t)
		unit := 0
		for taken&span(unit, 1) != 0 {
			unit++
		}
		n := g.layouts[taken|span(unit, 1)]
		for _, p := range g.sold[1:] {
			if at := span(unit, p.Units); slices.Contains(p.Starts, unit) && at&taken == 0 {
				n += g.layouts[taken|at]
			}
		}
		g.layouts[t] = n
	}
	return g
}

// geo is the geometry of m. A Model made by hand, say from what a driver reports,
// has none yet.
func (m Model) geo() *geometry {
	if m.geometry == nil {
		return newGeometry(m)
	}
	return m.geometry
}

// layoutsLeft is how many sets of sold slices fit beside the units taken.
func (m Model) layoutsLeft(taken mask) int { return m.geo().layouts[taken] }

// BestStart returns the start at which p leaves most to be sold: the one after
// which most sets of sold slices can still be placed, so a small slice goes into
// a half that is already broken, 3g to 4 before 0, and a 1g with double memory
// to 6. Among equals it takes the order below. ok is false when p fits nowhere.
func (m Model) BestStart(p Profile, used []Placement) (start int, ok bool) {
	free := m.byPreference(p, used)
	if len(free) == 0 {
		return 0, false
	}
	return free[0], true
}

// byPreference returns the free starts of p, the best first.
func (m Model) byPreference(p Profile, used []Placement) []int {
	free := m.FreeStarts(p, used)
	taken := m.taken(used)
	order := m.tieOrder(p)
	slices.SortStableFunc(free, func(a, b int) int {
		left := m.layoutsLeft(taken|span(b, p.Units)) - m.layoutsLeft(taken|span(a, p.Units))
		if left != 0 {
			return left
		}
		return slices.Index(order, a) - slices.Index(order, b)
	})
	return free
}

// tieOrder is the order of starts among which the count does not decide. On
// cards with seven compute slices a 1g has a true conflict on a fresh card: at
// 6 to 4 it saves 4g@0, at 0 to 3 it saves 3g@4; the larger profile wins where
// it is sold. Elsewhere the lowest start comes first.
func (m Model) tieOrder(p Profile) []int {
	if m.ComputeSlices != 7 || m.MemoryUnits != 8 {
		return p.Starts
	}
	switch {
	case p.ComputeSlices == 1 && p.Units == 1:
		if slices.ContainsFunc(m.geo().sold, func(p Profile) bool { return p.ComputeSlices == 4 }) {
			return []int{6, 5, 4, 0, 1, 2, 3}
		}
		return []int{0, 1, 2, 3, 6, 5, 4}
	case p.ComputeSlices == 1 && p.Units == 2:
		return []int{6, 4, 0, 2}
	case p.ComputeSlices == 3:
		return []int{4, 0}
	}
	return p.Starts
}
