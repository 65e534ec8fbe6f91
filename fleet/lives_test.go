package fleet_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"berth/models"
	"berth/models/store/storetest"
	"berth/money"
	"berth/wire"
)

// TestRandomLives: launches are stopped, terminated, restarted and started at
// random points, while the node is cut off, delivers late and doubles what it
// says. At the end no card is busy, and each span is charged for its seconds.
func TestRandomLives(t *testing.T) {
	for seed := range uint64(6) {
		w := newWorld(t, storetest.SQLite(t))
		b := w.join("gannet", cards("a100-80gb", "GPU-a", "GPU-b")...)
		acc := w.account("acc_a", 1000*money.Unit)
		r := rand.New(rand.NewPCG(seed, 1))
		var all []models.Instance
		linked := true
		for range 150 {
			w.pass(time.Duration(r.IntN(3000)) * time.Millisecond)
			switch r.IntN(10) {
			case 0, 1:
				if in, err := w.fleet.Launch(w.ctx, w.order(acc, []string{"a100-80gb.1g.10gb", "a100-80gb.3g.40gb", "a100-80gb"}[r.IntN(3)]), w.now); err == nil {
					all = append(all, in)
				} else if code(err) != "no_capacity" {
					t.Fatal(err)
				}
			case 2, 3, 4:
				if len(all) == 0 {
					continue
				}
				id := all[r.IntN(len(all))].ID
				act := []func(context.Context, models.AccountID, models.InstanceID, models.Instant) (models.Instance, error){
					w.fleet.Stop, w.fleet.Terminate, w.fleet.Restart, w.fleet.Start}[r.IntN(4)]
				var p *models.Problem
				if _, err := act(w.ctx, acc, id, w.now); err != nil && !errors.As(err, &p) {
					t.Fatal(err)
				}
			case 5:
				if linked {
					b.disconnect()
				} else {
					b.reconcile(r)
					b.connect()
				}
				linked = !linked
			default:
				b.reconcile(r)
				if linked {
					b.deliver()
					b.answer()
					b.sendTick()
				}
			}
			w.sound(acc)
		}
		if !linked {
			b.connect()
		}
		for _, in := range all {
			if _, err := w.fleet.Terminate(w.ctx, acc, in.ID, w.now); err != nil {
				t.Fatal(err)
			}
		}
		for range 8 {
			b.reconcile(r)
			b.deliver()
			b.answer()
		}
		for _, in := range all {
			w.inState(in, models.Terminated)
		}
		if n := w.available("a100-80gb"); n != 2 {
			t.Errorf("seed %d: %d of 2 cards free", seed, n)
		}
		spans, _, err := w.bill.Usage(w.ctx, acc, "", "", 1000)
		w.must(err)
		var sum money.Amount
		for _, u := range spans {
			sum += u.Charged
			if u.State != models.SpanClosed || u.Charged != u.PricePerHour.For(u.Cursor) {
				t.Errorf("seed %d: span %+v", seed, u)
			}
		}
		if l := w.wallet(acc); l.Balance != 1000*money.Unit-sum || l.Held+l.Accrued != 0 {
			t.Errorf("seed %d: wallet %+v after charges of %d", seed, l, sum)
		}
		if len(spans) == 0 {
			t.Errorf("seed %d: nothing ever ran", seed)
		}
	}
}

// reconcile takes one step towards the desired state for each instance, as an
// agent does, and counts the seconds of what runs.
func (b *box) reconcile(r *rand.Rand) {
	b.Helper()
	wanted := map[string]wire.DesiredInstance{}
	for _, d := range b.desired().Instances {
		wanted[d.ID] = d
	}
	for id, o := range b.has {
		d, ok := wanted[id]
		if o.Phase == wire.PhaseRunning {
			o.Seconds++
		}
		switch {
		case !ok || d.Want == wire.WantGone:
			b.gone(o)
		case o.Phase != wire.PhaseStopped && (d.Want == wire.WantStopped || d.Run > o.Run):
			b.end(o, wire.ReasonAsked, nil)
		case o.Phase == wire.PhaseRunning && r.IntN(20) == 0:
			b.end(o, wire.ReasonExited, ptr(r.IntN(2)))
		}
	}
	for id, d := range wanted {
		o := b.has[id]
		switch {
		case d.Want != wire.WantRunning:
		case o == nil || o.Run < d.Run && o.Phase == wire.PhaseStopped:
			o = &wire.Observed{ID: id, Run: d.Run, Phase: wire.PhaseSlicing, Slices: d.Slices}
			b.has[id] = o
			b.write(o)
		case o.Phase == wire.PhaseSlicing:
			o.Phase = wire.PhasePulling
			b.write(o)
		case o.Phase == wire.PhasePulling:
			o.Phase = wire.PhaseStarting
			b.write(o)
		case o.Phase == wire.PhaseStarting:
			o.Phase = wire.PhaseRunning
			b.write(o)
		}
	}
}
