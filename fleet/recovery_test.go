package fleet_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"berth/fleet"
	"berth/gpu"
	"berth/models"
	"berth/models/store"
	"berth/models/store/storetest"
	"berth/money"
	"berth/wire"
)

// TestSeenThenGone is C2: what a node had and has no trace of failed at the first
// inventory; what it never had is waited for.
func TestSeenThenGone(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		w := newWorld(t, st)
		b := w.join("gannet", cards("a100-80gb", "GPU-a")...)
		acc := w.account("acc_a", 10*money.Unit)
		running, starting, unheard := w.launch(w.order(acc, "a100-80gb.1g.10gb")), w.launch(w.order(acc, "a100-80gb.1g.10gb")), w.launch(w.order(acc, "a100-80gb.1g.10gb"))
		b.run(running)
		b.take(starting, wire.PhaseStarting)
		b.deliver()
		b.count(10)
		b.disconnect()
		clear(b.has)
		w.pass(5 * time.Second)
		b.connect()
		for _, in := range []models.Instance{running, starting} {
			v := w.inState(in, models.Failed)
			if v.Reason != "lost" || len(v.Slices) != 0 || !strings.Contains(v.Detail, "no trace") {
				t.Errorf("%s: %s, slices %+v", v.Reason, v.Detail, v.Slices)
			}
		}
		if u := w.span(running, 1); u.State != models.SpanClosed || u.Cursor != 10 {
			t.Errorf("span %+v", u)
		}
		if v := w.inState(unheard, models.Placing); len(v.Slices) != 1 {
			t.Errorf("slices %+v", v.Slices)
		}
		b.run(unheard)
		w.inState(unheard, models.Running)
		w.sound(acc)
	})
}

// TestEventsBeforeConclusions: an inventory that lacks an instance proves nothing
// while the events that explain it are on their way, and an old one never does.
func TestEventsBeforeConclusions(t *testing.T) {
	w := newWorld(t, storetest.SQLite(t))
	b := w.join("gannet", cards("a100-80gb", "GPU-a")...)
	acc := w.account("acc_a", 10*money.Unit)
	in := w.launch(w.order(acc, "a100-80gb.1g.10gb"))
	o := b.run(in)
	b.count(10)
	b.disconnect()
	w.pass(20 * time.Second)
	o.Seconds += 20
	b.end(o, wire.ReasonExited, ptr(0))
	delete(b.has, o.ID) // and the node forgot it
	cursor, err := w.fleet.NodeConnected(w.ctx, b.id, b.state(), w.now)
	w.must(err)
	w.inState(in, models.Running)
	b.sent = int(cursor)
	b.deliver()
	if v := w.inState(in, models.Stopped); v.Span.Cursor != 30 {
		t.Errorf("%d s charged, want 30", v.Span.Cursor)
	}

	early := b.state() // taken before the next one is heard of
	next := w.launch(w.order(acc, "a100-80gb.1g.10gb"))
	b.run(next)
	w.must(w.fleet.NodeState(w.ctx, b.id, early, w.now))
	w.inState(next, models.Running)
}

// TestPortalAwayWhileItRan: started, ran and ended with nobody listening: exactly
// its seconds are charged, and not the time before or after.
func TestPortalAwayWhileItRan(t *testing.T) {
	w := newWorld(t, storetest.SQLite(t))
	b := w.join("gannet", cards("a100-80gb", "GPU-a")...)
	acc := w.account("acc_a", 10*money.Unit)
	over, on := w.launch(w.order(acc, "a100-80gb.1g.10gb")), w.launch(w.order(acc, "a100-80gb.1g.10gb"))
	b.disconnect()
	w.pass(30 * time.Second)
	o, still := b.take(over, wire.PhaseRunning), b.take(on, wire.PhaseRunning)
	w.pass(50 * time.Second)
	o.Seconds, still.Seconds = 50, 50
	b.end(o, wire.ReasonExited, ptr(0))
	w.pass(10 * time.Second)
	still.Seconds = 60
	b.connect()
	if v := w.inState(over, models.Stopped); v.Span.Charged != over.PricePerHour.For(50) {
		t.Errorf("charged for %d s", v.Span.Cursor)
	}
	v := w.inState(on, models.Running)
	if v.Span.Cursor != 60 || v.Span.StartAt != w.now.Add(-60*time.Second) || v.RunningAt != v.Span.StartAt {
		t.Errorf("span %+v, running at %v", v.Span, v.RunningAt.Time())
	}
	b.count(40)
	if u := w.span(on, 1); u.Cursor != 100 {
		t.Errorf("%d s, want 100", u.Cursor)
	}
}

