package gpu

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
)

// model looks a model up, or ends the test.
func model(t testing.TB, id ModelID) Model {
	t.Helper()
	m, err := Lookup(id)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// short maps the short names of the tables ("3g", "1g2" for double memory) to
// the profiles of m.
func short(t testing.TB, m Model, name string) Profile {
	t.Helper()
	for _, p := range m.Profiles {
		n := fmt.Sprintf("%dg", p.ComputeSlices)
		if p.ComputeSlices == 1 && p.Units == 2 {
			n = "1g2"
		}
		if p.media() == mediaSet {
			n += "+me"
		}
		if n == name && (p.media() == mediaPlain || p.media() == mediaSet) {
			return p
		}
	}
	t.Fatalf("%s has no %s", m.ID, name)
	return Profile{}
}

// layout reads "3g@0 2g@4" and checks that it is legal.
func layout(t testing.TB, m Model, s string) []Placement {
	t.Helper()
	var ps []Placement
	for _, f := range strings.Fields(s) {
		name, at, _ := strings.Cut(f, "@")
		start, err := strconv.Atoi(at)
		if err != nil {
			t.Fatal(err)
		}
		ps = append(ps, short(t, m, name).At(start))
	}
	if err := m.CheckLayout(ps); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return ps
}

// The sixteen questions that whoever sells slices should be able to answer.
func TestGeometryFacts(t *testing.T) {
	for _, tc := range []struct {
		fact  int
		model ModelID
		used  string
		ask   string
		want  []int // starts still free
	}{
		{1, "a100-80gb", "3g@0 3g@4", "1g", nil},
		{2, "a100-80gb", "4g@0", "3g", []int{4}},
		{3, "a100-80gb", "3g@0", "4g", nil},
		{3, "a100-80gb", "3g@4", "4g", []int{0}},
		{4, "a100-80gb", "1g@0 1g@1 1g@2 1g@3 1g@4 1g@5 1g@6", "1g", nil},
		{4, "a100-80gb", "1g@0 1g@1 1g@2 1g@3 1g@4 1g@5 1g@6", "1g2", nil},
		{5, "a100-80gb", "1g2@0 1g2@2 1g2@4 1g2@6", "1g", nil},
		{6, "a100-80gb", "2g@0 2g@2 2g@4", "2g", nil},
		{6, "a100-80gb", "2g@0 2g@2 2g@4", "1g", []int{6}},
		{6, "a100-80gb", "2g@0 2g@2 2g@4", "1g2", []int{6}},
		{7, "a100-80gb", "1g@0 1g@4", "3g", nil},
		{7, "a100-80gb", "1g@0 1g@4", "4g", nil},
		{7, "a100-80gb", "1g@0 1g@4", "2g", []int{2}},
		{7, "a100-80gb", "1g@0 1g@4", "1g2", []int{2, 6}},
		{7, "a100-80gb", "1g@6 1g@5", "3g", []int{0}},
		{7, "a100-80gb", "1g@6 1g@5", "4g", []int{0}},
		{7, "a100-80gb", "1g@6 1g@5", "2g", []int{0, 2}},
		{8, "a100-80gb", "3g@0 2g@4 1g@6", "1g", nil},
		{8, "a100-80gb", "3g@4 2g@0 1g@2", "1g", []int{3}},
		{9, "a100-80gb", "1g@0 1g@2 1g@4 1g@6", "2g", nil},
		{9, "a100-80gb", "1g@0 1g@2 1g@4 1g@6", "1g", []int{1, 3, 5}},
		{10, "a100-80gb", "1g@6 1g@4 2g@0", "3g", nil},
		{10, "a100-80gb", "1g@6 1g@4 2g@0", "2g", []int{2}},
		{10, "a100-80gb", "1g@6 1g@4 2g@0", "1g", []int{2, 3, 5}},
		{11, "a100-80gb", "1g@3", "4g", nil},
		{11, "a100-80gb", "1g@3", "3g", []int{4}},
		{11, "a100-80gb", "1g@3", "2g", []int{0, 4}},
		{11, "a100-80gb", "1g@3", "1g2", []int{0, 4, 6}},
		{13, "a100-80gb", "1g+me@0", "1g+me", nil},
		{14, "a30-24gb", "1g@1 1g@2", "2g", nil},
		{14, "a30-24gb", "1g@1 1g@2", "1g", []int{0, 3}},
		{15, "rtxpro6000-96gb", "1g@3", "2g", []int{6}},
		{16, "a100-80gb", "7g@0", "1g", nil},
		{16, "a100-80gb", "1g@6", "7g", nil},
	} {
		t.Run(fmt.Sprintf("fact %d, %s, %s then %s", tc.fact, tc.model, tc.used, tc.ask), func(t *testing.T) {
			m := model(t, tc.model)
			p, used := short(t, m, tc.ask), layout(t, m, tc.used)
			if got := m.FreeStarts(p, used); !slices.Equal(got, tc.want) {
				t.Errorf("free starts %v, want %v", got, tc.want)
			}
		})
	}
	a100 := model(t, "a100-80gb")
	// Facts 2, 6, 13, 14, 15: these are full and legal; layout checks that.
	layout(t, a100, "4g@0 3g@4")
	layout(t, a100, "2g@0 2g@2 2g@4 1g2@6")
	layout(t, a100, "1g+me@0 1g@1 1g@2 1g@3 1g@4 1g@5 1g@6")
	layout(t, model(t, "a30-24gb"), "2g@0 1g@2 1g@3")
	layout(t, model(t, "rtxpro6000-96gb"), "2g@0 1g@6 1g@9")
}

// Fact 12: beside a 1g with double memory all seven compute slices can be sold
// only if it sits at 6.
func TestDoubleMemoryStrandsComputeUnlessLast(t *testing.T) {
	m := model(t, "a100-80gb")
	for start, want := range map[int]int{0: 6, 2: 6, 4: 6, 6: 7} {
		most := 0
		for _, set := range allLayouts(t, m, "1g", "2g", "3g", "4g", "1g2") {
			if slices.Contains(set, short(t, m, "1g2").At(start)) {
				most = max(most, computeOf(t, m, set))
			}
		}
		if most != want {
			t.Errorf("1g.20gb at %d: at most %d compute slices, want %d", start, most, want)
		}
	}
}

func computeOf(t testing.TB, m Model, set []Placement) int {
	n := 0
	for _, pl := range set {
		p, err := m.Profile(pl.Profile)
		if err != nil {
			t.Fatal(err)
		}
		n += p.ComputeSlices
	}
	return n
}

// allLayouts is every reachable set of placements of the profiles, the empty one
// included, found by brute force over FreeStarts and kept sorted.
func allLayouts(t testing.TB, m Model, names ...string) [][]Placement {
	t.Helper()
	var profiles []Profile
	for _, n := range names {
		profiles = append(profiles, short(t, m, n))
	}
	seen := map[string]bool{"[]": true}
	all := [][]Placement{nil}
	for i := 0; i < len(all); i++ {
		for _, p := range profiles {
			for _, s := range m.FreeStarts(p, all[i]) {
				next := append(slices.Clone(all[i]), p.At(s))
				sort.Slice(next, func(a, b int) bool { return next[a].Start < next[b].Start })
				if key := fmt.Sprint(next); !seen[key] {
					seen[key] = true
					all = append(all, next)
				}
			}
		}
	}
	return all
}

// multiset is the profiles of set without their places.
func multiset(set []Placement) string {
	var names []string
	for _, p := range set {
		names = append(names, p.Profile)
	}
	sort.Strings(names)
	return strings.Join(names, " ")
}

func TestCounts(t *testing.T) {
	plain := []string{"1g", "2g", "3g", "4g", "7g"}
	double := append(slices.Clone(plain), "1g2")
	for _, tc := range []struct {
		model                                      ModelID
		profiles                                   []string
		maximal, maximalMultisets, sets, multisets int
	}{
		{"a100-80gb", plain, 19, 14, 298, 38},
		{"a100-80gb", double, 78, 38, 723, 78},
		{"a100-40gb", double, 78, 38, 723, 78},
		{"h100-80gb", double, 78, 38, 723, 78},
		{"h100-94gb", double, 78, 38, 723, 78},
		{"h200-141gb", double, 78, 38, 723, 78},
		{"b200-180gb", double, 78, 38, 723, 78},
		{"a30-24gb", []string{"1g", "2g", "4g"}, 5, 4, 26, 10},
	} {
		t.Run(fmt.Sprint(tc.model, tc.profiles), func(t *testing.T) {
			m := model(t, tc.model)
			var sets, maximal int
			multisets, maximalMultisets := map[string]bool{}, map[string]bool{}
			for _, set := range allLayouts(t, m, tc.profiles...) {
				if err := m.CheckLayout(set); err != nil {
					t.Fatal(err)
				}
				sets++
				multisets[multiset(set)] = true
				if !slices.ContainsFunc(tc.profiles, func(n string) bool { return m.CountFit(short(t, m, n), set) > 0 }) {
					maximal++
					maximalMultisets[multiset(set)] = true
				}
			}
			got := []int{maximal, len(maximalMultisets), sets, len(multisets)}
			if want := []int{tc.maximal, tc.maximalMultisets, tc.sets, tc.multisets}; !slices.Equal(got, want) {
				t.Errorf("maximal, as multisets, all, as multisets: %v, want %v", got, want)
			}
		})
	}
}

// The cost of a first placement: how many of the 723 sets remain beside it.
func TestLayoutsLeftAfterFirstPlacement(t *testing.T) {
	m := model(t, "a100-80gb")
	// Sold leaves out the 7g, which is one set of the 723.
	if got := m.layoutsLeft(0); got != 722 {
		t.Errorf("%d sets on an empty card, want 722", got)
	}
	for name, want := range map[string]map[int]int{
		"1g":  {0: 228, 1: 228, 2: 228, 3: 228, 4: 228, 5: 228, 6: 228},
		"1g2": {0: 114, 2: 114, 4: 114, 6: 228},
		"2g":  {0: 114, 2: 114, 4: 114},
		"3g":  {0: 19, 4: 38},
		"4g":  {0: 19},
	} {
		p := short(t, m, name)
		for start, n := range want {
			if got := m.layoutsLeft(span(start, p.Units)); got != n {
				t.Errorf("after %s@%d: %d sets, want %d", name, start, got, n)
			}
		}
	}
}

// The seed claim: an A100 80GB as 1 × 40 + 3 × 20 + 3 × 10 GB. It needs 13 of 8
// memory units; so does every reading of its 20 GB slices, and even without the
// 40 GB slice it needs nine.
func TestSeedClaimIsImpossible(t *testing.T) {
	m := model(t, "a100-80gb")
	for _, forty := range []string{"3g.40gb", "4g.40gb"} {
		for _, twenty := range []string{"2g.20gb", "1g.20gb"} {
			claim := []string{forty, twenty, twenty, twenty, "1g.10gb", "1g.10gb", "1g.10gb"}
			units, compute, memory := 0, 0, 0
			for _, n := range claim {
				p, err := m.Profile(n)
				if err != nil {
					t.Fatal(err)
				}
				units, compute, memory = units+p.Units, compute+p.ComputeSlices, memory+p.MemoryMiB
			}
			if units != 13 || m.MemoryUnits != 8 {
				t.Errorf("%v: %d of %d memory units, want 13 of 8", claim, units, m.MemoryUnits)
			}
			if compute < 9 || m.ComputeSlices != 7 {
				t.Errorf("%v: %d of %d compute slices, want at least 9 of 7", claim, compute, m.ComputeSlices)
			}
			if memory <= m.MemoryMiB {
				t.Errorf("%v: %d of %d MiB", claim, memory, m.MemoryMiB)
			}
			_, err := m.PlaceAll(claim, nil)
			if !errors.Is(err, ErrNoPlacement) || !strings.Contains(err.Error(), "needs 13 memory units") {
				t.Errorf("%v: %v", claim, err)
			}
			if _, err := m.PlaceAll(claim[1:], nil); !errors.Is(err, ErrNoPlacement) {
				t.Errorf("without the 40: %v", err)
			}
		}
	}
	// What one can have beside one 40 GB slice, nothing more fitting.
	for _, s := range []string{"3g@4 2g@0 2g@2", "3g@4 2g@0 1g@2 1g@3", "3g@4 1g@0 1g@1 1g@2 1g@3", "4g@0 2g@4 1g@6", "4g@0 3g@4"} {
		set := layout(t, m, s)
		for _, p := range m.Sold() {
			if n := m.CountFit(p, set); n != 0 {
				t.Errorf("%s still takes %d of %s", s, n, p.Name)
			}
		}
		if got := computeOf(t, m, set); got != 7 {
			t.Errorf("%s sells %d compute slices, want 7", s, got)
		}
	}
}
