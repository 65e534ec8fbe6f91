package fleet_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"berth/models"
	"berth/models/store"
	"berth/models/store/storetest"
	"berth/money"
	"berth/wire"
)

// Announced, begun, over: renters are told, nothing new starts, what runs is
// stopped and charged to that moment, and starts again once the node is back.
func TestMaintenance(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		w := newWorld(t, st)
		b := w.join("kestrel", cards("rtx4090", "GPU-a", "GPU-b", "GPU-c")...)
		offers, err := w.fleet.Offers(w.ctx, "rtx4090", w.now)
		w.must(err)
		once := offers[0].PricePerHour.Ceil(w.bill.Config().HoldSeconds + 20)
		acc, poor := w.account("acc_a", 100*money.Unit), w.account("acc_b", once)
		runs, spends, rests := w.launch(w.order(acc, "rtx4090")), w.launch(w.order(poor, "rtx4090")), w.launch(w.order(acc, "rtx4090"))
		seen := []*wire.Observed{b.run(runs), b.run(spends)}
		b.end(b.run(rests), wire.ReasonExited, ptr(0))
		b.deliver()
		w.inState(rests, models.Stopped)
		b.count(30)

		from, until := w.now.Add(time.Hour), w.now.Add(3*time.Hour)
		for name, e := range map[string]error{
			"the past":    w.fleet.SetMaintenance(w.ctx, b.id, w.now.Add(-time.Minute), 0, w.now),
			"wrong order": w.fleet.SetMaintenance(w.ctx, b.id, until, from, w.now),
		} {
			if code(e) != "invalid" {
				t.Errorf("%s: %v", name, e)
			}
		}
		if e := w.fleet.SetMaintenance(w.ctx, "nod_none", from, 0, w.now); code(e) != "not_found" {
			t.Error(e)
		}
		w.must(w.fleet.SetMaintenance(w.ctx, b.id, from, until, w.now))
		if n := w.available("rtx4090"); n != 0 {
			t.Errorf("%d on sale", n)
		}
		if _, err := w.fleet.Start(w.ctx, acc, rests.ID, w.now); code(err) != "no_capacity" || !strings.Contains(err.Error(), "for maintenance") {
			t.Errorf("started: %v", err)
		}
		told := func(in models.Instance) int {
			events, err := w.fleet.Events(w.ctx, in.AccountID, in.ID, 0)
			w.must(err)
			return len(slices.DeleteFunc(events, func(e models.InstanceEvent) bool { return e.Kind != models.MaintenanceNotice }))
		}
		if v := w.inState(runs, models.Running); told(runs) != 1 || told(rests) != 0 || !strings.Contains(v.Notice, "It is started again at") {
			t.Errorf("told %d and %d times: %q", told(runs), told(rests), v.Notice)
		}
		w.must(w.fleet.Sweep(w.ctx, w.now))
		w.inState(runs, models.Running) // not before its time

		w.now = from
		w.must(w.fleet.Sweep(w.ctx, w.now))
		for i, in := range []models.Instance{runs, spends} {
			w.inState(in, models.Stopping)
			b.end(seen[i], wire.ReasonAsked, nil)
		}
		b.deliver()
		for _, in := range []models.Instance{runs, spends} {
			if v := w.inState(in, models.Stopped); v.Reason != "maintenance" || !strings.Contains(v.Detail, "has begun") || v.Span.State != models.SpanClosed {
				t.Errorf("%s: %s", v.Reason, v.Detail)
			}
		}
		b.disconnect()
		w.now = until
		w.must(w.fleet.Sweep(w.ctx, w.now)) // its time is over, but it is not back
		w.inState(runs, models.Stopped)
		w.pass(time.Hour)
		b.connect()
		w.must(w.fleet.Sweep(w.ctx, w.now))
		if v := w.inState(runs, models.Placing); v.Run != 2 || v.Notice != "" {
			t.Errorf("run %d, %q", v.Run, v.Notice)
		}
		if v := w.inState(spends, models.Stopped); v.Reason != "maintenance_over" || !strings.Contains(v.Detail, "not started again: The wallet has") {
			t.Errorf("%s: %s", v.Reason, v.Detail)
		}
		w.inState(rests, models.Stopped) // not by maintenance
		if n := w.available("rtx4090"); n != 2 {
			t.Errorf("%d on sale afterwards", n)
		}

		// Called off before it begins.
		w.must(w.fleet.SetMaintenance(w.ctx, b.id, w.now.Add(time.Hour), 0, w.now))
		w.must(w.fleet.EndMaintenance(w.ctx, b.id, w.now))
		if v := w.inState(runs, models.Placing); told(runs) != 3 || v.Notice != "" {
			t.Errorf("told %d times, %q", told(runs), v.Notice)
		}
		w.sound(acc, poor)
		if problems, err := w.bill.Verify(w.ctx); err != nil || len(problems) > 0 {
			t.Errorf("%v %v", problems, err)
		}
	})
}
