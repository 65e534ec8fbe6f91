package gpu

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// cards makes one card per layout, keyed a, b, c …
func cards(t testing.TB, m Model, layouts ...string) []Card {
	var cs []Card
	for i, l := range layouts {
		c := Card{Key: string(rune('a' + i)), Model: m}
		if l == Whole {
			c.Used = []Placement{m.whole().At(0)}
		} else {
			c.Used = layout(t, m, l)
		}
		cs = append(cs, c)
	}
	return cs
}

func TestChoose(t *testing.T) {
	m := model(t, "a100-80gb")
	for name, tc := range map[string]struct {
		cards   []Card
		profile string
		index   int
		start   int
		ok      bool
		why     string
	}{
		"a slice goes to the broken card":      {cards(t, m, "", "1g@6"), "1g.10gb", 1, 5, true, "already in slices"},
		"even if another would be emptier":     {cards(t, m, "", "4g@0 2g@4"), "1g.10gb", 1, 6, true, "already in slices"},
		"an untouched one when no broken fits": {cards(t, m, "3g@0 3g@4", "", ""), "1g.10gb", 1, 6, true, "so b, untouched until now, is opened at memory slice 7"},
		"the half already broken, not the 4g":  {cards(t, m, "3g@4", "3g@4 1g@0"), "1g.10gb", 1, 1, true, "at memory slice 2 of b"},
		"a 3g finishes the 4g card":            {cards(t, m, "1g@6", "4g@0"), "3g.40gb", 1, 4, true, "at memory slice 5 of b"},
		"whole takes an untouched card":        {cards(t, m, "1g@6", "", ""), Whole, 1, 0, true, "card b is untouched"},
		"whole finds none":                     {cards(t, m, "1g@6", Whole), Whole, -1, 0, false, "none of 2 cards is untouched: 1 rented whole, 1 in slices"},
		"a slice finds none":                   {cards(t, m, "1g@0 1g@4", Whole), "3g.40gb", -1, 0, false, "fits on none of 2 cards: 1 rented whole, 1 with slices in the way"},
		"equals go by key":                     {[]Card{{Key: "z", Model: m}, {Key: "b", Model: m}, {Key: "c", Model: m}}, "1g.10gb", 1, 6, true, "so b, untouched"},
		"no cards":                             {nil, "1g.10gb", -1, 0, false, "no card offers 1g.10gb"},
		"cards of another kind":                {cards(t, model(t, "rtx4090"), ""), "1g.10gb", -1, 0, false, "no card offers"},
		"an undividable card, whole":           {cards(t, model(t, "rtx4090"), Whole, ""), Whole, 1, 0, true, "card b"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := m.Profile(tc.profile)
			if err != nil {
				t.Fatal(err)
			}
			if len(tc.cards) > 0 && tc.profile == Whole {
				p = tc.cards[0].Model.whole()
			}
			index, start, ok, why := Choose(tc.cards, p)
			if index != tc.index || start != tc.start || ok != tc.ok || !strings.Contains(why, tc.why) {
				t.Errorf("card %d at %d, %v (%s); want %d at %d, %v (… %s …)", index, start, ok, why, tc.index, tc.start, tc.ok, tc.why)
			}
		})
	}
}

