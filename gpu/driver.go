package gpu

import (
	"fmt"
	"slices"
)

// Differences says in words where the table that a card's driver reports is not
// the one Berth knows of m, one line each; none means that they agree. A driver
// does not tell where slices start while the card is undivided: a profile without
// Starts is compared in the rest.
func (m Model) Differences(driver []Profile) (lines []string) {
	for _, d := range driver {
		i := slices.IndexFunc(m.Profiles, func(p Profile) bool { return p.Name == d.Name })
		if i < 0 {
			lines = append(lines, fmt.Sprintf("the driver offers %s, which Berth's table lacks", d.Name))
			continue
		}
		p := m.Profiles[i]
		if d.Starts != nil && (d.Units != p.Units || !slices.Equal(d.Starts, p.Starts)) {
			lines = append(lines, fmt.Sprintf("%s has size %d and starts at %v by the driver, size %d and %v by Berth's table", d.Name, d.Units, d.Starts, p.Units, p.Starts))
		}
		if d.MaxInstances != p.MaxInstances || d.ComputeSlices != p.ComputeSlices {
			lines = append(lines, fmt.Sprintf("%s has %d compute slices and at most %d instances by the driver, %d and %d by Berth's table", d.Name, d.ComputeSlices, d.MaxInstances, p.ComputeSlices, p.MaxInstances))
		}
		if d.MemoryMiB != p.MemoryMiB {
			lines = append(lines, fmt.Sprintf("%s has %d MiB by the driver, %d by Berth's table", d.Name, d.MemoryMiB, p.MemoryMiB))
		}
	}
	for _, p := range m.Profiles {
		if !slices.ContainsFunc(driver, func(d Profile) bool { return d.Name == p.Name }) {
			lines = append(lines, fmt.Sprintf("the driver does not offer %s, which Berth's table has", p.Name))
		}
	}
	return lines
}

// WithDriver is m with the profiles that a card's driver reports in place of the
// table's: what it offers, where and how much. What a driver leaves out (starts on
// an undivided card, engines) stays as the table has it. A profile whose place
// nobody knows is left out, and no profile at all is m as it was.
func (m Model) WithDriver(driver []Profile) Model {
	if len(driver) == 0 {
		return m
	}
	var merged []Profile
	units := 0
	for _, d := range driver {
		p := d
		if i := slices.IndexFunc(m.Profiles, func(p Profile) bool { return p.Name == d.Name }); i >= 0 {
			p = m.Profiles[i]
			p.ComputeSlices, p.MaxInstances, p.MemoryMiB = d.ComputeSlices, d.MaxInstances, d.MemoryMiB
			if d.Starts != nil {
				p.Units, p.Starts = d.Units, d.Starts
			}
		}
		if p.Name == Whole || p.ComputeSlices < 0 || p.MemoryMiB < 0 || len(p.Starts) == 0 || p.Units < 1 || slices.Min(p.Starts) < 0 || slices.Max(p.Starts)+p.Units > maxUnits {
			continue
		}
		merged = append(merged, p)
		units = max(units, slices.Max(p.Starts)+p.Units)
	}
	if len(merged) == 0 {
		return m
	}
	m.Profiles, m.MemoryUnits = merged, max(m.MemoryUnits, units)
	m.geometry = newGeometry(m)
	return m
}

// maxUnits bounds what a driver may claim: the geometry has a table entry for
// each set of units. The largest card known has 12.
const maxUnits = 16
