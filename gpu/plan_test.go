package gpu

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// held reads "1g@0=x 2g@4": what lies on a card and who uses it.
func held(t testing.TB, m Model, s string) (out []Held) {
	t.Helper()
	for _, f := range strings.Fields(s) {
		place, holder, _ := strings.Cut(f, "=")
		out = append(out, Held{layout(t, m, place)[0], holder})
	}
	return out
}

func names(t testing.TB, m Model, s string) (out []string) {
	t.Helper()
	for _, f := range strings.Fields(s) {
		out = append(out, short(t, m, f).Name)
	}
	return out
}

func TestPlan(t *testing.T) {
	for name, tc := range map[string]struct {
		model              ModelID
		now, want          string
		keep, remove, make string
		err                error
		says               string
	}{
		"what cannot be there now": {"a100-40gb", "1g@6=ins_x 1g@5 2g@0 3g@4", "1g 1g 1g 1g 1g 1g 1g", "", "", "", ErrOverlap, "the slices now on the card"},
		"case B3":                  {"a100-40gb", "1g@3=ins_x 1g@2 2g@0 3g@4", "1g 1g 1g 1g 1g 1g 1g", "1g@3=ins_x 1g@2", "2g@0 3g@4", "1g@0 1g@1 1g@4 1g@5 1g@6", nil, ""},
		"case B3, blocked":         {"a100-40gb", "1g@3=ins_x 1g@2 2g@0 3g@4", "4g 3g", "", "", "", ErrBlocked, "1g.5gb@3 of ins_x"},
		"blocked by its place":     {"a100-80gb", "1g@1=ins_x", "4g 1g 1g 1g", "", "", "", ErrBlocked, "1g.10gb@1 of ins_x"},
		"blocked by either":        {"a100-80gb", "1g@0=ins_x 1g@4=ins_y", "3g 1g 1g", "", "", "", ErrBlocked, "1g.10gb@0 of ins_x or 1g.10gb@4 of ins_y"},
		"blocked by both":          {"a100-80gb", "1g@0=ins_x 1g@4=ins_y", "3g 3g", "", "", "", ErrBlocked, "1g.10gb@0 of ins_x, 1g.10gb@4 of ins_y"},
		"nothing to do":            {"a100-80gb", "3g@4=ins_x 2g@0", "2g 3g", "3g@4=ins_x 2g@0", "", "", nil, ""},
		"to an empty card":         {"a100-80gb", "3g@4 2g@0", "", "", "2g@0 3g@4", "", nil, ""},
		"from an empty card":       {"a100-80gb", "", "4g 3g", "", "", "3g@4 4g@0", nil, ""},
		"an idle one moves":        {"a100-80gb", "3g@0", "4g 3g", "", "3g@0", "3g@4 4g@0", nil, ""},
		"what no card has":         {"a100-80gb", "", "3g 1g2 1g2 1g2 1g 1g 1g", "", "", "", ErrNoPlacement, ""},
		"more than is wanted":      {"a30-24gb", "1g@0=ins_x 1g@1=ins_y", "1g 2g", "", "", "", ErrBlocked, "1g.6gb@0 of ins_x or 1g.6gb@1 of ins_y"},
	} {
		t.Run(name, func(t *testing.T) {
			m := model(t, tc.model)
			var now []Held
			for _, f := range strings.Fields(tc.now) {
				place, holder, _ := strings.Cut(f, "=")
				now = append(now, Held{layout(t, m, place)[0], holder})
			}
			p, err := m.Plan(now, names(t, m, tc.want))
			if !errors.Is(err, tc.err) || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("%v, want %v with %q", err, tc.err, tc.says)
			}
			if err != nil {
				return
			}
			if !slices.Equal(p.Keep, held(t, m, tc.keep)) {
				t.Errorf("keeps %v, want %s", p.Keep, tc.keep)
			}
			for what, both := range map[string][2][]Placement{"removes": {p.Remove, layout(t, m, tc.remove)}, "makes": {p.Make, layout(t, m, tc.make)}} {
				if !slices.Equal(sorted(both[0]), sorted(both[1])) {
					t.Errorf("%s %v, want %v", what, both[0], both[1])
				}
			}
		})
	}
}

