package fleet_test

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"berth/billing"
	"berth/fleet"
	"berth/models"
	"berth/models/store"
	"berth/models/store/storetest"
	"berth/money"
	"berth/wire"
)

// TestDeletedMeterGoesOn is C28 (b), to the letter: the billing row of a running
// instance is deleted when part of it is in the ledger and on an invoice. It is
// made again within the minute, and no second is charged or billed twice.
func TestDeletedMeterGoesOn(t *testing.T) {
	for driver, address := range map[string]func(t *testing.T) string{
		"sqlite": func(t *testing.T) string { return filepath.Join(t.TempDir(), "berth.db") },
		"pgx":    func(t *testing.T) string { return storetest.PostgresURL(t) },
	} {
		t.Run(driver, func(t *testing.T) {
			dsn := address(t)
			st, err := store.Open(t.Context(), dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			raw, err := sql.Open(driver, dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer raw.Close()
			w := newWorld(t, st)
			w.fleet = fleet.New(st, w.bill, fleet.Config{StartedAt: w.now}, quiet())
			b := w.join("gannet", cards("a100-80gb", "GPU-a", "GPU-b")...)
			acc := w.account("acc_a", 100*money.Unit)
			in, beside := w.launch(w.order(acc, "a100-80gb")), w.launch(w.order(acc, "a100-80gb"))
			b.run(in)
			b.run(beside)
			b.count(3600)
			first, err := w.bill.CloseInvoice(w.ctx, acc, w.now, w.now)
			w.must(err)
			b.count(100)
			if _, err := raw.ExecContext(w.ctx, "DELETE FROM usage_spans WHERE id = '"+string(billing.SpanID(in))+"'"); err != nil {
				t.Fatal(err)
			}
			for range 6 { // ten seconds between two sweeps
				b.count(10)
				w.must(w.fleet.Sweep(w.ctx, w.now))
			}
			if u := w.span(in, 1); u.Cursor != 3760 || u.Charged != in.PricePerHour.For(3760) || u.InvoicedTo != 3600 || u.StartAt != w.now.Add(-3760*time.Second) {
				t.Errorf("span %+v", u)
			}
			b.count(40)
			_, err = w.fleet.Stop(w.ctx, acc, in.ID, w.now)
			w.must(err)
			b.end(b.has[string(in.ID)], wire.ReasonAsked, nil)
			b.deliver()
			second, err := w.bill.CloseInvoice(w.ctx, acc, w.now, w.now)
			w.must(err)
			want := in.PricePerHour.For(3800) + beside.PricePerHour.For(3800)
			if l := w.wallet(acc); l.Balance != 100*money.Unit-want || l.Accrued != 0 {
				t.Errorf("wallet %+v, want %d used", l, want)
			}
			if first.Total+second.Total+second.Carry != want {
				t.Errorf("invoices of %d and %d with %d carried, for %d", first.Total, second.Total, second.Carry, want)
			}
			if broken, err := w.bill.Verify(w.ctx); err != nil || len(broken) > 0 {
				t.Errorf("the books: %v, %v", broken, err)
			}
		})
	}
}

// TestClockSetBackBeforeTheStart is A20 beside a clock: it was an hour ahead when
// the launch was asked for. The run begins now, not in an hour, and is paid from
// its first second.
func TestClockSetBackBeforeTheStart(t *testing.T) {
	w := newWorld(t, storetest.SQLite(t))
	b := w.join("gannet", cards("a100-80gb", "GPU-a")...)
	acc := w.account("acc_a", 100*money.Unit)
	in := w.launch(w.order(acc, "a100-80gb"))
	w.pass(-time.Hour)
	b.run(in)
	b.count(7200)
	v := w.inState(in, models.Running)
	if v.Span.Cursor != 7200 || v.Span.StartAt != w.now.Add(-2*time.Hour) || v.RunningAt != v.Span.StartAt {
		t.Errorf("running since %v, span %+v", v.RunningAt.Time(), v.Span)
	}
	w.sound(acc)
}

// A node's clock is an hour off, and then set right while its agent is started
// again: seconds, charge, leases and charts are as with a clock that is right.
func TestNodesClockIsOff(t *testing.T) {
	for name, skew := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			storetest.OnEach(t, func(t *testing.T, st *store.Store) {
				w := newWorld(t, st)
				b := w.join("gannet", cards("a100-80gb", "GPU-a")...)
				b.skew = skew
				b.connect()
				acc := w.account("acc_a", 100*money.Unit)
				in := w.launch(w.order(acc, "a100-80gb"))
				o := b.run(in)
				for range 10 {
					b.count(1)
				}
				view, _, err := w.fleet.Node(w.ctx, b.id)
				w.must(err)
				if view.ClockSkewMS != skew.Milliseconds() {
					t.Errorf("seen as off by %d ms", view.ClockSkewMS)
				}
				b.disconnect()
				b.skew, b.tick = 0, 0
				b.connect()
				for range 10 {
					b.count(1)
				}
				if got := w.fleet.Samples(fleet.OfInstance(in.ID), 0); len(got) != 20 || got[19].At != w.now || got[19].Seq <= got[0].Seq {
					t.Errorf("%d seconds are charted: %+v", len(got), got)
				}
				_, err = w.fleet.Stop(w.ctx, acc, in.ID, w.now)
				w.must(err)
				b.skew = skew
				b.end(o, wire.ReasonAsked, nil)
				b.deliver()
				w.inState(in, models.Stopped)
				u := w.span(in, 1)
				if u.Cursor != 20 || u.Charged != in.PricePerHour.For(20) || u.StartAt != w.now.Add(-20*time.Second) || u.EndAt != w.now {
					t.Errorf("span %+v, now %v", u, w.now)
				}
				if _, err := w.fleet.Launch(w.ctx, w.order(acc, "a100-80gb"), w.now); err != nil {
					t.Errorf("the card is not free again: %v", err)
				}
				w.sound(acc)
			})
		})
	}
}

