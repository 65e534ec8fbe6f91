package fleet_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"berth/fleet"
	"berth/models"
	"berth/models/store"
	"berth/models/store/storetest"
	"berth/wire"
)

// measured is a running instance on a node whose ticks a test writes by hand.
func (w *world) measured() (*box, models.Instance) {
	w.Helper()
	b := w.join("kestrel", cards("a100-80gb", "GPU-a")...)
	b.connect()
	in := w.launch(w.order(w.account("acc_1", 100_000_000), "a100-80gb.1g.10gb"))
	b.run(in)
	return b, in
}

func (b *box) second(in models.Instance, utilization *float64) wire.Tick {
	b.pass(time.Second)
	for _, o := range b.has {
		o.Seconds++
	}
	t := b.nextTick()
	t.Instances[0].UtilizationPercent = utilization
	b.must(b.fleet.NodeTick(b.ctx, b.id, t, b.now))
	return t
}

func (w *world) instanceHistory(in models.Instance, name string) fleet.History {
	w.Helper()
	r, err := fleet.LookupRange(name)
	w.must(err)
	h, err := w.fleet.InstanceHistory(w.ctx, in.AccountID, in.ID, r, w.now)
	w.must(err)
	return h
}

// TestMinuteIsStoredOnce: a minute is what its seconds were; the same tick again and
// one that is late do not count, and what was not measured is no zero.
func TestMinuteIsStoredOnce(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		w := newWorld(t, st)
		b, in := w.measured()
		for w.now%models.Instant(60e6) != 59e6 { // the next second begins a minute
			b.second(in, ptr(99.0))
		}
		w.must(w.fleet.RollUp(w.ctx, w.now))
		begin := w.now.Add(time.Second)
		var ticks []wire.Tick
		for i := range 60 {
			util := ptr(float64(i))
			if i >= 30 {
				util = nil // it cannot be measured any more
			}
			ticks = append(ticks, b.second(in, util))
			again := ticks[len(ticks)-1]
			w.must(w.fleet.NodeTick(w.ctx, b.id, again, w.now))
			if i == 40 {
				w.must(w.fleet.NodeTick(w.ctx, b.id, ticks[3], w.now)) // late
			}
		}
		if h := w.instanceHistory(in, "1h"); len(h.Points) > 1 {
			t.Errorf("a minute is there before it is over: %+v", h.Points)
		}
		w.pass(3 * time.Second)
		before := st.Statements()
		w.must(w.fleet.RollUp(w.ctx, w.now))
		if n := st.Statements() - before; n > 6 {
			t.Errorf("%d statements for a minute", n)
		}
		w.must(w.fleet.RollUp(w.ctx, w.now))
		h := w.instanceHistory(in, "1h")
		got := h.Points[len(h.Points)-1]
		if got.At != begin || got.Samples != 60 {
			t.Fatalf("%d samples at %v, want 60 at %v", got.Samples, got.At.Time(), begin.Time())
		}
		if u := got.Utilization; u.Count != 30 || *u.Min != 0 || *u.Max != 290 || *u.Sum != 10*29*30/2 {
			t.Errorf("utilisation of %d: %d to %d, sum %d", u.Count, *u.Min, *u.Max, *u.Sum)
		}
		if m := got.Memory; m.Count != 0 || m.Min != nil {
			t.Errorf("memory was never measured: %+v", m)
		}

		// Of the card and the node alike; another's are not there.
		r := fleet.Ranges[0]
		card, err := w.fleet.CardHistory(w.ctx, "GPU-a", r, w.now)
		w.must(err)
		node, err := w.fleet.NodeHistory(w.ctx, b.id, r, w.now)
		w.must(err)
		for _, h := range []fleet.History{card, node} {
			if p := h.Points[len(h.Points)-1]; p.Samples != 60 || *p.Temperature.Max != 400 || p.Utilization.Count != 0 {
				t.Errorf("%+v", p)
			}
		}
		if _, err := w.fleet.InstanceHistory(w.ctx, "acc_2", in.ID, r, w.now); !models.HasCode(err, models.NotFound) {
			t.Errorf("another's instance: %v", err)
		}
		if _, err := w.fleet.CardHistory(w.ctx, "GPU-x", r, w.now); !models.HasCode(err, models.NotFound) {
			t.Errorf("no card: %v", err)
		}
		if _, err := w.fleet.NodeHistory(w.ctx, "nod_x", r, w.now); !models.HasCode(err, models.NotFound) {
			t.Errorf("no node: %v", err)
		}
	})
}

