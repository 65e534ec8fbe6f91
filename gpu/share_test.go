package gpu

import (
	"testing"

	"pgregory.net/rapid"
)

func TestUsualShares(t *testing.T) {
	for _, m := range Models() {
		usual := m.Usual()
		last := usual[len(usual)-1]
		if want := m.Class == "consumer"; IsShare(last.Name) != want {
			t.Errorf("%s, %s: usually sold as %s", m.ID, m.Class, last.Name)
		}
	}
}

func TestSharedCard(t *testing.T) {
	for _, id := range []ModelID{"rtx4090", "a100-80gb"} {
		base, err := Lookup(id)
		if err != nil {
			t.Fatal(err)
		}
		m := base.WithShare(Share{N: 4})
		if m.Partitions() || len(m.Sold()) != 2 {
			t.Errorf("%s: sold as %v, partitions %v", id, m.Sold(), m.Partitions())
		}
		for _, other := range []string{"ts2", "ts8", "1g.10gb"} {
			if _, err := m.Profile(other); err == nil {
				t.Errorf("%s is sold as %s beside ts4", id, other)
			}
		}
		ts4, err := m.Profile("ts4")
		if err != nil || ts4.MemoryMiB != m.MemoryMiB/4 {
			t.Fatalf("%s: %+v, %v", id, ts4, err)
		}
		whole, _ := m.Profile(Whole)
		for name, tc := range map[string]struct {
			used          []Placement
			shares, whole int
		}{
			"nothing":        {nil, 4, 1},
			"one share":      {[]Placement{ts4.At(2)}, 3, 0},
			"all shares":     {[]Placement{ts4.At(0), ts4.At(1), ts4.At(2), ts4.At(3)}, 0, 0},
			"the whole card": {[]Placement{whole.At(0)}, 0, 0},
			"the whole card, rented when it counted as one unit": {[]Placement{{Profile: Whole, Start: 0, Size: 1}}, 0, 0},
		} {
			if a, b := m.CountFit(ts4, tc.used), m.CountFit(whole, tc.used); a != tc.shares || b != tc.whole {
				t.Errorf("%s with %s: %d shares and %d whole free, want %d and %d", id, name, a, b, tc.shares, tc.whole)
			}
		}
	}
}

// TestSharesProperty rents and returns shares and whole cards in any order.
func TestSharesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.SampledFrom(Models()).Draw(t, "model")
		n := rapid.IntRange(2, MaxShares).Draw(t, "shares")
		m := base.WithShare(Share{N: n})
		sold := m.Sold()
		var used []Placement
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(used) > 0 && rapid.Bool().Draw(t, "return") {
				i := rapid.IntRange(0, len(used)-1).Draw(t, "which")
				used = append(used[:i:i], used[i+1:]...)
			} else if p := rapid.SampledFrom(sold).Draw(t, "profile"); true {
				if start, ok := m.BestStart(p, used); ok {
					used = append(used, p.At(start))
				} else if len(used) == 0 {
					t.Fatalf("%s of %s does not fit on an empty card", p.Name, m.ID)
				}
			}
			if err := m.CheckLayout(used); err != nil {
				t.Fatal(err)
			}
			wholes := 0
			for _, u := range used {
				if u.Profile == Whole {
					wholes++
				}
			}
			if len(used) > n || wholes > 0 && len(used) > 1 {
				t.Fatalf("%v on a card of %d shares", used, n)
			}
			if free := m.CountFit(sold[1], used); wholes == 0 && free != n-len(used) {
				t.Fatalf("%d shares free beside %v of %d", free, used, n)
			}
		}
	})
}