// One account's ledger is broken. Its neighbours on the node are metered on, and
// the node does not pass for silent.
func TestOneBrokenAccountStopsNobodyElse(t *testing.T) {
	dsn := filepath.Join(t.TempDir(), "berth.db")
	st, err := store.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	w := newWorld(t, st)
	b := w.join("kestrel", cards("rtx4090", "GPU-a", "GPU-b", "GPU-c")...)
	var all []models.Instance
	for _, id := range []models.AccountID{"acc_a", "acc_b", "acc_c"} {
		in := w.launch(w.order(w.account(id, 100*money.Unit), "rtx4090"))
		b.run(in)
		all = append(all, in)
	}
	b.count(5)
	db, err := sql.Open("sqlite", dsn)
	w.must(err)
	defer db.Close()
	change := func(from, to models.AccountID) {
		t.Helper()
		res, err := db.Exec("UPDATE ledger_accounts SET code = ? WHERE code = ?", models.WalletCode(to), models.WalletCode(from))
		w.must(err)
		if n, err := res.RowsAffected(); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	change("acc_b", "acc_astray")
	b.count(5)
	for i, want := range []int64{10, 5, 10} {
		if u := w.span(all[i], 1); u.Cursor != want {
			t.Errorf("account %d was metered to %d, want %d", i, u.Cursor, want)
		}
	}
	nodes, err := w.fleet.Nodes(w.ctx)
	if err != nil || nodes[0].SeenAt != w.now {
		t.Errorf("the node was seen at %v, it is %v; %v", nodes[0].SeenAt, w.now, err)
	}
	change("acc_astray", "acc_b") // mended: nothing was lost
	b.count(1)
	for _, in := range all {
		if u := w.span(in, 1); u.Cursor != 11 {
			t.Errorf("then %s was metered to %d", in.AccountID, u.Cursor)
		}
	}
	w.sound("acc_a", "acc_b", "acc_c")
}
