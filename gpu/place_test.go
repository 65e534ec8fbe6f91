package gpu

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Case B1: seven compute slices by arithmetic, eleven memory units in truth; and
// a set that first-fit in the order given cannot place.
func TestPlaceAll(t *testing.T) {
	m := model(t, "a100-40gb")
	l1 := []string{"1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb", "1g.5gb", "1g.5gb", "1g.5gb"}
	if _, err := m.PlaceAll(l1, nil); !errors.Is(err, ErrNoPlacement) {
		t.Errorf("L1: %v, want ErrNoPlacement", err)
	}
	got, err := m.PlaceAll([]string{"3g.20gb", "4g.20gb"}, nil)
	want := []Placement{{"3g.20gb", 4, 4}, {"4g.20gb", 0, 4}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("L2: %v, %v; want %v", got, err, want)
	}

	m = model(t, "a100-80gb")
	for name, tc := range map[string]struct {
		used string
		want []string
		ok   bool
	}{
		"nothing":                          {"", nil, true},
		"the driver's bad order":           {"", []string{"1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb"}, true},
		"seven small":                      {"", []string{"1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb"}, true},
		"eight small":                      {"", []string{"1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb"}, false},
		"four double":                      {"", []string{"1g.20gb", "1g.20gb", "1g.20gb", "1g.20gb"}, true},
		"double is pushed off 6":           {"1g@6", []string{"1g.20gb", "3g.40gb"}, true},
		"whole and empty":                  {"", []string{Whole}, true},
		"whole beside a slice":             {"1g@6", []string{Whole}, false},
		"units free, starts not":           {"1g@0 1g@2 1g@4 1g@6", []string{"2g.20gb"}, false},
		"two sets of media engines":        {"", []string{"1g.10gb+me", "1g.10gb+me"}, false},
		"beside a busy one at 5":           {"1g@5", []string{"4g.40gb", "1g.10gb", "1g.20gb"}, true},
		"two 2g beside a 2g in the middle": {"2g@2", []string{"2g.20gb", "2g.20gb", "1g.10gb"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			used := layout(t, m, tc.used)
			got, err := m.PlaceAll(tc.want, used)
			if (err == nil) != tc.ok {
				t.Fatalf("%v, %v", got, err)
			}
			if err != nil {
				return
			}
			for i, p := range got {
				if p.Profile != tc.want[i] {
					t.Errorf("place %d is for %s, want %s", i, p.Profile, tc.want[i])
				}
			}
			if err := m.CheckLayout(append(used, got...)); err != nil {
				t.Error(err)
			}
		})
	}
	if _, err := m.PlaceAll([]string{"5g.50gb"}, nil); !errors.Is(err, ErrUnknownProfile) {
		t.Errorf("5g.50gb: %v", err)
	}
}