func sorted(ps []Placement) []Placement {
	return slices.SortedFunc(slices.Values(ps), func(a, b Placement) int { return a.Start - b.Start })
}

// Whatever lies on a card and whatever is wanted: a plan touches nothing in use,
// ends at exactly what is wanted, in a legal layout, and one is found whenever
// the slices in use can be part of it.
func TestPlanAlways(t *testing.T) {
	var cards []Model
	for _, m := range Models() {
		if m.Partitions() {
			cards = append(cards, m)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		m := rapid.SampledFrom(cards).Draw(r, "model")
		fill := func(label string) (out []Placement) {
			for range rapid.IntRange(0, 7).Draw(r, label) {
				p := rapid.SampledFrom(m.Sold()[1:]).Draw(r, "profile")
				if free := m.FreeStarts(p, out); len(free) > 0 {
					out = append(out, p.At(rapid.SampledFrom(free).Draw(r, "start")))
				}
			}
			return out
		}
		var now []Held
		var busy []string
		for i, p := range fill("now") {
			h := Held{Placement: p}
			if rapid.Bool().Draw(r, "busy") {
				h.Holder = fmt.Sprint("ins_", i)
				busy = append(busy, p.Profile)
			}
			now = append(now, h)
		}
		var want []string
		for _, p := range fill("want") {
			want = append(want, p.Profile)
		}
		plan, err := m.Plan(now, want)
		if err != nil {
			if !errors.Is(err, ErrBlocked) {
				r.Fatalf("a wanted layout that exists: %v", err)
			}
			if len(busy) == 0 {
				r.Fatalf("blocked by nobody: %v", err)
			}
			return
		}
		var after []Placement
		left := slices.Clone(now)
		for _, k := range plan.Keep {
			after = append(after, k.Placement)
			left = slices.DeleteFunc(left, func(h Held) bool { return h == k })
		}
		for _, h := range left {
			if h.Holder != "" || !slices.Contains(plan.Remove, h.Placement) {
				r.Fatalf("%v is neither kept nor removed", h)
			}
		}
		if len(left) != len(plan.Remove) {
			r.Fatalf("removes %v of %v", plan.Remove, left)
		}
		after = append(after, plan.Make...)
		if err := m.CheckLayout(after); err != nil {
			r.Fatal(err)
		}
		var got []string
		for _, p := range after {
			got = append(got, p.Profile)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			r.Fatalf("ends at %v, want %v", got, want)
		}
	})
}

func TestWhyNot(t *testing.T) {
	m := model(t, "a100-80gb")
	for _, tc := range []struct{ used, ask, says string }{
		{"3g@0 3g@4", "1g", "all its starts are taken: 0, 1, 2, 3 by 3g.40gb@0; 4, 5, 6 by 3g.40gb@4"},
		{"1g@0 1g@2 1g@4 1g@6", "2g", "4 of 8 memory units are free, but not at such a place"},
		{"1g+me@0", "1g+me", "media engines once"},
		{"1g@3 2g@4", "3g", "0 by 1g.10gb@3; 4 by 2g.20gb@4"},
		{"1g@3", "2g", ""},
	} {
		got := m.WhyNot(short(t, m, tc.ask), layout(t, m, tc.used))
		if (tc.says == "") != (got == "") || !strings.Contains(got, tc.says) {
			t.Errorf("%s beside %s: %q, want %q", tc.ask, tc.used, got, tc.says)
		}
	}
	if got := m.WhyNot(m.whole(), layout(t, m, "1g@3")); got != "the card is not untouched: 1g.10gb@3" {
		t.Error(got)
	}
}

func TestParsePlacement(t *testing.T) {
	m := model(t, "a100-80gb")
	for in, want := range map[string]error{"3g.40gb@4": nil, "1g.10gb@7": ErrIllegalPlacement, "1g.10gb": ErrIllegalPlacement, "1g.10gb@": ErrIllegalPlacement,
		"1g.10gb@1x": ErrIllegalPlacement, "9g.90gb@0": ErrUnknownProfile, "": ErrUnknownProfile, "whole@0": nil, "1g.10gb@-1": ErrIllegalPlacement} {
		p, err := m.ParsePlacement(in)
		if !errors.Is(err, want) || err == nil && p.String() != in {
			t.Errorf("%q: %v, %v; want %v", in, p, err, want)
		}
	}
}