// TestNodeSpeaksOfItsOwnCards: what a node says of another's card is not stored.
func TestNodeSpeaksOfItsOwnCards(t *testing.T) {
	w := newWorld(t, storetest.SQLite(t))
	b, in := w.measured()
	liar := w.join("liar", cards("rtx4090", "GPU-l")...)
	liar.connect()
	for range 60 {
		b.second(in, nil)
		lie := liar.nextTick()
		lie.Devices[0].UUID, lie.Devices[0].TemperatureC = "GPU-a", ptr(99.0)
		w.must(w.fleet.NodeTick(w.ctx, liar.id, lie, w.now))
	}
	w.pass(time.Minute)
	w.must(w.fleet.RollUp(w.ctx, w.now))
	h, err := w.fleet.CardHistory(w.ctx, "GPU-a", fleet.Ranges[0], w.now)
	w.must(err)
	for _, p := range h.Points {
		if *p.Temperature.Max != 400 {
			t.Errorf("%+v", p)
		}
	}
	if len(h.Points) == 0 {
		t.Error("nothing of the card itself")
	}
}

// TestKilledPortalLosesTheMinuteAtMost: what another portal on the same database
// sees of the rest of a minute does not take the place of what was stored.
func TestKilledPortalLosesTheMinuteAtMost(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		w := newWorld(t, st)
		b, in := w.measured()
		for w.now%models.Instant(60e6) != 59e6 {
			b.second(in, nil)
		}
		first := w.now.Add(time.Second)
		for range 80 {
			b.second(in, ptr(50.0))
			w.must(w.fleet.RollUp(w.ctx, w.now))
		}
		w.fleet = fleet.New(st, w.bill, fleet.Config{StartedAt: w.now}, slog.New(slog.DiscardHandler)) // killed, and started again
		for range 60 {
			b.second(in, ptr(50.0))
			w.must(w.fleet.RollUp(w.ctx, w.now))
		}
		h := w.instanceHistory(in, "1h")
		got := map[time.Duration]int64{}
		for _, p := range h.Points {
			if p.At >= first {
				got[p.At.Sub(first)] = p.Samples
			}
		}
		if want := map[time.Duration]int64{0: 60, time.Minute: 40}; !reflect.DeepEqual(got, want) {
			t.Errorf("samples of each minute %v, want %v: 20 s were lost", got, want)
		}
	})
}

// TestHistoryOfAMonth: hours are made of minutes, a portal that was away makes those
// it missed, a day is drawn from minutes, and what is too old goes.
func TestHistoryOfAMonth(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		w := newWorld(t, st)
		_, in := w.measured()
		begin := w.now.Floor(time.Hour)
		subject := string(fleet.OfInstance(in.ID))
		fill := func(from models.Instant, minutes int) {
			var list []models.Rollup
			for i := range minutes {
				r := models.Rollup{Step: models.Minute, At: from.Add(time.Duration(i) * time.Minute), Subject: subject, Samples: 60}
				for range 60 {
					r.Utilization.Add(int64(i % 60 * 10))
				}
				list = append(list, r)
			}
			w.inTx(func(tx *store.Tx) error { return tx.PutRollups(list) })
		}
		fill(begin, 3*60)
		w.now = begin.Add(3*time.Hour + 30*time.Minute)
		fill(begin.Add(3*time.Hour), 30)
		w.must(w.fleet.RollUp(w.ctx, w.now))

		month := w.instanceHistory(in, "30d")
		if len(month.Points) != 4 {
			t.Fatalf("%d hours", len(month.Points))
		}
		for i, p := range month.Points {
			samples, high := int64(3600), int64(590)
			if i == 3 {
				samples, high = 1800, 290 // the hour under way
			}
			if p.At != begin.Add(time.Duration(i)*time.Hour) || p.Samples != samples || *p.Utilization.Min != 0 || *p.Utilization.Max != high || p.Utilization.Count != samples {
				t.Errorf("hour %d: %+v", i, p)
			}
		}
		day := w.instanceHistory(in, "24h")
		if len(day.Points) != 42 || day.Points[1].Samples != 300 || *day.Points[1].Utilization.Max != 90 || *day.Points[1].Utilization.Min != 50 {
			t.Errorf("%d points of five minutes, the second %+v", len(day.Points), day.Points[1])
		}

		// A week later the minutes go, a quarter later the hours.
		w.now = begin.Add(9 * 24 * time.Hour)
		w.must(w.fleet.RollUp(w.ctx, w.now))
		if n := len(w.rollups(models.Minute, subject, begin)); n != 0 {
			t.Errorf("%d minutes are left", n)
		}
		if h := w.instanceHistory(in, "30d"); len(h.Points) != 4 || h.Points[3].Samples != 1800 {
			t.Errorf("%d hours are left", len(h.Points))
		}
		w.now = begin.Add(91 * 24 * time.Hour)
		w.must(w.fleet.RollUp(w.ctx, w.now))
		if n := len(w.rollups(models.Hour, subject, begin)); n != 0 {
			t.Errorf("%d hours are left", n)
		}

	})
}

