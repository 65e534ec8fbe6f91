package gpu

import (
	"fmt"
	"math/bits"
	"strings"
)

// WhyNot says in words why p fits nowhere beside used; empty when it does fit.
func (m Model) WhyNot(p Profile, used []Placement) string {
	if len(m.FreeStarts(p, used)) > 0 {
		return ""
	}
	if p.Name == Whole {
		return "the card is not untouched: " + list(used)
	}
	taken := m.taken(used)
	var by []string                 // what is in the way, in the order of the starts
	starts := map[string][]string{} // which starts it takes
	free := 0
	for _, s := range p.Starts {
		var here []Placement
		for _, u := range used {
			if span(s, p.Units)&span(u.Start, u.Size) != 0 {
				here = append(here, u)
			}
		}
		if len(here) == 0 {
			free++
			continue
		}
		if starts[list(here)] == nil {
			by = append(by, list(here))
		}
		starts[list(here)] = append(starts[list(here)], fmt.Sprint(s))
	}
	if free > 0 { // so it is not for want of a place
		if mine := p.media(); mine == mediaSet || mine == mediaAll {
			return "the card has its media engines once, and they are taken or shared: " + list(used)
		}
		return "another slice has all media engines: " + list(used)
	}
	var said []string
	for _, b := range by {
		said = append(said, strings.Join(starts[b], ", ")+" by "+b)
	}
	why := "all its starts are taken: " + strings.Join(said, "; ")
	if units := m.units() - bits.OnesCount32(uint32(taken)); units >= p.Units {
		why += fmt.Sprintf(". %d of %d memory units are free, but not at such a place", units, m.units())
	}
	return why
}

func list(ps []Placement) string {
	var said []string
	for _, p := range ps {
		said = append(said, p.String())
	}
	return strings.Join(said, ", ")
}

// ParsePlacement reads what Placement.String writes, "3g.40gb@0", and checks that
// the model has it. It fails with ErrUnknownProfile or ErrIllegalPlacement.
func (m Model) ParsePlacement(text string) (Placement, error) {
	name, at, ok := strings.Cut(text, "@")
	p, err := m.Profile(name)
	if err != nil {
		return Placement{}, err
	}
	var start int
	if _, err := fmt.Sscanf(at+"\n", "%d\n", &start); !ok || err != nil {
		return Placement{}, fmt.Errorf("%w: write %q as profile@start; %s starts at %v", ErrIllegalPlacement, text, p.Name, p.Starts)
	}
	place := p.At(start)
	return place, m.CheckLayout([]Placement{place})
}
