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

// TestChargeIsFlooredSeconds walks a whole life: the charge is floor(seconds ×
// price ÷ 3,600) for the seconds the node counted, and nothing else (A20).
func TestChargeIsFlooredSeconds(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		w := newWorld(t, st)
		b := w.join("gannet", cards("a100-80gb", "GPU-a")...)
		acc := w.account("acc_a", 100*money.Unit)
		in := w.launch(w.order(acc, "a100-80gb.1g.10gb"))
		if in.State != models.Placing || in.PricePerHour == 0 || in.PaidSeconds < 60 || in.Why == "" {
			t.Fatalf("launched %+v", in)
		}
		w.pass(390 * time.Second) // pulling and starting are free
		o := b.run(in)
		v := w.inState(in, models.Running)
		if v.Span.StartAt != w.now || v.RunningAt != w.now || w.wallet(acc).Held != 0 {
			t.Fatalf("span %+v, held %d", v.Span, w.wallet(acc).Held)
		}
		for range 10 {
			b.count(123)
		}
		if got, want := w.span(in, 1).Charged, in.PricePerHour.For(1230); got != want {
			t.Errorf("charged %d, want %d", got, want)
		}
		w.pass(7 * time.Second)
		o.Seconds += 7
		stopped, err := w.fleet.Stop(w.ctx, acc, in.ID, w.now)
		w.must(err)
		if stopped.State != models.Stopping || b.wanted(in).Want != wire.WantStopped {
			t.Fatalf("after stop: %+v", stopped)
		}
		if n := w.available("a100-80gb.1g.10gb"); n != 6 {
			t.Errorf("%d free while the node still holds the slice, want 6", n)
		}
		w.pass(5 * time.Second)
		o.Seconds += 5 // the node took five seconds over it: free
		b.end(o, wire.ReasonAsked, nil)
		b.deliver()
		v = w.inState(in, models.Stopped)
		if v.Reason != "stopped" || len(v.Slices) != 0 || v.EndedAt != w.now || v.Span.State != models.SpanClosed {
			t.Errorf("stopped %+v", v)
		}
		if got, want := v.Span.Charged, in.PricePerHour.For(1237); got != want || v.Span.Cursor != 1237 {
			t.Errorf("charged %d for %d s, want %d for 1237 s", got, v.Span.Cursor, want)
		}
		if got := w.wallet(acc); got.Balance != 100*money.Unit-in.PricePerHour.For(1237) || got.Held+got.Accrued != 0 {
			t.Errorf("wallet %+v", got)
		}
		if n := w.available("a100-80gb.1g.10gb"); n != 7 {
			t.Errorf("%d free after the end, want 7", n)
		}
		events, err := w.fleet.Events(w.ctx, acc, in.ID, 0)
		w.must(err)
		var kinds []string
		for i, e := range events {
			kinds = append(kinds, e.Kind)
			if e.Seq != int64(i)+1 || e.Reason == "" && e.Kind != "placed" {
				t.Errorf("event %+v", e)
			}
		}
		if got := strings.Join(kinds, " "); got != "placed node_pulling node_starting node_running stop_asked node_stopped" {
			t.Errorf("history: %s", got)
		}
		w.sound(acc)
	})
}