// TestSplitLeavesNoZombie is C7: terminated while the node was away; it comes
// back running, is told that it is to be gone, and the card is not sold before.
func TestSplitLeavesNoZombie(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		w := newWorld(t, st)
		b := w.join("gannet", cards("a100-80gb", "GPU-a")...)
		acc := w.account("acc_a", 10*money.Unit)
		in := w.launch(w.order(acc, "a100-80gb"))
		o := b.run(in)
		b.count(60)
		b.disconnect()
		w.pass(2 * time.Minute)
		_, err := w.fleet.Terminate(w.ctx, acc, in.ID, w.now)
		w.must(err)
		w.pass(8 * time.Minute)
		o.Seconds += 600
		b.connect()
		w.inState(in, models.Stopping)
		if n := w.available("a100-80gb"); n != 0 {
			t.Error("the card is sold while it is held")
		}
		if d := b.wanted(in); d.Want != wire.WantGone {
			t.Fatalf("desired %+v", d)
		}
		b.gone(o)
		b.deliver()
		v := w.inState(in, models.Terminated)
		if v.Span.Cursor != 180 || v.Span.Charged != in.PricePerHour.For(180) {
			t.Errorf("%d s charged, want those up to the click: 180", v.Span.Cursor)
		}
		if n := w.available("a100-80gb"); n != 1 {
			t.Error("the card is not sold again")
		}
		// An instance nobody knows: in no desired state, so the node ends it.
		b.has["ins_ghost"] = &wire.Observed{ID: "ins_ghost", Run: 1, Phase: wire.PhaseRunning, Seconds: 5,
			Slices: []wire.Slice{{DeviceUUID: "GPU-a", Placement: gpu.Placement{Profile: "3g.40gb", Start: 4, Size: 4}}}}
		b.answer()
		if n := w.available("a100-80gb"); n != 0 {
			t.Error("the card is sold whole while a slice nobody leased lies on it")
		}
		if n := w.available("a100-80gb.1g.10gb"); n != 4 {
			t.Errorf("%d small slices beside it, want 4", n)
		}
		nodes, err := w.fleet.Nodes(w.ctx)
		w.must(err)
		if f := nodes[0].Devices[0].Foreign; len(f) != 1 || f[0].Start != 4 {
			t.Errorf("foreign slices %+v", f)
		}
		// Holding the whole card, which shows among its slices nowhere.
		b.has["ins_ghost"].Slices[0].Placement = gpu.Placement{Profile: gpu.Whole, Size: 8}
		b.answer()
		if n := w.available("a100-80gb.1g.10gb"); n != 0 {
			t.Errorf("%d small slices on a card that is held whole", n)
		}
		delete(b.has, "ins_ghost")
		b.answer()
		if n := w.available("a100-80gb"); n != 1 {
			t.Error("the card is not sold again")
		}
	})
}