// Choose serves a request exactly when some card can, opens an untouched card
// for a slice only when it must, gives a legal place, and does not depend on the
// order of the cards.
func TestChooseAlways(t *testing.T) {
	m := model(t, "a100-80gb")
	sold := m.Sold()
	rapid.Check(t, func(t *rapid.T) {
		fleet := make([]Card, rapid.IntRange(1, 5).Draw(t, "cards"))
		for i := range fleet {
			fleet[i] = Card{Key: fmt.Sprintf("card-%d", i), Model: m}
			for range rapid.IntRange(0, 5).Draw(t, "slices") {
				p := rapid.SampledFrom(sold).Draw(t, "held")
				if free := m.FreeStarts(p, fleet[i].Used); len(free) > 0 {
					fleet[i].Used = append(fleet[i].Used, p.At(rapid.SampledFrom(free).Draw(t, "start")))
				}
			}
		}
		p := rapid.SampledFrom(sold).Draw(t, "wanted")
		fits, brokenFits := false, false
		for _, c := range fleet {
			if m.CountFit(p, c.Used) > 0 {
				fits = true
				brokenFits = brokenFits || len(c.Used) > 0
			}
		}
		i, start, ok, why := Choose(fleet, p)
		if ok != fits || why == "" {
			t.Fatalf("ok %v, fits %v, %q", ok, fits, why)
		}
		if !ok {
			return
		}
		if untouched := len(fleet[i].Used) == 0; untouched == brokenFits {
			t.Fatalf("untouched %v although a broken card fits: %v", untouched, brokenFits)
		}
		if err := m.CheckLayout(append(slices.Clone(fleet[i].Used), p.At(start))); err != nil {
			t.Fatal(err)
		}
		shuffled := rapid.Permutation(fleet).Draw(t, "order")
		if j, again, _, _ := Choose(shuffled, p); shuffled[j].Key != fleet[i].Key || again != start {
			t.Fatalf("%s at %d, in another order %s at %d", fleet[i].Key, start, shuffled[j].Key, again)
		}
	})
}

// The reason for the rule: under churn it serves more of the compute asked for
// than first fit. The gain of some points holds for every seed tried.
func TestChooseBeatsFirstFitUnderChurn(t *testing.T) {
	m := model(t, "a100-80gb")
	firstFit := func(cs []Card, p Profile) (int, int, bool) {
		for i, c := range cs {
			if free := m.FreeStarts(p, c.Used); len(free) > 0 {
				return i, free[0], true
			}
		}
		return -1, 0, false
	}
	choose := func(cs []Card, p Profile) (int, int, bool) {
		i, s, ok, _ := Choose(cs, p)
		return i, s, ok
	}
	var ours, theirs int
	for seed := range uint64(4) {
		ours += churn(m, seed, choose)
		theirs += churn(m, seed, firstFit)
	}
	t.Logf("compute slices served: %d, first fit %d (%+.1f %%)", ours, theirs, 100*float64(ours-theirs)/float64(theirs))
	if ours <= theirs {
		t.Errorf("served %d, first fit %d", ours, theirs)
	}
}

// churn offers 12 cards a stream of requests that leave again at random, at a
// load near one, and returns the compute slices served.
func churn(m Model, seed uint64, choose func([]Card, Profile) (int, int, bool)) (served int) {
	rng := rand.New(rand.NewPCG(seed, 1))
	fleet := make([]Card, 12)
	for i := range fleet {
		fleet[i] = Card{Key: fmt.Sprintf("%02d", i), Model: m}
	}
	type lease struct {
		card, until int
		place       Placement
	}
	var leases []lease
	sold := m.Sold()
	for now := range 1500 {
		p := sold[rng.IntN(len(sold))]
		until := now + 1 + int(rng.ExpFloat64()*27)
		leases = slices.DeleteFunc(leases, func(l lease) bool {
			if l.until > now {
				return false
			}
			c := &fleet[l.card]
			c.Used = slices.DeleteFunc(slices.Clone(c.Used), func(u Placement) bool { return u == l.place })
			return true
		})
		if i, s, ok := choose(fleet, p); ok {
			fleet[i].Used = append(fleet[i].Used, p.At(s))
			leases = append(leases, lease{i, until, p.At(s)})
			served += p.ComputeSlices
		}
	}
	return served
}

func BenchmarkChoose(b *testing.B) {
	m := model(b, "a100-80gb")
	var fleet []Card
	for i := range 1000 {
		fleet = append(fleet, Card{Key: fmt.Sprintf("%04d", i), Model: m, Used: layout(b, m, []string{"", "1g@6", "3g@4 1g@0", "4g@0"}[i%4])})
	}
	p := short(b, m, "2g")
	for b.Loop() {
		if _, _, ok, why := Choose(fleet, p); !ok {
			b.Fatal(why)
		}
	}
}