// TestFailedStartIsFree: A20's variant, and every reason says cause and next step.
func TestFailedStartIsFree(t *testing.T) {
	w := newWorld(t, storetest.SQLite(t))
	b := w.join("gannet", cards("a100-80gb", "GPU-a")...)
	acc := w.account("acc_a", money.Unit)
	for reason, says := range map[string]string{
		wire.ReasonImage:      "could not be had",
		wire.ReasonStartup:    "exit code 3",
		wire.ReasonCommand:    "command could not be started",
		wire.ReasonDevices:    "Fewer GPUs",
		wire.ReasonSlices:     "slices could not be made",
		wire.ReasonNode:       "could not run it",
		wire.ReasonUnexpected: "could not run it",
		"from the future":     "could not run it",
	} {
		in := w.launch(w.order(acc, "a100-80gb.3g.40gb"))
		o := b.take(in, wire.PhaseStarting)
		o.Detail = "1 of 2 devices visible"
		b.end(o, reason, ptr(3))
		b.deliver()
		v := w.inState(in, models.Failed)
		if v.Reason != reason || !strings.Contains(v.Detail, says) || !strings.Contains(v.Detail, "Nothing is charged") ||
			!strings.Contains(v.Detail, o.Detail) || v.Span.ID != "" || v.Want != models.WantStopped {
			t.Errorf("%s: %s: %s", reason, v.Reason, v.Detail)
		}
		if got := w.wallet(acc); got.Available() != money.Unit {
			t.Errorf("%s: wallet %+v", reason, got)
		}
	}
	if n := w.available("a100-80gb.3g.40gb"); n != 2 {
		t.Errorf("%d free", n)
	}
}

func TestEndsByItself(t *testing.T) {
	w := newWorld(t, storetest.SQLite(t))
	b := w.join("gannet", cards("a100-80gb", "GPU-a")...)
	acc := w.account("acc_a", 10*money.Unit)
	for name, tc := range map[string]struct {
		reason string
		exit   *int
		state  models.InstanceState
		says   string
	}{
		"exit 0":     {wire.ReasonExited, ptr(0), models.Stopped, "without an error"},
		"exit 2":     {wire.ReasonExited, ptr(2), models.Failed, "exit code 2"},
		"signal":     {wire.ReasonExited, ptr(137), models.Failed, "signal 9"},
		"money":      {wire.ReasonPaidUntil, nil, models.Stopped, "Top up"},
		"shim":       {wire.ReasonSupervisor, nil, models.Failed, "watched over it"},
		"by an aide": {wire.ReasonAsked, nil, models.Stopped, "on its node"},
	} {
		in := w.launch(w.order(acc, "a100-80gb.1g.10gb"))
		o := b.run(in)
		b.count(10)
		b.end(o, tc.reason, tc.exit)
		b.deliver()
		v := w.inState(in, tc.state)
		if !strings.Contains(v.Detail, tc.says) || v.Span.Charged != in.PricePerHour.For(10) || v.Span.State != models.SpanClosed {
			t.Errorf("%s: %q, span %+v", name, v.Detail, v.Span)
		}
		if d := b.wanted(in); d == nil || d.Want != wire.WantStopped {
			t.Errorf("%s: desired %+v, want it stopped with its disk kept", name, d)
		}
	}
	w.sound(acc)
}

// TestRestart: run N+1 on the same slices; the last word on run N closes its span
// and moves nothing, also when it comes late.
func TestRestart(t *testing.T) {
	for name, late := range map[string]bool{"in order": false, "late": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, storetest.SQLite(t))
			b := w.join("gannet", cards("a100-80gb", "GPU-a")...)
			acc := w.account("acc_a", 10*money.Unit)
			in := w.launch(w.order(acc, "a100-80gb.2g.20gb"))
			first := b.run(in)
			b.count(100)
			leases := w.instance(in).Slices
			again, err := w.fleet.Restart(w.ctx, acc, in.ID, w.now)
			w.must(err)
			if again.State != models.Placing || again.Run != 2 || again.PaidSeconds < 60 || b.wanted(in).Run != 2 {
				t.Fatalf("restarted %+v", again)
			}
			w.pass(3 * time.Second)
			first.Seconds += 3
			old := *first
			old.Phase, old.Reason = wire.PhaseStopped, wire.ReasonAsked
			if !late {
				b.write(&old)
				b.deliver()
				w.inState(in, models.Placing)
			}
			b.run(in)
			if late {
				b.write(&old)
				b.deliver()
			}
			b.count(50)
			v := w.inState(in, models.Running)
			if len(v.Slices) != 1 || v.Slices[0].ID != leases[0].ID {
				t.Errorf("slices %+v, want the same %+v", v.Slices, leases)
			}
			one, two := w.span(in, 1), w.span(in, 2)
			if one.State != models.SpanClosed || one.Cursor != 100 || two.State != models.SpanRunning || two.Cursor != 50 {
				t.Errorf("run 1 %s at %d s, run 2 %s at %d s", one.State, one.Cursor, two.State, two.Cursor)
			}
			w.sound(acc)
		})
	}
}

