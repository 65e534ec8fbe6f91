package fleet_test

import (
	"strings"
	"testing"
	"time"

	"berth/models"
	"berth/models/store"
	"berth/models/store/storetest"
	"berth/money"
)

func TestCordon(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		w := newWorld(t, st)
		b := w.join("kestrel", cards("rtx4090", "GPU-a", "GPU-b")...)
		acc := w.account("acc_a", 100*money.Unit)
		runs, stops := w.launch(w.order(acc, "rtx4090")), w.launch(w.order(acc, "rtx4090"))
		b.run(runs)
		o := b.run(stops)
		w.must(second(w.fleet.Stop(w.ctx, acc, stops.ID, w.now)))
		b.end(o, "asked", nil)
		b.deliver()
		if w.available("rtx4090") != 1 {
			t.Fatalf("%d free", w.available("rtx4090"))
		}
		w.must(w.fleet.Cordon(w.ctx, b.id, true))
		if n := w.available("rtx4090"); n != 0 {
			t.Errorf("%d on sale on a cordoned node", n)
		}
		if _, err := w.fleet.Launch(w.ctx, w.order(acc, "rtx4090"), w.now); code(err) != "no_capacity" {
			t.Errorf("launched: %v", err)
		}
		if _, err := w.fleet.Start(w.ctx, acc, stops.ID, w.now); code(err) != "no_capacity" || !strings.Contains(err.Error(), "closed to new starts, for maintenance") {
			t.Errorf("started: %v", err)
		}
		b.count(5)
		if in := w.inState(runs, models.Running); in.Span.Cursor != 5 {
			t.Errorf("what runs there was metered to %d", in.Span.Cursor)
		}
		w.must(second(w.fleet.Restart(w.ctx, acc, runs.ID, w.now))) // it keeps its place
		w.must(w.fleet.Cordon(w.ctx, b.id, false))
		w.must(second(w.fleet.Start(w.ctx, acc, stops.ID, w.now)))
		w.sound(acc)
		if err := w.fleet.Cordon(w.ctx, "nod_none", true); code(err) != "not_found" {
			t.Error(err)
		}
	})
}

// A machine that burned: what was on it ends, is charged to what it confirmed,
// and gives back what it held.
func TestRetire(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		w := newWorld(t, st)
		b := w.join("kestrel", cards("rtx4090", "GPU-a", "GPU-b", "GPU-c", "GPU-d")...)
		acc := w.account("acc_a", 100*money.Unit)
		runs, starts, ends, stopped := w.launch(w.order(acc, "rtx4090")), w.launch(w.order(acc, "rtx4090")), w.launch(w.order(acc, "rtx4090")), w.launch(w.order(acc, "rtx4090"))
		b.run(runs)
		b.run(ends)
		o := b.run(stopped)
		b.count(10)
		w.must(second(w.fleet.Stop(w.ctx, acc, stopped.ID, w.now)))
		b.end(o, "asked", nil)
		b.deliver()
		if _, err := w.fleet.Retire(w.ctx, b.id, w.now); code(err) != "conflict" {
			t.Fatalf("a node that is connected: %v", err)
		}
		w.must(second(w.fleet.Terminate(w.ctx, acc, ends.ID, w.now)))
		b.disconnect()
		w.pass(time.Hour)
		n, err := w.fleet.Retire(w.ctx, b.id, w.now)
		if err != nil || n != 4 {
			t.Fatalf("%d ended, %v", n, err)
		}
		for _, in := range []models.Instance{runs, starts, ends, stopped} {
			if v := w.inState(in, models.Terminated); v.NodeName != "kestrel (retired)" || len(v.Slices) != 0 {
				t.Errorf("%s is on %s with %v", in.Name, v.NodeName, v.Slices)
			}
		}
		for _, in := range []models.Instance{runs, ends} {
			if u := w.span(in, 1); u.Cursor != 10 || u.State != models.SpanClosed {
				t.Errorf("%s was metered to %d: %s", in.Name, u.Cursor, u.State)
			}
		}
		rate := money.Rate(runs.PricePerHour)
		if l := w.wallet(acc); l.Held != 0 || l.Accrued != 0 || l.Balance != 100*money.Unit-3*rate.For(10) {
			t.Errorf("wallet %+v", l)
		}
		w.sound(acc)

		// Nobody speaks for it any more.
		for what, err := range map[string]error{
			"key": second(w.fleet.NodeKey(w.ctx, b.id)), "state": second(w.fleet.NodeConnected(w.ctx, b.id, b.state(), w.now)),
			"tick": w.fleet.NodeTick(w.ctx, b.id, b.nextTick(), w.now), "cordon": w.fleet.Cordon(w.ctx, b.id, true), "retire": second(w.fleet.Retire(w.ctx, b.id, w.now)),
		} {
			if code(err) != "not_found" {
				t.Errorf("%s: %v", what, err)
			}
		}
		nodes, err := w.fleet.Nodes(w.ctx)
		if err != nil || len(nodes) != 0 {
			t.Errorf("%v, %v", nodes, err)
		}

		// The machine was mended: it joins anew under its name, with its cards, and
		// what still ran there is explained by nobody.
		again := w.join("kestrel", cards("rtx4090", "GPU-a", "GPU-b", "GPU-c", "GPU-d")...)
		if w.available("rtx4090") != 4 || len(again.desired().Instances) != 0 {
			t.Errorf("%d free, wanted %+v", w.available("rtx4090"), again.desired())
		}
		if nodes, err = w.fleet.Nodes(w.ctx); err != nil || len(nodes) != 1 || nodes[0].Name != "kestrel" || len(nodes[0].Devices) != 4 {
			t.Errorf("%+v, %v", nodes, err)
		}
		again.disconnect()
		w.must(second(w.fleet.Retire(w.ctx, again.id, w.now))) // a second of that name
		if problems, err := w.bill.Verify(w.ctx); err != nil || len(problems) > 0 {
			t.Errorf("%v %v", problems, err)
		}
	})
}
