package fleet_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"berth/fleet"
	"berth/models"
	"berth/models/store"
	"berth/models/store/storetest"
	"berth/money"
	"berth/wire"
)

// together launches n orders at the same moment and counts the answers by code;
// "" counts those that went through.
func (w *world) together(n int, order func(i int) fleet.Order) (codes map[string]int, made []models.Instance) {
	w.Helper()
	codes = map[string]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			in, err := w.fleet.Launch(w.ctx, order(i), w.now)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				codes[code(err)]++
				return
			}
			codes[""]++
			made = append(made, in)
		})
	}
	close(start)
	wg.Wait()
	return codes, made
}

// TestOneWalletManyLaunches is A17: the wallet covers one hold, or four of a
// hundred; each of the others is told what it had and needed.
func TestOneWalletManyLaunches(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		w := newWorld(t, st)
		w.join("gannet", cards("a100-80gb", uuids("GPU-%02d", 16)...)...)
		w.account("probe", 0)
		offers, err := w.fleet.Offers(w.ctx, "a100-80gb.1g.10gb", w.now)
		w.must(err)
		hold := offers[0].PricePerHour.Ceil(60)
		acc := w.account("acc_a", hold+hold/3)
		codes, _ := w.together(2, func(int) fleet.Order { return w.order(acc, "a100-80gb.1g.10gb") })
		if codes[""] != 1 || codes["insufficient_funds"] != 1 {
			t.Errorf("two at once: %v", codes)
		}
		if l := w.wallet(acc); l.Held != hold {
			t.Errorf("held %d, want %d", l.Held, hold)
		}
		_, err = w.fleet.Launch(w.ctx, w.order(acc, "a100-80gb.1g.10gb"), w.now)
		var p *models.Problem
		if !errors.As(err, &p) || p.Have == nil || *p.Have != hold/3 || *p.Need != hold {
			t.Errorf("have and need: %+v", p)
		}

		rich := w.account("acc_b", 4*hold)
		codes, _ = w.together(100, func(int) fleet.Order { return w.order(rich, "a100-80gb.1g.10gb") })
		if codes[""] != 4 || codes["insufficient_funds"] != 96 {
			t.Errorf("a hundred at once: %v", codes)
		}
		if l := w.wallet(rich); l.Held != 4*hold || l.Available() != 0 {
			t.Errorf("wallet %+v", l)
		}
		w.sound(acc, rich)
	})
}

// TestSpendersOfAllKinds is A17 where starts, restarts and launches race for what
// is left: three fit, and a restart that does not leaves the run as it was.
func TestSpendersOfAllKinds(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		w := newWorld(t, st)
		b := w.join("gannet", cards("a100-80gb", uuids("GPU-%02d", 16)...)...)
		acc := w.account("acc_a", 100*money.Unit)
		var act []func() error
		var running []models.Instance
		for i := range 8 {
			in := w.launch(w.order(acc, "a100-80gb"))
			o := b.run(in)
			if i >= 4 {
				running = append(running, in)
				act = append(act, func() error { return second(w.fleet.Restart(w.ctx, acc, in.ID, w.now)) })
				continue
			}
			w.must(second(w.fleet.Stop(w.ctx, acc, in.ID, w.now)))
			b.end(o, wire.ReasonAsked, nil)
			b.deliver()
			act = append(act, func() error { return second(w.fleet.Start(w.ctx, acc, in.ID, w.now)) },
				func() error { return second(w.fleet.Launch(w.ctx, w.order(acc, "a100-80gb"), w.now)) })
		}
		hold := running[0].PricePerHour.Ceil(60)
		w.fund(acc, 3*hold+hold/2-100*money.Unit, "away")
		codes := map[string]int{}
		var mu sync.Mutex
		var all sync.WaitGroup
		for _, try := range act {
			all.Go(func() {
				err := try()
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					codes[""]++
				} else {
					codes[code(err)]++
				}
			})
		}
		all.Wait()
		if codes[""] != 3 || codes["insufficient_funds"] != 9 {
			t.Errorf("%v", codes)
		}
		if l := w.wallet(acc); l.Held != 3*hold || l.Available() != hold/2 {
			t.Errorf("wallet %+v", l)
		}
		for _, in := range running {
			if v := w.instance(in); v.Run == 1 && (v.State != models.Running || w.span(in, 1).State != models.SpanRunning) {
				t.Errorf("a refused restart left it %s, its span %s", v.State, w.span(in, 1).State)
			}
		}
		w.sound(acc)
	})
}

// TestLastSliceManyLaunches: a hundred accounts, one slice left, then seven.
func TestLastSliceManyLaunches(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		w := newWorld(t, st)
		w.join("gannet", cards("rtx4090", "GPU-r")...)
		w.join("skua", cards("a100-80gb", "GPU-a")...)
		var accounts []models.AccountID
		for i := range 10 {
			accounts = append(accounts, w.account(models.AccountID(fmt.Sprintf("acc_%02d", i)), 100*money.Unit))
		}
		for sku, fits := range map[string]int{"rtx4090": 1, "a100-80gb.1g.10gb": 7} {
			codes, made := w.together(100, func(i int) fleet.Order { return w.order(accounts[i%10], sku) })
			if codes[""] != fits || codes["no_capacity"] != 100-fits {
				t.Errorf("%s: %v, want %d to go through", sku, codes, fits)
			}
			if n := w.available(sku); n != 0 {
				t.Errorf("%s: %d still offered", sku, n)
			}
			for _, in := range made {
				w.inState(in, models.Placing)
			}
		}
		w.sound(accounts...)
	})
}