// TestStopFreesTheCard is C11: the slice is sold, start says what to do.
func TestStopFreesTheCard(t *testing.T) {
	w := newWorld(t, storetest.SQLite(t))
	b := w.join("gannet", cards("h100-80gb", "GPU-h")...)
	w.join("skua", cards("h100-80gb", "GPU-i")...)
	acc := w.account("acc_a", 100*money.Unit)
	in := w.launch(w.order(acc, "h100-80gb"))
	if in.NodeID != b.id {
		t.Fatal("not on the first node")
	}
	o := b.run(in)
	_, err := w.fleet.Stop(w.ctx, acc, in.ID, w.now)
	w.must(err)
	if _, err = w.fleet.Start(w.ctx, acc, in.ID, w.now); code(err) != "conflict" || !strings.Contains(err.Error(), "stopping") {
		t.Errorf("start while stopping: %v", err)
	}
	b.end(o, wire.ReasonAsked, nil)
	b.deliver()
	other := w.launch(w.order(acc, "h100-80gb"))
	_, err = w.fleet.Start(w.ctx, acc, in.ID, w.now)
	var p *models.Problem
	if code(err) != "no_capacity" {
		t.Fatalf("start on a full node: %v", err)
	}
	p = err.(*models.Problem)
	if !strings.Contains(p.What, "gannet") || !strings.Contains(p.Next, "elsewhere") || len(p.Alternatives) == 0 {
		t.Errorf("%+v", p)
	}
	w.inState(in, models.Stopped)
	b.disconnect()
	if _, err = w.fleet.Start(w.ctx, acc, in.ID, w.now); code(err) != "no_capacity" || !strings.Contains(err.Error(), "not connected") {
		t.Errorf("start on a node that is away: %v", err)
	}
	b.connect()
	if _, err := w.fleet.Terminate(w.ctx, acc, other.ID, w.now); err != nil {
		t.Fatal(err)
	}
	b.answer() // the node never had it
	w.inState(other, models.Terminated)
	again, err := w.fleet.Start(w.ctx, acc, in.ID, w.now)
	w.must(err)
	if again.NodeID != b.id || again.Run != 2 {
		t.Errorf("%+v", again)
	}
	b.run(in)
	w.inState(in, models.Running)
}

func TestTerminateErasesThenIsLeftOut(t *testing.T) {
	w := newWorld(t, storetest.SQLite(t))
	b := w.join("gannet", cards("a100-80gb", "GPU-a")...)
	acc := w.account("acc_a", 10*money.Unit)
	in := w.launch(w.order(acc, "a100-80gb.1g.10gb"))
	o := b.run(in)
	b.count(20)
	_, err := w.fleet.Terminate(w.ctx, acc, in.ID, w.now)
	w.must(err)
	if d := b.wanted(in); d.Want != wire.WantGone {
		t.Fatalf("desired %+v", d)
	}
	b.end(o, wire.ReasonAsked, nil) // half of it
	b.deliver()
	if v := w.inState(in, models.Stopping); len(v.Slices) != 1 {
		t.Errorf("slices %+v", v.Slices)
	}
	b.gone(o)
	b.deliver()
	v := w.inState(in, models.Terminated)
	if v.Span.State != models.SpanClosed || v.Span.Cursor != 20 || len(v.Slices) != 0 || v.Reason != "terminated" {
		t.Errorf("%+v", v)
	}
	if d := b.wanted(in); d != nil {
		t.Errorf("still in the desired state: %+v", d)
	}
	for _, act := range []func() error{
		func() error { _, err := w.fleet.Stop(w.ctx, acc, in.ID, w.now); return err },
		func() error { _, err := w.fleet.Start(w.ctx, acc, in.ID, w.now); return err },
		func() error { _, err := w.fleet.Restart(w.ctx, acc, in.ID, w.now); return err },
	} {
		if err := act(); code(err) != "conflict" {
			t.Errorf("an act on what is terminated: %v", err)
		}
	}
	again, err := w.fleet.Terminate(w.ctx, acc, in.ID, w.now)
	if err != nil || again.State != models.Terminated {
		t.Errorf("terminating twice: %v", err)
	}
}