// TestSilentNodeIsLost: after ten minutes that the portal was there to hear, the
// charge ends with the last confirmed second; when the node comes back its
// leases are let go, and what still runs there is ended.
func TestSilentNodeIsLost(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		w := newWorld(t, st)
		b := w.join("gannet", cards("a100-80gb", "GPU-a")...)
		acc := w.account("acc_a", 10*money.Unit)
		in, placing := w.launch(w.order(acc, "a100-80gb.1g.10gb")), w.launch(w.order(acc, "a100-80gb.1g.10gb"))
		o := b.run(in)
		b.count(100)
		w.pass(time.Minute)
		w.must(w.fleet.Sweep(w.ctx, w.now))
		if n := w.available("a100-80gb.1g.10gb"); n != 0 {
			t.Errorf("%d sold on a node that has been silent for a minute", n)
		}
		w.inState(in, models.Running)

		// A portal that was away itself gives the node its time.
		young := fleet.New(st, w.bill, fleet.Config{StartedAt: w.now.Add(9*time.Minute + 30*time.Second)}, quiet())
		w.pass(10 * time.Minute)
		w.must(young.Sweep(w.ctx, w.now))
		w.inState(in, models.Running)

		// So does one whose host slept, or whose clock was set.
		w.must(w.fleet.Sweep(w.ctx, w.now))
		w.inState(in, models.Running)
		w.listen(10 * time.Minute)
		v := w.inState(in, models.Lost)
		if v.Reason != "lost" || v.Span.State != models.SpanClosed || v.Span.Cursor != 100 || len(v.Slices) != 1 || v.Want != models.WantStopped {
			t.Errorf("%+v", v)
		}
		w.inState(placing, models.Lost)
		if l := w.wallet(acc); l.Held != 0 {
			t.Errorf("held %d", l.Held)
		}
		w.must(w.fleet.Sweep(w.ctx, w.now)) // again: nothing to do

		o.Seconds += 1260
		b.connect()
		w.inState(in, models.Lost)
		w.inState(placing, models.Stopped)
		if d := b.wanted(in); d.Want != wire.WantStopped {
			t.Fatalf("desired %+v", d)
		}
		b.end(o, wire.ReasonAsked, nil)
		b.deliver()
		v = w.inState(in, models.Stopped)
		if v.Span.Cursor != 100 || len(v.Slices) != 0 {
			t.Errorf("%+v", v)
		}
		w.sound(acc)
	})
}

// TestLostWhileRestarting: with the new run ends what was left open of the old one.
func TestLostWhileRestarting(t *testing.T) {
	w := newWorld(t, storetest.SQLite(t))
	b := w.join("gannet", cards("a100-80gb", "GPU-a")...)
	acc := w.account("acc_a", 10*money.Unit)
	in := w.launch(w.order(acc, "a100-80gb.1g.10gb"))
	b.run(in)
	b.count(100)
	b.disconnect()
	w.pass(5 * time.Second)
	_, err := w.fleet.Restart(w.ctx, acc, in.ID, w.now)
	w.must(err)
	w.listen(11 * time.Minute)
	w.inState(in, models.Lost)
	if u := w.span(in, 1); u.State != models.SpanClosed || u.Cursor != 100 {
		t.Errorf("span %+v", u)
	}
	if l := w.wallet(acc); l.Held != 0 || l.Accrued != 0 {
		t.Errorf("wallet %+v", l)
	}
	w.sound(acc)
}

// TestDatabaseAwayIsNoSilence: a node that ticked all the time is not lost because
// nothing of it could be stored.
func TestDatabaseAwayIsNoSilence(t *testing.T) {
	w := newWorld(t, storetest.SQLite(t))
	b := w.join("gannet", cards("a100-80gb", "GPU-a")...)
	acc := w.account("acc_a", 10*money.Unit)
	in := w.launch(w.order(acc, "a100-80gb.1g.10gb"))
	b.run(in)
	b.count(100)
	away, cancel := context.WithCancel(w.ctx)
	cancel()
	for range 50 {
		w.pass(15 * time.Second)
		if err := w.fleet.NodeTick(away, b.id, b.nextTick(), w.now); err == nil {
			t.Fatal("the tick was stored")
		}
		w.must(w.fleet.Sweep(w.ctx, w.now))
	}
	w.inState(in, models.Running)
	w.listen(10 * time.Minute)
	w.inState(in, models.Lost)
}

// TestCancelWhileCreating is C13 for each point of a launch, free of charge. The
// node may have begun, or not have heard of it at all.
func TestCancelWhileCreating(t *testing.T) {
	w := newWorld(t, storetest.SQLite(t))
	b := w.join("gannet", cards("a100-80gb", "GPU-a")...)
	acc := w.account("acc_a", 10*money.Unit)
	for _, reached := range []wire.Phase{"", wire.PhaseSlicing, wire.PhasePulling, wire.PhaseStarting} {
		for _, terminate := range []bool{false, true} {
			in := w.launch(w.order(acc, "a100-80gb"))
			var o *wire.Observed
			if reached != "" {
				o = b.take(in, reached)
				b.deliver()
			}
			var err error
			if terminate {
				_, err = w.fleet.Terminate(w.ctx, acc, in.ID, w.now)
			} else {
				_, err = w.fleet.Stop(w.ctx, acc, in.ID, w.now)
			}
			w.must(err)
			if l := w.wallet(acc); l.Available() != 10*money.Unit {
				t.Errorf("%q: the money is not back at once: %+v", reached, l)
			}
			want := models.Stopped
			switch {
			case o == nil:
				b.answer()
			case terminate:
				b.gone(o)
			default:
				b.end(o, wire.ReasonAsked, nil)
			}
			b.deliver()
			if terminate {
				want = models.Terminated
			}
			if v := w.inState(in, want); v.Span.ID != "" || len(v.Slices) != 0 {
				t.Errorf("%q: %+v", reached, v)
			}
			if n := w.available("a100-80gb"); n != 1 {
				t.Errorf("%q: the card is busy", reached)
			}
		}
	}
}

