package fleet

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"berth/gpu"
	"berth/models"
	"berth/wire"
)

func at(profile string, start, size int) gpu.Placement {
	return gpu.Placement{Profile: profile, Start: start, Size: size}
}

// on makes an online site of cards of one model, each with what lies on it.
func on(name string, model gpu.ModelID, used ...[]gpu.Placement) site {
	m, err := gpu.Lookup(model)
	if err != nil {
		panic(err)
	}
	s := site{node: models.Node{ID: models.NodeID(name), Name: name, State: models.NodeOnline}, freeDisk: 100, devices: len(used),
		host: wire.Host{MilliCPU: 32_000, MemoryMiB: 64 << 10, Runtime: wire.Runtime{Images: []string{"host"}}}}
	for i, u := range used {
		s.cards = append(s.cards, card{device: models.Device{UUID: name + string(rune('0'+i)), Index: i}, model: m, used: u})
	}
	return s
}

func sku(t testing.TB, id string) gpu.SKU {
	s, err := gpu.ParseSKU(id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPlace(t *testing.T) {
	whole := []gpu.Placement{at(gpu.Whole, 0, 8)}
	broken := []gpu.Placement{at("1g.10gb", 0, 1)}
	off := on("off", "a100-80gb", nil)
	off.node.State = models.NodeOffline
	for name, tc := range map[string]struct {
		sites []site
		sku   string
		want  []string // card@start
		why   string
	}{
		"a broken card before an untouched one": {[]site{on("a", "a100-80gb", nil, broken), on("b", "a100-80gb", nil)}, "a100-80gb.1g.10gb", []string{"a1@1"}, "already in slices"},
		"an untouched card when none fits":      {[]site{on("a", "a100-80gb", whole, nil)}, "a100-80gb.1g.10gb", []string{"a1@6"}, "untouched"},
		"whole on an untouched card":            {[]site{on("a", "a100-80gb", broken), on("b", "a100-80gb", nil)}, "a100-80gb", []string{"b0@0"}, "untouched"},
		"3g at 4 first":                         {[]site{on("a", "a100-80gb", nil)}, "a100-80gb.3g.40gb", []string{"a0@4"}, ""},
		"another model is passed over":          {[]site{on("a", "h100-80gb", nil), on("b", "a100-80gb", nil)}, "a100-80gb", []string{"b0@0"}, ""},
		"an offline node is passed over":        {[]site{off, on("on", "a100-80gb", nil)}, "a100-80gb", []string{"on0@0"}, ""},
		"two cards of one node":                 {[]site{on("a", "a100-80gb", nil, broken), on("b", "a100-80gb", nil, nil, nil), on("c", "a100-80gb", nil, nil)}, "a100-80gb.x2", []string{"b0@0", "b1@0"}, "Of 2 nodes with room, b keeps most for what is usually asked for"},
		"two slices on two cards":               {[]site{on("a", "a100-80gb", broken, nil)}, "a100-80gb.1g.10gb.x2", []string{"a0@1", "a1@6"}, ""},
		"two on one card are refused":           {[]site{on("a", "a100-80gb", broken, whole)}, "a100-80gb.1g.10gb.x2", nil, "2 different cards"},
		"none untouched":                        {[]site{on("a", "a100-80gb", broken, whole)}, "a100-80gb", nil, "1 rented whole, 1 in slices"},
		"only offline":                          {[]site{off}, "a100-80gb", nil, "online"},
		"no such card":                          {[]site{on("a", "rtx4090", nil)}, "a100-80gb", nil, "no card"},
		"no sites":                              {nil, "a100-80gb", nil, "online"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := newPools().place(tc.sites, request{sku: sku(t, tc.sku), image: "host", diskGiB: 10})
			if tc.want == nil {
				var p *models.Problem
				if !errors.As(err, &p) || p.Code != models.NoCapacity || !strings.Contains(p.What, tc.why) || p.Next == "" {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range l.slices {
				got = append(got, s.card.device.UUID+"@"+string(rune('0'+s.at.Start)))
			}
			if !slices.Equal(got, tc.want) || !strings.Contains(l.why, tc.why) || !strings.HasSuffix(l.why, ".") {
				t.Errorf("%v, %q", got, l.why)
			}
		})
	}
}

// What is usually asked for decides: where requests for whole nodes are common, a
// single card is taken from a node that is broken already.
func TestPlaceLearns(t *testing.T) {
	pools := newPools()
	sites := func() []site {
		return []site{on("a", "h100-80gb", nil, nil, nil, nil, nil, nil, nil, nil), on("b", "h100-80gb", nil, nil, nil, nil, nil, nil, nil, nil),
			on("c", "h100-80gb", []gpu.Placement{at(gpu.Whole, 0, 8)}, nil, nil, nil, nil, nil, nil, nil)}
	}
	for range 128 {
		pools.learn(sku(t, "h100-80gb.x8"))
		pools.learn(sku(t, "h100-80gb"))
	}
	place := func() string {
		t.Helper()
		l, err := pools.place(sites(), request{sku: sku(t, "h100-80gb")})
		if err != nil {
			t.Fatal(err)
		}
		return l.site.node.Name
	}
	for range 3 {
		if got := place(); got != "c" {
			t.Errorf("on %s, a node that was whole", got)
		}
	}
}

// linkedAs gives the cards of a site their places: "1.0" is NVLink group 1 on NUMA node 0.
func linkedAs(s site, places ...string) site {
	for i, p := range places {
		s.cards[i].device.LinkGroup, s.cards[i].device.NUMANode = int(p[0]-'0'), int(p[2]-'0')
	}
	return s
}

func TestPlaceTogether(t *testing.T) {
	whole := []gpu.Placement{at(gpu.Whole, 0, 8)}
	eight := []string{"1.0", "1.0", "1.0", "1.0", "1.1", "1.1", "1.1", "1.1"}
	for name, tc := range map[string]struct {
		site site
		sku  string
		want []string
		why  string
	}{
		"on one NUMA node":                   {linkedAs(on("a", "h100-80gb", nil, whole, whole, nil, nil, nil, nil, whole), eight...), "h100-80gb.x2", []string{"a0", "a3"}, "linked by NVLink"},
		"else within the group":              {linkedAs(on("a", "h100-80gb", nil, whole, whole, nil, nil, nil, nil, whole), eight...), "h100-80gb.x4", []string{"a0", "a3", "a4", "a5"}, "linked by NVLink"},
		"never over two groups":              {linkedAs(on("a", "h100-80gb", nil, nil, nil, nil), "1.0", "1.0", "2.1", "2.1"), "h100-80gb.x3", nil, "needs 3 different cards that work together on one node, and the best has 2 with room"},
		"the group with least room beyond":   {linkedAs(on("a", "h100-80gb", nil, nil, nil, nil, whole, nil), "1.0", "1.0", "1.0", "2.0", "2.0", "2.0"), "h100-80gb.x2", []string{"a3", "a5"}, "linked by NVLink"},
		"cards without NVLink on one socket": {linkedAs(on("a", "rtx4090", nil, nil, nil), "0.0", "0.1", "0.1"), "rtx4090.x2", []string{"a1", "a2"}, "2 different cards"},
		"or on both":                         {linkedAs(on("a", "rtx4090", nil, nil, nil), "0.0", "0.1", "0.1"), "rtx4090.x3", []string{"a0", "a1", "a2"}, "3 different cards"},
		"slices have no NVLink":              {linkedAs(on("a", "h100-80gb", nil, nil), "1.0", "2.0"), "h100-80gb.1g.10gb.x2", []string{"a0", "a1"}, "2 different cards"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := newPools().place([]site{tc.site}, request{sku: sku(t, tc.sku)})
			var got []string
			for _, s := range l.slices {
				got = append(got, s.card.device.UUID)
			}
			slices.Sort(got)
			text := l.why
			if err != nil {
				text = err.Error()
			}
			if !slices.Equal(got, tc.want) || !strings.Contains(text, tc.why) {
				t.Errorf("%v: %s", got, text)
			}
		})
	}
}

// Somebody who only looks sees another fleet than who launches at the same moment;
// neither may be answered from what the other saw.
func TestPlaceFromSeveralGoroutines(t *testing.T) {
	whole := []gpu.Placement{at(gpu.Whole, 0, 8)}
	pools := newPools()
	for range 128 {
		pools.learn(sku(t, "h100-80gb.x4"))
	}
	var all sync.WaitGroup
	for i, want := range []string{"a", "b"} {
		sites := []site{on("a", "h100-80gb", nil, nil, nil, nil), on("b", "h100-80gb", nil, nil, nil, nil)}
		sites[i].cards[0].used = whole
		all.Go(func() {
			for range 2000 {
				l, err := pools.place(sites, request{sku: sku(t, "h100-80gb")})
				if err != nil || l.site.node.Name != want {
					t.Errorf("on %q (%v), want the broken node %q", l.site.node.Name, err, want)
					return
				}
			}
		})
	}
	all.Wait()
}

// TestPlaceProperty: what is placed lies on different cards of one node, whole
// cards in one NVLink group, never on what is taken; and the order in which the
// nodes are told is no matter.
func TestPlaceProperty(t *testing.T) {
	skus := []string{"h100-80gb", "h100-80gb.x2", "h100-80gb.x4", "h100-80gb.1g.10gb", "h100-80gb.1g.10gb.x2", "h100-80gb.3g.40gb", "h100-80gb.2g.20gb.x3"}
	fillings := [][]gpu.Placement{nil, nil, {at(gpu.Whole, 0, 8)}, {at("3g.40gb", 4, 4)}, {at("1g.10gb", 1, 1), at("2g.20gb", 4, 2)}}
	rapid.Check(t, func(r *rapid.T) {
		var sites []site
		for i := range rapid.IntRange(1, 4).Draw(r, "nodes") {
			used := rapid.SliceOfN(rapid.SampledFrom(fillings), 1, 6).Draw(r, "used")
			s := on(string(rune('a'+i)), "h100-80gb", used...)
			for j := range s.cards {
				s.cards[j].device.LinkGroup, s.cards[j].device.NUMANode = rapid.IntRange(1, 2).Draw(r, "group"), rapid.IntRange(0, 1).Draw(r, "numa")
			}
			sites = append(sites, s)
		}
		one, other := newPools(), newPools()
		for range rapid.SampledFrom([]int{0, 70}).Draw(r, "asked") {
			past := sku(t, rapid.SampledFrom(skus).Draw(r, "past"))
			one.learn(past)
			other.learn(past)
		}
		want := request{sku: sku(t, rapid.SampledFrom(skus).Draw(r, "sku"))}
		l, err := one.place(sites, want)
		again, errAgain := other.place(rapid.Permutation(sites).Draw(r, "order"), want)
		where := func(l landing) (out []string) {
			for _, s := range l.slices {
				out = append(out, fmt.Sprint(s.card.device.UUID, s.at))
			}
			return out
		}
		if (err == nil) != (errAgain == nil) || !slices.Equal(where(l), where(again)) || l.why != again.why {
			r.Fatalf("%v %q %v; in another order %v %q %v", where(l), l.why, err, where(again), again.why, errAgain)
		}
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, s := range l.slices {
			if seen[s.card.device.UUID] || s.card.device.UUID[:1] != l.site.node.Name {
				r.Fatalf("%v: a card twice, or of another node than %s", where(l), l.site.node.Name)
			}
			seen[s.card.device.UUID] = true
			if err := s.card.model.CheckLayout(append(slices.Clone(s.card.used), s.at)); err != nil {
				r.Fatal(err)
			}
			if s.at.Profile == gpu.Whole && s.card.device.LinkGroup != l.slices[0].card.device.LinkGroup {
				r.Fatalf("%v: in two NVLink groups", where(l))
			}
		}
		if len(l.slices) != want.sku.Count || l.why == "" {
			r.Fatalf("%d of %d, %q", len(l.slices), want.sku.Count, l.why)
		}
	})
}

func TestAlternatives(t *testing.T) {
	sites := []site{on("a", "a100-80gb", []gpu.Placement{at("3g.40gb", 0, 4)}), on("b", "rtx4090", nil)}
	got := alternatives(sites, sku(t, "a100-80gb"))
	if len(got) == 0 || got[0] != "a100-80gb.3g.40gb" || !slices.Contains(got, "rtx4090") {
		t.Errorf("%v", got)
	}
}

func TestGroups(t *testing.T) {
	for _, tc := range []struct {
		room []int
		n    int
		want int
	}{
		{[]int{1, 1, 1}, 1, 3}, {[]int{1, 1, 1}, 2, 1}, {[]int{7, 1}, 2, 1}, {[]int{7, 7}, 2, 7}, {[]int{2, 2, 2}, 2, 3}, {nil, 1, 0}, {[]int{5}, 2, 0},
	} {
		if got := groups(tc.room, tc.n); got != tc.want {
			t.Errorf("groups(%v, %d) = %d, want %d", tc.room, tc.n, got, tc.want)
		}
	}
}

// TestOfferedIsPlaceable: as many as are offered can be launched one after the
// other, whatever lies on the cards before, and then none.
func TestOfferedIsPlaceable(t *testing.T) {
	skus := sold([]site{on("a", "a100-80gb", nil), on("b", "a30-24gb", nil), on("c", "rtx4090", nil)})
	rapid.Check(t, func(r *rapid.T) {
		sites := []site{on("a", "a100-80gb", nil, nil), on("b", "a30-24gb", nil), on("c", "rtx4090", nil)}
		pools := newPools()
		put := func(l landing) {
			for i := range sites {
				for j := range sites[i].cards {
					for _, s := range l.slices {
						if sites[i].cards[j].device.UUID == s.card.device.UUID {
							sites[i].cards[j].used = append(sites[i].cards[j].used, s.at)
						}
					}
				}
			}
		}
		for range rapid.IntRange(0, 8).Draw(r, "before") {
			if l, err := pools.place(sites, request{sku: rapid.SampledFrom(skus).Draw(r, "other")}); err == nil {
				put(l)
			}
		}
		want := rapid.SampledFrom(skus).Draw(r, "sku")
		model, profile, err := want.Slice()
		if err != nil {
			r.Fatal(err)
		}
		offered := 0
		for _, s := range sites {
			n, _ := countFit(s, want, model, profile)
			offered += n
		}
		for i := range offered {
			l, err := pools.place(sites, request{sku: want})
			if err != nil {
				// The chooser keeps large slices possible, so it may strand one of
				// these that the count, which is of this SKU alone, could still pack.
				r.Fatalf("%s: %d of %d offered, then %v", want.ID, i, offered, err)
			}
			put(l)
			for _, s := range sites {
				for _, c := range s.cards {
					if err := c.model.CheckLayout(c.used); err != nil {
						r.Fatal(err)
					}
				}
			}
		}
		if _, err := pools.place(sites, request{sku: want}); err == nil {
			r.Fatalf("%s: more than the %d offered", want.ID, offered)
		}
	})
}

func TestMakeName(t *testing.T) {
	if a, b := makeName("ins_1", nil), makeName("ins_1", []string{makeName("ins_1", nil)}); a == b || !strings.HasSuffix(a, "-01") || !strings.HasSuffix(b, "-02") {
		t.Error(a, b)
	}
}

// BenchmarkPlace decides on one of 1,200 nodes of eight cards, of which some are
// sold; what a launch adds to this is the database.
//
//	go test ./fleet -run '^$' -bench Place
func BenchmarkPlace(b *testing.B) {
	whole, part := []gpu.Placement{at(gpu.Whole, 0, 8)}, []gpu.Placement{at("3g.40gb", 4, 4)}
	var sites []site
	for i := range 1200 {
		cards := make([][]gpu.Placement, 8)
		for j := range i % 9 {
			cards[j] = [][]gpu.Placement{whole, whole, part}[(i+j)%3]
		}
		s := on(fmt.Sprintf("node-%04d", i), "h100-80gb", cards...)
		sites = append(sites, linkedAs(s, "1.0", "1.0", "1.0", "1.0", "1.1", "1.1", "1.1", "1.1"))
	}
	for _, id := range []string{"h100-80gb.1g.10gb", "h100-80gb", "h100-80gb.x4", "h100-80gb.x8"} {
		b.Run(id, func(b *testing.B) {
			pools := newPools()
			for range 200 {
				pools.learn(sku(b, id))
			}
			for b.Loop() {
				if _, err := pools.place(sites, request{sku: sku(b, id)}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