// TestMoneyEnds: the portal stops what the wallet does not cover, even when the
// node does not; the seconds are known, the charge is not more than there was
// (A43, C28).
func TestMoneyEnds(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		w := newWorld(t, st)
		b := w.join("gannet", cards("a100-80gb", "GPU-a")...)
		acc := w.account("acc_a", 0)
		offer, err := w.fleet.Offers(w.ctx, "a100-80gb", w.now)
		w.must(err)
		w.fund(acc, offer[0].PricePerHour.Ceil(90), "ninety seconds")
		in := w.launch(w.order(acc, "a100-80gb"))
		if in.PaidSeconds != 90 {
			t.Fatalf("paid for %d s, want 90", in.PaidSeconds)
		}
		o := b.run(in)
		b.count(89)
		w.inState(in, models.Running)
		b.count(31) // the node goes on
		v := w.inState(in, models.Stopping)
		if v.Reason != wire.ReasonPaidUntil || b.wanted(in).Want != wire.WantStopped {
			t.Errorf("%s: %s", v.Reason, v.Detail)
		}
		b.end(o, wire.ReasonAsked, nil)
		b.deliver()
		v = w.inState(in, models.Stopped)
		if v.Reason != wire.ReasonPaidUntil || v.Span.Cursor != 90 || v.Span.Reported != 120 {
			t.Errorf("%s, %d s charged of %d", v.Reason, v.Span.Cursor, v.Span.Reported)
		}
		if l := w.wallet(acc); l.Available() != offer[0].PricePerHour.Ceil(90)-offer[0].PricePerHour.For(90) {
			t.Errorf("wallet %+v", l)
		}
		if _, err = w.fleet.Start(w.ctx, acc, in.ID, w.now); code(err) != "insufficient_funds" {
			t.Errorf("start without money: %v", err)
		}
		w.inState(in, models.Stopped)
		w.fund(acc, money.Unit, "more")
		_, err = w.fleet.Start(w.ctx, acc, in.ID, w.now)
		w.must(err)
	})
}

// TestMoneyTakenBack is A8 for what runs: the bank takes back what paid for it. Its
// node is told to go no further, nothing after that is charged, what is on its way
// costs nothing, and what is owed stays owed.
func TestMoneyTakenBack(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		w := newWorld(t, st)
		b := w.join("gannet", cards("a100-80gb", "GPU-a", "GPU-b", "GPU-c")...)
		acc := w.account("acc_a", 1000*money.Unit)
		in, placing := w.launch(w.order(acc, "a100-80gb")), w.launch(w.order(acc, "a100-80gb"))
		o := b.run(in)
		b.count(3600)
		w.inTx(func(tx *store.Tx) error {
			if _, err := tx.LockWallet(acc); err != nil {
				return err
			}
			return tx.SetFrozen(acc, true)
		})
		w.fund(acc, -1000*money.Unit, "charged back")
		w.must(w.fleet.RefreshPaid(w.ctx, acc, w.now))
		if got := b.wanted(in).PaidSeconds; got != 3600 {
			t.Errorf("paid for %d s, want 3600", got)
		}
		b.count(5) // it did not hear of it
		w.inState(in, models.Stopping)
		b.end(o, wire.ReasonPaidUntil, nil)
		second := b.run(placing)
		b.count(5)
		b.end(second, wire.ReasonPaidUntil, nil)
		b.deliver()
		for _, in := range []models.Instance{in, placing} {
			if v := w.inState(in, models.Stopped); v.Reason != wire.ReasonPaidUntil || len(v.Slices) != 0 {
				t.Errorf("%s: %s", v.Reason, v.Detail)
			}
		}
		if l := w.wallet(acc); l.Balance != -in.PricePerHour.For(3600) || l.Held+l.Accrued != 0 {
			t.Errorf("wallet %+v", l)
		}
		if _, err := w.fleet.Launch(w.ctx, w.order(acc, "a100-80gb"), w.now); code(err) != "account_frozen" {
			t.Errorf("a launch: %v", err)
		}
		if _, err := w.fleet.Start(w.ctx, acc, in.ID, w.now); code(err) != "account_frozen" {
			t.Errorf("a start: %v", err)
		}
		if n := w.available("a100-80gb"); n != 3 {
			t.Errorf("%d cards free", n)
		}
	})
}