// Case B2: free slices, no place.
func TestCountFitWithHoles(t *testing.T) {
	m := model(t, "h100-80gb")
	used := layout(t, m, "1g@0 1g@1 1g@5")
	for name, want := range map[string]struct {
		starts []int
		count  int
	}{
		"1g.10gb": {[]int{2, 3, 4, 6}, 4},
		"1g.20gb": {[]int{2, 6}, 2},
		"2g.20gb": {[]int{2}, 1},
		"3g.40gb": {nil, 0},
		"4g.40gb": {nil, 0},
		Whole:     {nil, 0},
	} {
		p, err := m.Profile(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.FreeStarts(p, used); !slices.Equal(got, want.starts) {
			t.Errorf("%s: starts %v, want %v", name, got, want.starts)
		}
		if got := m.CountFit(p, used); got != want.count {
			t.Errorf("%s: %d fit, want %d", name, got, want.count)
		}
	}
	if start, ok := m.BestStart(short(t, m, "1g"), used); !ok || start != 4 {
		t.Errorf("the next 1g goes to %d, want 4", start)
	}
}

// Case B2 beside every hole there can be: where some start takes no place from any
// other profile, the next slice goes to such a one.
func TestBestStartKillsNothingNeedlessly(t *testing.T) {
	looked := 0
	for _, m := range Models() {
		for taken := mask(0); m.Partitions() && taken < m.full(); taken++ {
			var used []Placement
			for unit := range m.units() {
				if taken&span(unit, 1) != 0 {
					used = append(used, Placement{Profile: "taken", Start: unit, Size: 1})
				}
			}
			for _, p := range m.Sold() {
				kills := func(start int) (n int) {
					for _, q := range m.Sold() {
						for _, s := range q.Starts {
							if at := span(s, q.Units); q.Name != p.Name && at&taken == 0 && at&span(start, p.Units) != 0 {
								n++
							}
						}
					}
					return n
				}
				best, ok := m.BestStart(p, used)
				if !ok || kills(best) == 0 {
					continue
				}
				for _, start := range m.FreeStarts(p, used) {
					looked++
					if kills(start) == 0 {
						t.Errorf("%s with units %b taken: %s goes to %d, though %d takes nothing from anybody", m.ID, taken, p.Name, best, start)
					}
				}
			}
		}
	}
	if looked == 0 {
		t.Error("nothing was looked at")
	}
}

func TestBestStart(t *testing.T) {
	for _, tc := range []struct {
		model     ModelID
		used, ask string
		want      int // -1: nowhere
	}{
		{"a100-80gb", "", "3g", 4},
		{"a100-80gb", "3g@4", "3g", 0},
		{"a100-80gb", "", "2g", 0},
		{"a100-80gb", "2g@0", "2g", 2},
		{"a100-80gb", "2g@0 2g@2", "2g", 4},
		{"a100-80gb", "", "1g2", 6},
		{"a100-80gb", "", "1g", 6},
		{"a100-80gb", "1g@6", "1g", 5},
		{"a100-80gb", "1g@6 1g@5", "1g", 4},
		{"a100-80gb", "2g@0", "1g", 2},
		{"a100-80gb", "1g@6", "2g", 4},
		{"a100-80gb", "4g@0", "1g", 6},
		{"a100-80gb", "3g@0 3g@4", "1g", -1},
		{"a30-24gb", "", "1g", 0},
		{"a30-24gb", "1g@0", "1g", 1},
		{"a30-24gb", "1g@0", "2g", 2},
		{"rtxpro6000-96gb", "1g@3", "1g", 0},
		{"rtxpro6000-96gb", "1g@3", "2g", 6},
	} {
		m := model(t, tc.model)
		got, ok := m.BestStart(short(t, m, tc.ask), layout(t, m, tc.used))
		if !ok {
			got = -1
		}
		if got != tc.want {
			t.Errorf("%s with %q: %s goes to %d, want %d", tc.model, tc.used, tc.ask, got, tc.want)
		}
	}
}

// A card without 4g keeps its good half for 3g instead.
func TestBestStartWhere4gIsNotSold(t *testing.T) {
	m := model(t, "a100-80gb")
	m.Profiles = slices.DeleteFunc(slices.Clone(m.Profiles), func(p Profile) bool { return p.ComputeSlices == 4 })
	m.geometry = nil // as in a model made by hand from what a driver reports
	if got, _ := m.BestStart(short(t, m, "1g"), nil); got != 0 {
		t.Errorf("the first 1g goes to %d, want 0", got)
	}
}

func TestCheckLayout(t *testing.T) {
	a100, pro, l4 := model(t, "a100-80gb"), model(t, "rtxpro6000-96gb"), model(t, "l4")
	for name, tc := range map[string]struct {
		model Model
		ps    []Placement
		want  error
	}{
		"empty":               {a100, nil, nil},
		"whole":               {a100, []Placement{{Whole, 0, 8}}, nil},
		"whole without units": {l4, []Placement{{Whole, 0, 1}}, nil},
		"whole and a slice":   {a100, []Placement{{Whole, 0, 8}, {"1g.10gb", 6, 1}}, ErrOverlap},
		"two wholes":          {l4, []Placement{{Whole, 0, 1}, {Whole, 0, 1}}, ErrOverlap},
		"overlap":             {a100, []Placement{{"3g.40gb", 0, 4}, {"1g.10gb", 3, 1}}, ErrOverlap},
		"start":               {a100, []Placement{{"3g.40gb", 2, 4}}, ErrIllegalPlacement},
		"past the end":        {a100, []Placement{{"1g.10gb", 7, 1}}, ErrIllegalPlacement},
		"negative":            {a100, []Placement{{"1g.10gb", -1, 1}}, ErrIllegalPlacement},
		"size":                {a100, []Placement{{"3g.40gb", 4, 3}}, ErrIllegalPlacement},
		"another card's":      {a100, []Placement{{"1g.5gb", 0, 1}}, ErrUnknownProfile},
		"a slice of an L4":    {l4, []Placement{{"1g.10gb", 0, 1}}, ErrUnknownProfile},
		"two media sets":      {a100, []Placement{{"1g.10gb+me", 0, 1}, {"1g.10gb+me", 1, 1}}, ErrTooMany},
		"all media and plain": {pro, []Placement{{"1g.24gb+me.all", 0, 3}, {"1g.24gb", 3, 3}}, ErrTooMany},
		"plain and all media": {pro, []Placement{{"1g.24gb", 3, 3}, {"2g.48gb+me.all", 6, 6}}, ErrTooMany},
		"all media and none":  {pro, []Placement{{"1g.24gb+me.all", 0, 3}, {"1g.24gb-me", 3, 3}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.model.CheckLayout(tc.ps); !errors.Is(err, tc.want) {
				t.Errorf("%v, want %v", err, tc.want)
			}
		})
	}
}

// A record that makes no sense must not free memory for sale.
func TestNonsenseTakesTheWholeCard(t *testing.T) {
	m := model(t, "a100-80gb")
	for _, bad := range []Placement{{"1g.10gb", 0, 0}, {"1g.10gb", -1, 1}, {"1g.10gb", 8, 1}, {"x", 40, 40}} {
		for _, p := range m.Sold() {
			if n := m.CountFit(p, []Placement{bad}); n != 0 {
				t.Errorf("beside %+v %d of %s fit", bad, n, p.Name)
			}
		}
	}
}

// Any order of creating and destroying keeps placements apart, and what is said
// to fit is what brute force finds.
func TestChurnKeepsPlacementsApart(t *testing.T) {
	var partitioned []Model
	for _, m := range Models() {
		if m.Partitions() {
			partitioned = append(partitioned, m)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom(partitioned).Draw(t, "model")
		kinds := append(slices.Clone(m.Profiles), m.whole())
		var used []Placement
		t.Repeat(map[string]func(*rapid.T){
			"create": func(t *rapid.T) {
				p := rapid.SampledFrom(kinds).Draw(t, "profile")
				start, ok := m.BestStart(p, used)
				if ok != (m.CountFit(p, used) > 0) {
					t.Fatalf("BestStart says %v, CountFit %d", ok, m.CountFit(p, used))
				}
				if ok {
					used = append(used, p.At(start))
				}
			},
			"create anywhere": func(t *rapid.T) {
				p := rapid.SampledFrom(kinds).Draw(t, "profile")
				if free := m.FreeStarts(p, used); len(free) > 0 {
					used = append(used, p.At(rapid.SampledFrom(free).Draw(t, "start")))
				}
			},
			"destroy": func(t *rapid.T) {
				if len(used) == 0 {
					t.Skip("nothing there")
				}
				i := rapid.IntRange(0, len(used)-1).Draw(t, "which")
				used = slices.Delete(used, i, i+1)
			},
			"": func(t *rapid.T) {
				if err := m.CheckLayout(used); err != nil {
					t.Fatal(err)
				}
				keel := map[int]Placement{}
				for _, pl := range used {
					p, _ := m.Profile(pl.Profile)
					for c := range p.ComputeSlices {
						at := m.ComputeStart(pl) + c
						if other, twice := keel[at]; twice || at >= m.ComputeSlices {
							t.Fatalf("compute slice %d is drawn for %v and %v", at, other, pl)
						}
						keel[at] = pl
					}
				}
				for _, p := range kinds {
					var legal []int
					for s := -1; s <= m.MemoryUnits; s++ {
						if m.CheckLayout(append(slices.Clone(used), p.At(s))) == nil {
							legal = append(legal, s)
						}
					}
					if free := m.FreeStarts(p, used); !slices.Equal(free, legal) {
						t.Fatalf("%s beside %v: free %v, legal %v", p.Name, used, free, legal)
					}
					if got, want := m.CountFit(p, used), bruteCount(m, p, used, 0); got != want {
						t.Fatalf("%s beside %v: CountFit %d, brute force %d", p.Name, used, got, want)
					}
				}
			},
		})
	})
}

// bruteCount is the most of p that fit beside used, by trying every arrangement
// with starts of from or higher.
func bruteCount(m Model, p Profile, used []Placement, from int) int {
	best := 0
	for s := from; s < m.MemoryUnits; s++ {
		if next := append(slices.Clone(used), p.At(s)); m.CheckLayout(next) == nil {
			best = max(best, 1+bruteCount(m, p, next, s+1))
		}
	}
	return best
}

// PlaceAll succeeds exactly where some arrangement exists: tried for every
// multiset of up to eight slices, in rising order of size.
func TestPlaceAllFindsWhatExists(t *testing.T) {
	m := model(t, "a100-80gb")
	reachable := map[string]bool{}
	for _, set := range allLayouts(t, m, "1g", "1g2", "2g", "3g", "4g", "7g") {
		reachable[multiset(set)] = true
	}
	kinds := []string{"1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"}
	tried, placed := 0, 0
	var try func(names []string, from int)
	try = func(names []string, from int) {
		tried++
		got, err := m.PlaceAll(names, nil)
		var bare []Placement
		for _, n := range names {
			bare = append(bare, Placement{Profile: n})
		}
		if reachable[multiset(bare)] != (err == nil) {
			t.Fatalf("%v: reachable %v, PlaceAll %v %v", names, reachable[multiset(bare)], got, err)
		}
		if err := m.CheckLayout(got); err != nil {
			t.Fatal(err)
		}
		if err == nil {
			placed++
		}
		for i := from; i < len(kinds) && len(names) < 8; i++ {
			try(append(names[:len(names):len(names)], kinds[i]), i)
		}
	}
	try(nil, 0)
	if tried != 3003 || placed != 78 {
		t.Errorf("%d multisets tried, %d placed; want 3003 and 78", tried, placed)
	}
}

func ExampleModel_PlaceAll() {
	m, _ := Lookup("a100-80gb")
	places, _ := m.PlaceAll([]string{"3g.40gb", "4g.40gb"}, nil)
	fmt.Println(places)
	// Output: [3g.40gb@4 4g.40gb@0]
}
