package fleet_test

import (
	"slices"
	"strings"
	"testing"

	"berth/gpu"
	"berth/models/store"
	"berth/models/store/storetest"
	"berth/money"
)

// A card whose driver has another table than Berth is sold by the driver's.
func TestCardsOwnTable(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		w := newWorld(t, st)
		acc := w.account("acc_a", 100*money.Unit)
		m, err := gpu.Lookup("a100-80gb")
		w.must(err)
		table := slices.Clone(m.Profiles)
		for i, p := range table {
			switch p.Name {
			case "2g.20gb": // one start less, and less memory
				table[i].Starts, table[i].MemoryMiB = []int{0, 4}, 19000
			case "1g.20gb": // twice as large
				table[i].Starts, table[i].Units, table[i].MaxInstances = []int{4}, 4, 1
			}
		}
		table = slices.DeleteFunc(table, func(p gpu.Profile) bool { return p.Name == "1g.10gb" })
		table = append(table, gpu.Profile{Name: strings.Repeat("x", 100)}, gpu.Profile{Name: "5g", Units: 1 << 20, Starts: []int{-1, 1 << 30}})
		own := cards("a100-80gb", "GPU-own")
		own[0].Profiles = table
		w.join("kestrel", own...)
		for sku, want := range map[string]int{"a100-80gb.2g.20gb": 2, "a100-80gb.1g.20gb": 1, "a100-80gb.3g.40gb": 2, "a100-80gb": 1} {
			if got := w.available(sku); got != want {
				t.Errorf("%d of %s are offered, want %d", got, sku, want)
			}
		}
		if _, err := w.fleet.Launch(w.ctx, w.order(acc, "a100-80gb.1g.10gb"), w.now); code(err) != "no_capacity" {
			t.Errorf("a slice that the card does not have: %v", err)
		}
		big := w.instance(w.launch(w.order(acc, "a100-80gb.1g.20gb"))).Slices[0]
		if p := big.Placement(); p.Start != 4 || p.Size != 4 {
			t.Errorf("1g.20gb lies at %+v", p)
		}
		two := w.instance(w.launch(w.order(acc, "a100-80gb.2g.20gb"))).Slices[0]
		if p := two.Placement(); p.Start != 0 || p.Size != 2 || two.Lease.MemoryMiB != 19000 {
			t.Errorf("2g.20gb lies at %+v with %d MiB", p, two.Lease.MemoryMiB)
		}
		if _, err := w.fleet.Launch(w.ctx, w.order(acc, "a100-80gb.2g.20gb"), w.now); code(err) != "no_capacity" {
			t.Errorf("at a start that the driver does not have: %v", err)
		}
		if _, err := w.fleet.PlanLayout(w.ctx, "GPU-own", []string{"2g.20gb", "2g.20gb", "2g.20gb"}); code(err) == "" {
			t.Error("three at two starts are planned")
		}
		// A card beside it without a table of its own is sold by Berth's.
		w.join("merlin", cards("a100-80gb", "GPU-other")...)
		if got := w.available("a100-80gb.1g.10gb"); got != 7 {
			t.Errorf("%d of 1g.10gb are offered, want the other card's 7", got)
		}
		w.sound(acc)
	})
}