// TestJournalBeginsAnew: an emptied data directory does not make a node mute.
func TestJournalBeginsAnew(t *testing.T) {
	w := newWorld(t, storetest.SQLite(t))
	b := w.join("gannet", cards("a100-80gb", "GPU-a")...)
	acc := w.account("acc_a", 10*money.Unit)
	in := w.launch(w.order(acc, "a100-80gb.1g.10gb"))
	b.run(in)
	b.disconnect()
	clear(b.has)
	b.journal, b.sent = nil, 0
	b.connect()
	w.inState(in, models.Failed)
	next := w.launch(w.order(acc, "a100-80gb.1g.10gb"))
	b.run(next)
	w.inState(next, models.Running)
}

// TestMissingMeterIsFound is C28 (b): a running instance without a span is found,
// and metered again for what its node confirmed.
func TestMissingMeterIsFound(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		w := newWorld(t, st)
		w.fleet = fleet.New(st, w.bill, fleet.Config{StartedAt: w.now}, quiet())
		b := w.join("gannet", cards("a100-80gb", "GPU-a")...)
		acc := w.account("acc_a", 10*money.Unit)
		in := w.launch(w.order(acc, "a100-80gb.1g.10gb"))
		// A row is lost: as if the instance had come to run without its span.
		w.inTx(func(tx *store.Tx) error {
			row, err := tx.LockInstance(in.ID)
			if err != nil {
				return err
			}
			was := row.State
			row.State, row.RunningAt = models.Running, w.now
			return tx.SaveInstance(row, was, row.Run)
		})
		b.has[string(in.ID)] = &wire.Observed{ID: string(in.ID), Run: 1, Phase: wire.PhaseRunning}
		b.count(20)
		w.pass(15 * time.Second)
		w.must(w.fleet.Sweep(w.ctx, w.now))
		if u := w.span(in, 1); u.Cursor != 20 || u.State != models.SpanRunning {
			t.Errorf("span %+v", u)
		}
		w.pass(-15 * time.Second)
		b.count(30)
		if u := w.span(in, 1); u.Charged != in.PricePerHour.For(50) {
			t.Errorf("span %+v", u)
		}
	})
}

// TestNobodyElsesInstance: a node can neither move nor charge what is not its own.
func TestNobodyElsesInstance(t *testing.T) {
	w := newWorld(t, storetest.SQLite(t))
	w.fleet = fleet.New(w.st, w.bill, fleet.Config{StartedAt: w.now}, quiet())
	b, thief := w.join("gannet", cards("rtx4090", "GPU-r")...), w.join("skua", cards("l4", "GPU-l")...)
	acc := w.account("acc_a", 10*money.Unit)
	in := w.launch(w.order(acc, "rtx4090"))
	b.run(in)
	w.pass(time.Hour)
	thief.has[string(in.ID)] = &wire.Observed{ID: string(in.ID), Run: 1, Phase: wire.PhaseRunning, Seconds: 3600}
	thief.sendTick()
	thief.end(thief.has[string(in.ID)], wire.ReasonAsked, nil)
	thief.deliver()
	thief.devices = append(thief.devices, b.devices[0])
	thief.connect()
	v := w.inState(in, models.Running)
	if v.Span.Cursor != 0 || v.Slices[0].Device.NodeID != b.id {
		t.Errorf("%+v", v)
	}
	if got := w.fleet.Samples(fleet.OfInstance(in.ID), 0); len(got) != 0 {
		t.Errorf("%d samples from another node", len(got))
	}
}