// TestStoppedBeforeItsStartWasHeard is A20 beside a lost link: the renter stops a
// launch of which the portal knows no start. It is free, however long it ran.
func TestStoppedBeforeItsStartWasHeard(t *testing.T) {
	w := newWorld(t, storetest.SQLite(t))
	b := w.join("gannet", cards("a100-80gb", "GPU-a")...)
	acc := w.account("acc_a", 10*money.Unit)
	in := w.launch(w.order(acc, "a100-80gb"))
	b.disconnect()
	o := b.take(in, wire.PhaseRunning)
	w.pass(20 * time.Second)
	o.Seconds = 20
	_, err := w.fleet.Stop(w.ctx, acc, in.ID, w.now)
	w.must(err)
	b.connect()
	w.inState(in, models.Stopping)
	b.end(o, wire.ReasonAsked, nil)
	b.deliver()
	if v := w.inState(in, models.Stopped); v.Span.ID != "" || w.wallet(acc).Available() != 10*money.Unit {
		t.Errorf("span %+v, wallet %+v", v.Span, w.wallet(acc))
	}
}

// TestPaidSecondsFollowTheWallet: a second launch shortens the first, a top-up
// lengthens both, and nothing that stays the same makes a generation.
func TestPaidSecondsFollowTheWallet(t *testing.T) {
	w := newWorld(t, storetest.SQLite(t))
	b := w.join("gannet", cards("a100-80gb", "GPU-a", "GPU-b")...)
	acc := w.account("acc_a", money.Unit)
	first := w.launch(w.order(acc, "a100-80gb"))
	b.run(first)
	w.must(w.fleet.RefreshPaid(w.ctx, acc, w.now))
	alone := b.wanted(first).PaidSeconds
	gen := b.gen
	b.count(10)
	w.must(w.fleet.RefreshPaid(w.ctx, acc, w.now))
	if b.desired(); b.gen != gen {
		t.Errorf("time alone made generation %d of %d", b.gen, gen)
	}
	second := w.launch(w.order(acc, "a100-80gb"))
	w.must(w.fleet.RefreshPaid(w.ctx, acc, w.now))
	both := b.wanted(first).PaidSeconds
	if both >= alone-60 || b.wanted(second).PaidSeconds < 60 {
		t.Errorf("alone %d s, beside another %d s, the other %d s", alone, both, b.wanted(second).PaidSeconds)
	}
	w.fund(acc, money.Unit, "more")
	w.must(w.fleet.RefreshPaid(w.ctx, acc, w.now))
	if got := b.wanted(first).PaidSeconds; got <= both+60 {
		t.Errorf("after a top-up %d s, before %d s", got, both)
	}
	if b.gen <= gen {
		t.Errorf("generation %d, was %d", b.gen, gen)
	}
}
