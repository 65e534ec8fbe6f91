package fleet_test

import (
	"strings"
	"testing"
	"time"

	"berth/models"
	"berth/models/store"
	"berth/models/store/storetest"
	"berth/money"
	"berth/wire"
)

// A host restarts under three leases: what ran comes back on the same slices, as
// a run of its own, and nobody gets its place meanwhile.
func TestNodeRestarts(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		w := newWorld(t, st)
		b := w.join("kestrel", cards("a100-80gb", "GPU-a")...)
		offers, err := w.fleet.Offers(w.ctx, "a100-80gb.1g.10gb", w.now)
		w.must(err)
		enough := offers[0].PricePerHour.Ceil(w.bill.Config().HoldSeconds + 20) // for one start, and 20 s
		acc, poor := w.account("acc_a", 100*money.Unit), w.account("acc_b", enough)
		first, second, third := w.launch(w.order(acc, "a100-80gb.3g.40gb")), w.launch(w.order(acc, "a100-80gb.2g.20gb")), w.launch(w.order(poor, "a100-80gb.1g.10gb"))
		all := []models.Instance{first, second, third}
		var seen []*wire.Observed
		for _, in := range all {
			seen = append(seen, b.run(in))
		}
		b.count(40)
		free := w.available("a100-80gb.1g.10gb")
		reboot := func(again ...*wire.Observed) {
			b.disconnect()
			w.pass(time.Minute)
			for _, o := range again {
				o.Seconds = 40
				o.Phase, o.Reason, o.Slices = wire.PhaseStopped, wire.ReasonRebooted, nil
				b.write(o)
			}
			b.connect()
		}
		// The poor one has used up what it had: it was near its end anyway.
		reboot(seen...)
		for i, in := range all[:2] {
			v := w.inState(in, models.Placing)
			if v.Run != 2 || len(v.Slices) != 1 || v.Slices[0].Placement() != w.instance(all[i]).Slices[0].Placement() || !strings.Contains(v.Detail, "started again on the same slices") {
				t.Errorf("%s: run %d on %v: %s", v.Name, v.Run, v.Slices, v.Detail)
			}
			if u := w.span(in, 1); u.State != models.SpanClosed || u.Cursor != 40 {
				t.Errorf("the run before was metered to %d: %s", u.Cursor, u.State)
			}
		}
		if v := w.inState(third, models.Failed); !strings.Contains(v.Detail, "Its node restarted under it.") || !strings.Contains(v.Detail, "It was not started again: The wallet has") || len(v.Slices) != 0 {
			t.Errorf("%s, holds %v", v.Detail, v.Slices)
		}
		if n := w.available("a100-80gb.1g.10gb"); n != free+1 {
			t.Errorf("%d places for a 1g, want %d and that of the poor one", n, free)
		}
		for i, in := range all[:2] {
			if want := b.wanted(in); want == nil || want.Run != 2 || want.Want != wire.WantRunning || len(want.Slices) != 1 || want.PaidSeconds < 60 {
				t.Errorf("the node is told %+v", want)
			}
			seen[i] = b.run(in)
		}
		b.count(5)
		for _, in := range all[:2] {
			if u := w.span(w.inState(in, models.Running).Instance, 2); u.Cursor != 5 {
				t.Errorf("the second run was metered to %d", u.Cursor)
			}
		}
		// Again right away: it may be they who bring the host down.
		reboot(seen[:2]...)
		for _, in := range all[:2] {
			if v := w.inState(in, models.Failed); !strings.Contains(v.Detail, "so it was not this time") || len(v.Slices) != 0 {
				t.Errorf("%s", v.Detail)
			}
		}
		w.sound(acc, poor)
		if problems, err := w.bill.Verify(w.ctx); err != nil || len(problems) > 0 {
			t.Errorf("%v %v", problems, err)
		}
	})
}