func (w *world) rollups(step models.Seconds, subject string, from models.Instant) (list []models.Rollup) {
	w.Helper()
	w.must(w.st.View(w.ctx, func(tx *store.Tx) (err error) {
		list, err = tx.Rollups(step, step, subject, from, from.Add(24*time.Hour))
		return err
	}))
	return list
}

func TestUnknownRange(t *testing.T) {
	var p *models.Problem
	if _, err := fleet.LookupRange("2h"); !errors.As(err, &p) || p.Fields["range"] == "" {
		t.Errorf("%v", err)
	}
}

// BenchmarkRollUp stores a minute of 125 nodes with 8 cards each, and reads each
// range of one card after a week of them.
//
//	go test ./fleet -run '^$' -bench RollUp -benchtime 20x
func BenchmarkRollUp(b *testing.B) {
	for name, open := range map[string]func(testing.TB) *store.Store{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		b.Run(name, func(b *testing.B) { benchmarkRollUp(b, open(b)) })
	}
}

func benchmarkRollUp(b *testing.B, st *store.Store) {
	w := newWorld(b, st)
	var nodes []*box
	for i := range 125 {
		var uuids []string
		for j := range 8 {
			uuids = append(uuids, fmt.Sprintf("GPU-%08d-0000-4000-8000-%012d", i, j))
		}
		n := w.join(fmt.Sprintf("node-%03d", i), cards("h100-80gb", uuids...)...)
		n.connect()
		nodes = append(nodes, n)
	}
	minute := func() {
		for _, n := range nodes {
			tick := n.nextTick()
			for i := range tick.Devices {
				tick.Devices[i].UtilizationPercent, tick.Devices[i].MemoryMiB, tick.Devices[i].PowerW = ptr(float64(n.tick%100)), ptr(int64(40_000+n.tick)), ptr(268.4)
			}
			w.must(w.fleet.NodeTick(w.ctx, n.id, tick, w.now))
		}
		w.pass(time.Minute + 2*time.Second)
	}
	minute()
	w.must(w.fleet.RollUp(w.ctx, w.now))
	statements, took := int64(0), time.Duration(0)
	for b.Loop() {
		minute()
		before, began := st.Statements(), time.Now()
		w.must(w.fleet.RollUp(w.ctx, w.now))
		took += time.Since(began)
		statements += st.Statements() - before
	}
	b.ReportMetric(float64(statements)/float64(b.N), "statements/minute")
	b.ReportMetric(took.Seconds()*1000/float64(b.N), "ms/minute")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkHistory reads each range of one card where 1,125 subjects have a day of
// minutes and a month of hours, and reports the bytes that a rollup takes on disk.
//
//	go test ./fleet -run '^$' -bench History -benchtime 50x -timeout 20m
func BenchmarkHistory(b *testing.B) {
	const subjects = 1125
	path := filepath.Join(b.TempDir(), "berth.db")
	st, err := store.Open(b.Context(), path)
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	w := newWorld(b, st)
	n := w.join("gannet", cards("h100-80gb", "GPU-00000000-0000-4000-8000-000000000000")...)
	n.connect()
	rows := 0
	fill := func(step models.Seconds, at models.Instant) {
		var list []models.Rollup
		for i := range subjects {
			r := models.Rollup{Step: step, At: at, Subject: fmt.Sprintf("card:GPU-00000000-0000-4000-8000-%012d", i), Samples: int64(step)}
			for _, f := range []*models.Figures{&r.Utilization, &r.Memory, &r.Temperature, &r.Power} {
				low, high, sum := int64(300), int64(900+i), int64(600*step)
				*f = models.Figures{Count: int64(step), Min: &low, Max: &high, Sum: &sum}
			}
			list = append(list, r)
		}
		rows += len(list)
		w.inTx(func(tx *store.Tx) error { return tx.PutRollups(list) })
	}
	for i := range 24 * 60 {
		fill(models.Minute, w.now.Floor(time.Minute).Add(-time.Duration(i)*time.Minute))
	}
	for i := range 30 * 24 {
		fill(models.Hour, w.now.Floor(time.Hour).Add(-time.Duration(i+1)*time.Hour))
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	for _, r := range fleet.Ranges {
		b.Run(r.Name, func(b *testing.B) {
			for b.Loop() {
				h, err := w.fleet.CardHistory(w.ctx, "GPU-00000000-0000-4000-8000-000000000000", r, w.now)
				w.must(err)
				if len(h.Points) < 59 {
					b.Fatalf("%d points", len(h.Points))
				}
			}
			b.ReportMetric(float64(info.Size())/float64(rows), "B/rollup")
		})
	}
}