// TestOneKeyOneInstance is C4: the same key, at once and again, is one instance;
// with another body it is refused.
func TestOneKeyOneInstance(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		w := newWorld(t, st)
		b := w.join("gannet", cards("a100-80gb", "GPU-a")...)
		acc := w.account("acc_a", 10*money.Unit)
		o := w.order(acc, "a100-80gb.1g.10gb")
		o.ClientKey, o.Env = "K", map[string]string{"A": "1", "B": "2"}
		codes, made := w.together(5, func(int) fleet.Order { return o })
		if codes[""] != 5 {
			t.Fatalf("%v", codes)
		}
		for _, in := range made {
			if in.ID != made[0].ID || in.Name != made[0].Name {
				t.Errorf("%s %s and %s %s", in.ID, in.Name, made[0].ID, made[0].Name)
			}
		}
		if list, _, _ := w.fleet.Instances(w.ctx, acc, fleet.InstanceFilter{}, "", 0); len(list) != 1 {
			t.Errorf("%d instances", len(list))
		}
		o.DiskGiB++
		if _, err := w.fleet.Launch(w.ctx, o, w.now); code(err) != "idempotency_reused" {
			t.Errorf("another body: %v", err)
		}
		// Refused for money, then paid for, then ended: the key is that instance's for
		// ever, also when what is not given is written out.
		poor := w.account("acc_c", 0)
		p := w.order(poor, "a100-80gb.1g.10gb")
		p.ClientKey = "K"
		if _, err := w.fleet.Launch(w.ctx, p, w.now); code(err) != "insufficient_funds" {
			t.Errorf("without money: %v", err)
		}
		w.fund(poor, money.Unit, "later")
		first := w.launch(p)
		p.BillingMode, p.Env, p.Command = models.OnDemand, map[string]string{}, []string{}
		if again := w.launch(p); again.ID != first.ID {
			t.Errorf("%s, then %s", first.ID, again.ID)
		}
		_, err := w.fleet.Terminate(w.ctx, poor, first.ID, w.now)
		w.must(err)
		b.answer()
		w.inState(first, models.Terminated)
		w.fund(poor, -money.Unit, "gone")
		if again := w.launch(p); again.ID != first.ID || again.State != models.Terminated {
			t.Errorf("%s, then %s, %s", first.ID, again.ID, again.State)
		}
		other := w.account("acc_b", 10*money.Unit)
		o.Account = other
		w.launch(o) // keys are an account's own
	})
}

func TestNames(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		w := newWorld(t, st)
		w.join("gannet", cards("a100-80gb", "GPU-a")...)
		acc := w.account("acc_a", 10*money.Unit)
		o := w.order(acc, "a100-80gb.1g.10gb")
		o.Name = "tern-04"
		codes, made := w.together(4, func(int) fleet.Order { return o })
		if codes[""] != 1 || codes["invalid"] != 3 {
			t.Fatalf("%v", codes)
		}
		_, err := w.fleet.Terminate(w.ctx, acc, made[0].ID, w.now)
		w.must(err)
		if _, err := w.fleet.Launch(w.ctx, o, w.now); code(err) != "invalid" || err.(*models.Problem).Fields["name"] == "" {
			t.Errorf("while the first is not terminated: %v", err)
		}
		seen := map[string]bool{}
		for range 5 {
			in := w.launch(w.order(acc, "a100-80gb.1g.10gb"))
			if seen[in.Name] || in.Name == "" {
				t.Errorf("made the name %q twice", in.Name)
			}
			seen[in.Name] = true
		}
	})
}

// TestTwoAccountsOneCard: placements are disjoint and counts follow geometry.
func TestTwoAccountsOneCard(t *testing.T) {
	w := newWorld(t, storetest.SQLite(t))
	w.join("gannet", cards("a100-80gb", "GPU-a")...)
	for i, sku := range []string{"a100-80gb.3g.40gb", "a100-80gb.2g.20gb", "a100-80gb.1g.10gb", "a100-80gb.1g.10gb"} {
		acc := w.account(models.AccountID(fmt.Sprintf("acc_%d", i)), 10*money.Unit)
		w.launch(w.order(acc, sku))
		w.sound(acc)
	}
	for _, sku := range []string{"a100-80gb", "a100-80gb.1g.10gb", "a100-80gb.2g.20gb", "a100-80gb.4g.40gb"} {
		if n := w.available(sku); n != 0 {
			t.Errorf("%s: %d offered on a full card", sku, n)
		}
	}
	_, err := w.fleet.Launch(w.ctx, w.order("acc_0", "a100-80gb"), w.now)
	var p *models.Problem
	if !errors.As(err, &p) || p.Code != models.NoCapacity || len(p.Alternatives) != 0 {
		t.Errorf("%+v", p)
	}
}

func uuids(format string, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf(format, i))
	}
	return out
}
