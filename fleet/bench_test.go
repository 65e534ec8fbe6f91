package fleet_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"berth/models"
	"berth/models/store"
	"berth/models/store/storetest"
	"berth/money"
	"berth/wire"
)

// BenchmarkNodeTick meters the running instances of one node with one tick: the
// reports per second of the meter.
//
//	go test ./fleet -run '^$' -bench NodeTick
func BenchmarkNodeTick(b *testing.B) {
	for name, open := range map[string]func(testing.TB) *store.Store{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		for _, n := range []int{1, 10, 100, 1000} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) { benchmarkTick(b, open(b), n) })
		}
	}
}

func benchmarkTick(b *testing.B, st *store.Store, n int) {
	w := newWorld(b, st)
	node := w.join("gannet", cards("rtx4090", "GPU-r")...)
	var accounts []models.AccountID
	for i := range 100 {
		accounts = append(accounts, w.account(models.AccountID(fmt.Sprintf("acc_%03d", i)), 100_000*money.Unit))
	}
	w.inTx(func(tx *store.Tx) error {
		for i := range n {
			in := models.Instance{ID: models.InstanceID(fmt.Sprintf("ins_%04d", i)), AccountID: accounts[i%100], NodeID: node.id, Name: fmt.Sprintf("i-%d", i), SKU: "rtx4090",
				BillingMode: models.OnDemand, PricePerHour: 390_000, Currency: "USD", State: models.Running, Want: models.WantRunning, Run: 1, RequestedAt: w.now, RunningAt: w.now}
			if err := tx.InsertInstance(in); err != nil {
				return err
			}
			if err := w.bill.OpenSpan(tx, in, 0, w.now); err != nil {
				return err
			}
			node.has[string(in.ID)] = &wire.Observed{ID: string(in.ID), Run: 1, Phase: wire.PhaseRunning}
		}
		return nil
	})
	before := st.Statements()
	for b.Loop() {
		w.pass(time.Second)
		for _, o := range node.has {
			o.Seconds++
		}
		node.sendTick()
	}
	b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "reports/s")
	b.ReportMetric(float64(st.Statements()-before)/float64(b.N), "statements/op")
	if got := w.span(models.Instance{ID: "ins_0000"}, 1); got.Cursor == 0 {
		b.Fatal("nothing was metered")
	}
}

// BenchmarkLaunch launches whole cards, pairs and slices into a fleet of 100 nodes
// of eight cards: the whole transaction with its placement. There is room for some
// 900 launches.
//
//	go test ./fleet -run '^$' -bench Launch -benchtime 200x
func BenchmarkLaunch(b *testing.B) {
	for name, open := range map[string]func(testing.TB) *store.Store{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		b.Run(name, func(b *testing.B) { benchmarkLaunch(b, open(b), 100) })
	}
}

func benchmarkLaunch(b *testing.B, st *store.Store, nodes int) {
	w := newWorld(b, st)
	for i := range nodes {
		uuids := make([]string, 8)
		for j := range uuids {
			uuids[j] = fmt.Sprintf("GPU-%d-%d", i, j)
		}
		w.join(fmt.Sprintf("node-%03d", i), cards("a100-80gb", uuids...)...)
	}
	account := w.account("acc_a", 1_000_000*money.Unit)
	skus := []string{"a100-80gb", "a100-80gb.1g.10gb", "a100-80gb.3g.40gb", "a100-80gb.x2"}
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		w.launch(w.order(account, skus[i%len(skus)]))
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
