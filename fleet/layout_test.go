package fleet_test

import (
	"slices"
	"strings"
	"testing"

	"berth/gpu"
	"berth/models"
	"berth/models/store"
	"berth/models/store/storetest"
	"berth/money"
	"berth/wire"
)

// B1, B3: an operator divides a card. It is planned whole before anything is
// touched, keeps what is in use or names who is in the way, and the card is then
// sold in these slices only.
func TestLayout(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		w := newWorld(t, st)
		b := w.join("kestrel", cards("a100-80gb", "GPU-a")...)
		acc := w.account("acc_a", 100*money.Unit)
		runs := w.launch(w.order(acc, "a100-80gb.1g.10gb"))
		b.run(runs)
		place := w.instance(runs).Slices[0].Placement()
		refuse := func(name, want string, saying string, profiles ...string) {
			t.Helper()
			before := b.desired().Generation
			_, planned := w.fleet.PlanLayout(w.ctx, "GPU-a", profiles)
			_, set := w.fleet.SetLayout(w.ctx, "GPU-a", profiles)
			for _, err := range []error{planned, set} {
				p, ok := err.(*models.Problem)
				if !ok || code(err) != want || !strings.Contains(p.What+p.Fields["profiles"], saying) {
					t.Errorf("%s: %v %+v", name, err, p)
				}
			}
			if b.desired().Generation != before {
				t.Errorf("%s: the node was told something", name)
			}
		}
		refuse("more than there is", "invalid", "needs 9 memory units", "3g.40gb", "2g.20gb", "2g.20gb", "1g.10gb")
		refuse("unknown", "invalid", `"9g.90gb"`, "9g.90gb")
		refuse("in use", "conflict", "of instance "+runs.Name, "4g.40gb", "3g.40gb")
		if _, err := w.fleet.PlanLayout(w.ctx, "GPU-none", nil); code(err) != "not_found" {
			t.Error(err)
		}

		plan, err := w.fleet.SetLayout(w.ctx, "GPU-a", []string{"1g.10gb", "2g.20gb", "3g.40gb"})
		w.must(err)
		if len(plan.Keep) != 1 || plan.Keep[0].Placement != place || len(plan.Make) != 2 || len(plan.Remove) != 0 || len(plan.Layout) != 3 {
			t.Fatalf("%+v", plan)
		}
		d := b.desired()
		if len(d.Layouts) != 1 || d.Layouts[0].DeviceUUID != "GPU-a" || !slices.Equal(d.Layouts[0].Placements, plan.Layout) {
			t.Fatalf("the node is told %+v", d.Layouts)
		}
		free := func(want map[string]int) {
			t.Helper()
			for sku, n := range want {
				if got := w.available(sku); got != n {
					t.Errorf("%d of %s free, want %d", got, sku, n)
				}
			}
		}
		sold := map[string]int{"a100-80gb.1g.10gb": 0, "a100-80gb.2g.20gb": 1, "a100-80gb.3g.40gb": 1}
		free(sold)
		// What lies ready is reported, and is nobody else's.
		b.devices[0].Slices = plan.Layout
		b.connect()
		free(sold)
		two := w.launch(w.order(acc, "a100-80gb.2g.20gb"))
		if got := w.instance(two).Slices[0].Placement(); !slices.Contains(plan.Layout, got) {
			t.Errorf("%s is not one of %v", got, plan.Layout)
		}
		if _, err := w.fleet.Launch(w.ctx, w.order(acc, "a100-80gb.1g.10gb"), w.now); code(err) != "no_capacity" {
			t.Errorf("a slice that the layout lacks: %v", err)
		}

		// Asked for again while the node is still at the layout before.
		b.devices[0].Slices = []gpu.Placement{{Profile: "4g.40gb", Start: 0, Size: 4}}
		b.connect()
		again, err := w.fleet.PlanLayout(w.ctx, "GPU-a", []string{"1g.10gb", "2g.20gb", "3g.40gb"})
		if err != nil || len(again.Make)+len(again.Remove) != 0 {
			t.Errorf("%+v, %v", again.Plan, err)
		}
		b.devices[0].Slices = plan.Layout
		b.connect()

		// Another layout, with what is in use now; then as is asked for.
		refuse("both in use", "conflict", "of instance "+two.Name, "1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb")
		plan, err = w.fleet.PlanLayout(w.ctx, "GPU-a", nil)
		w.must(err)
		if len(plan.Keep) != 2 || len(plan.Remove) != 1 || plan.Remove[0].Profile != "3g.40gb" || len(plan.Layout) != 0 {
			t.Errorf("%+v", plan)
		}
		w.must(second(w.fleet.SetLayout(w.ctx, "GPU-a", nil)))
		if d := b.desired(); len(d.Layouts) != 0 {
			t.Errorf("the node is told %+v", d.Layouts)
		}
		b.devices[0].Slices = []gpu.Placement{}
		b.connect()
		if w.available("a100-80gb.3g.40gb") != 1 || w.available("a100-80gb.1g.10gb") == 0 {
			t.Error("not sold as is asked for again")
		}
		w.sound(acc)
	})
}

// Somebody's slice on a card is in the way of a layout and never taken for idle.
func TestLayoutBesideAStranger(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		w := newWorld(t, st)
		b := w.join("kestrel", cards("a100-80gb", "GPU-a")...)
		b.has["x"] = &wire.Observed{ID: "x", Run: 1, Phase: wire.PhaseRunning, Slices: []wire.Slice{{DeviceUUID: "GPU-a", Placement: gpu.Placement{Profile: "3g.40gb", Start: 4, Size: 4}}}}
		b.connect()
		_, err := w.fleet.SetLayout(w.ctx, "GPU-a", []string{"1g.10gb", "1g.10gb"})
		if code(err) != "conflict" || !strings.Contains(err.Error(), "somebody outside Berth") {
			t.Errorf("%v", err)
		}
		plan, err := w.fleet.SetLayout(w.ctx, "GPU-a", []string{"3g.40gb", "2g.20gb"})
		w.must(err)
		if len(plan.Make) != 1 || plan.Make[0].Profile != "2g.20gb" {
			t.Errorf("%+v", plan)
		}
		w.join("gannet", cards("rtx4090", "GPU-b")...)
		if _, err := w.fleet.SetLayout(w.ctx, "GPU-b", []string{"1g.10gb"}); code(err) != "invalid" {
			t.Errorf("a card that cannot be divided: %v", err)
		}
	})
}
