package fleet_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"berth/fleet"
	"berth/gpu"
	"berth/models"
	"berth/models/store"
	"berth/models/store/storetest"
	"berth/money"
	"berth/wire"
)

func TestJoin(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		w := newWorld(t, st)
		key := func(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }
		join := func(token string, name string, k []byte) (wire.JoinResponse, error) {
			return w.fleet.Join(w.ctx, wire.JoinRequest{Token: token, Name: name, PublicKey: k, Version: wire.Version}, w.now)
		}
		token, row, err := w.fleet.CreateJoinToken(w.ctx, "usr", w.now)
		w.must(err)
		if strings.Contains(row.Hash, token) || row.ExpiresAt != w.now.Add(time.Hour) {
			t.Errorf("%+v", row)
		}
		var mu sync.Mutex
		var wg sync.WaitGroup
		joined, refused := map[wire.JoinResponse]bool{}, 0
		for i := range 10 {
			wg.Go(func() { // one token, ten nodes at once
				got, err := join(token, "gannet", key(byte(i)))
				mu.Lock()
				defer mu.Unlock()
				if code(err) == "unauthorized" {
					refused++
				} else if err == nil {
					joined[got] = true
				}
			})
		}
		wg.Wait()
		if len(joined) != 1 || refused != 9 {
			t.Fatalf("%d joined, %d refused", len(joined), refused)
		}
		for got := range joined {
			k, err := w.fleet.NodeKey(w.ctx, models.NodeID(got.NodeID))
			w.must(err)
			again, err := join(token, "other", k)
			if err != nil || again != got {
				t.Errorf("the same node asking again: %+v, %v", again, err)
			}
		}
		token, _, err = w.fleet.CreateJoinToken(w.ctx, "usr", w.now)
		w.must(err)
		for name, tc := range map[string]struct {
			token string
			key   []byte
			code  string
		}{
			"unknown token": {"bjt_x", key(90), "unauthorized"},
			"no token":      {"", key(91), "unauthorized"},
			"short key":     {token, key(92)[:31], "invalid"},
			"no key":        {token, nil, "invalid"},
		} {
			if _, err := join(tc.token, "x", tc.key); code(err) != tc.code {
				t.Errorf("%s: %v", name, err)
			}
		}
		got, err := join(token, "Gannet", key(100))
		if err != nil || got.Name != "gannet-2" {
			t.Errorf("%+v, %v", got, err)
		}
		token, _, err = w.fleet.CreateJoinToken(w.ctx, "usr", w.now)
		w.must(err)
		if _, err := join(token, "x", key(100)); code(err) != "conflict" {
			t.Errorf("a key twice: %v", err)
		}
		w.pass(time.Hour)
		if _, err := join(token, "x", key(101)); code(err) != "unauthorized" || !strings.Contains(err.Error(), "expired") {
			t.Errorf("an expired token: %v", err)
		}
		if _, err := w.fleet.Join(w.ctx, wire.JoinRequest{Token: token, PublicKey: key(102), Version: 99}, w.now); code(err) != "conflict" {
			t.Errorf("another version: %v", err)
		}
	})
}

// TestWhatIsSold: from healthy cards of known models on online nodes, nothing else.
func TestWhatIsSold(t *testing.T) {
	w := newWorld(t, storetest.SQLite(t))
	if list, err := w.fleet.Offers(w.ctx, "", w.now); err != nil || len(list) != 0 {
		t.Fatalf("%v, %v", list, err)
	}
	devices := append(cards("a100-80gb", "GPU-a", "GPU-b"), cards("rtx4090", "GPU-r")...)
	devices = append(devices, wire.Device{UUID: "GPU-x", Model: "quantum-1", Name: "Quantum One", Health: "ok"})
	b := w.join("gannet", devices...)
	list, err := w.fleet.Offers(w.ctx, "", w.now)
	w.must(err)
	got := map[string]fleet.Offer{}
	for _, o := range list {
		got[o.SKU.ID] = o
	}
	small, whole := got["a100-80gb.1g.10gb"], got["a100-80gb"]
	if small.Available != 14 || small.Total != 14 || whole.Available != 2 || got["rtx4090"].Available != 1 || got["a100-80gb.3g.40gb"].Available != 4 {
		t.Errorf("%+v", got)
	}
	if small.ID != "a100-80gb.1g.10gb:on_demand" || small.Currency != "USD" || small.PricePerHour <= 0 || small.PricePerHour >= whole.PricePerHour || !small.Simulated {
		t.Errorf("%+v", small)
	}
	// A quarter of the host for a card of four, an eighth of that for 1g.
	if whole.MilliCPU != 16_000 || small.MilliCPU != 2_000 || whole.MemoryMiB != 128<<10 || small.MemoryMiB != 16<<10 {
		t.Errorf("shares %d, %d, %d, %d", whole.MilliCPU, small.MilliCPU, whole.MemoryMiB, small.MemoryMiB)
	}
	if two, err := w.fleet.Offers(w.ctx, "a100-80gb.x2", w.now); err != nil || len(two) != 1 || two[0].Available != 1 || two[0].PricePerHour != 2*whole.PricePerHour || two[0].MilliCPU != 32_000 {
		t.Errorf("two cards at once: %+v, %v", two, err)
	}
	b.devices[1].Health = "XID 79"
	b.answer()
	if n := w.available("a100-80gb.1g.10gb"); n != 7 {
		t.Errorf("%d beside a sick card, want 7", n)
	}
	b.devices = b.devices[:1]
	b.answer()
	if n := w.available("a100-80gb.1g.10gb"); n != 7 {
		t.Errorf("%d after cards were taken out, want 7", n)
	}
	all, err := w.fleet.Devices(w.ctx)
	w.must(err)
	states := map[string]string{}
	for _, d := range all {
		states[d.UUID] = d.State
	}
	if states["GPU-a"] != models.DeviceOK || states["GPU-b"] != models.DeviceAbsent || states["GPU-x"] != models.DeviceAbsent {
		t.Errorf("%v", states)
	}
	if images, err := w.fleet.Images(w.ctx); err != nil || len(images) != 1 || images[0] != "host" {
		t.Errorf("%v, %v", images, err)
	}
	landing, err := w.fleet.Preview(w.ctx, "", "a100-80gb.1g.10gb")
	w.must(err)
	if landing.Node.Name != "gannet" || len(landing.Slices) != 1 || landing.Why == "" || landing.MaxDiskGiB != 4000 || len(landing.Images) != 1 {
		t.Errorf("%+v", landing)
	}
	b.disconnect()
	if n := w.available("a100-80gb.1g.10gb"); n != 0 {
		t.Errorf("%d on a node that is away", n)
	}
	if _, err := w.fleet.Preview(w.ctx, "", "a100-80gb.1g.10gb"); code(err) != "no_capacity" {
		t.Error(err)
	}
	if _, err := w.fleet.Preview(w.ctx, "", "nonsense"); code(err) != "invalid" {
		t.Error(err)
	}
	b.sendTick() // the link lives after all
	if n := w.available("a100-80gb.1g.10gb"); n != 7 {
		t.Errorf("%d after a tick, want 7", n)
	}
}

// TestDiskAndImageArePartOfPlacement: refused beside the field, with what can be had.
func TestDiskAndImageArePartOfPlacement(t *testing.T) {
	w := newWorld(t, storetest.SQLite(t))
	b := w.join("gannet", cards("a100-80gb", "GPU-a")...)
	b.host.DiskGiB = 100
	b.connect()
	acc := w.account("acc_a", 10*money.Unit)
	o := w.order(acc, "a100-80gb.1g.10gb")
	o.DiskGiB = 60
	w.launch(o)
	_, err := w.fleet.Launch(w.ctx, o, w.now)
	if code(err) != "invalid" || !strings.Contains(err.(*models.Problem).Fields["disk_gib"], "40 GiB") {
		t.Errorf("%v", err)
	}
	o.DiskGiB, o.Image = 40, "nothing"
	if _, err = w.fleet.Launch(w.ctx, o, w.now); code(err) != "invalid" || !strings.Contains(err.(*models.Problem).Fields["image"], "host") {
		t.Errorf("%v", err)
	}
	o.Image = ""
	if in := w.launch(o); in.Image != "host" || in.MilliCPU != 8000 {
		t.Errorf("%+v", in)
	}
	o.DiskGiB = 1
	if _, err = w.fleet.Launch(w.ctx, o, w.now); code(err) != "no_capacity" {
		t.Errorf("%v", err)
	}
}

// TestNextDesiredWaits: no polling; a change of the node's own, and only that, wakes.
func TestNextDesiredWaits(t *testing.T) {
	w := newWorld(t, storetest.SQLite(t))
	b := w.join("gannet", cards("a100-80gb", "GPU-a")...)
	w.join("skua", cards("rtx4090", "GPU-r")...)
	acc := w.account("acc_a", 10*money.Unit)
	first := b.desired()
	got := make(chan wire.Desired)
	go func() {
		d, err := w.fleet.NextDesired(w.ctx, b.id, first.Generation)
		if err != nil {
			t.Error(err)
		}
		got <- d
	}()
	w.launch(w.order(acc, "rtx4090")) // the other node's
	in := w.launch(w.order(acc, "a100-80gb.1g.10gb"))
	select {
	case d := <-got:
		if len(d.Instances) != 1 || d.Instances[0].ID != string(in.ID) || d.Instances[0].PaidSeconds < 60 || len(d.Instances[0].Slices) != 1 || d.Generation <= first.Generation {
			t.Errorf("%+v", d)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("not woken")
	}
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	if _, err := w.fleet.NextDesired(ctx, b.id, 1<<40); err == nil {
		t.Error("it does not end with its context")
	}
	if _, err := w.fleet.NextDesired(w.ctx, "nod_none", -1); code(err) != "not_found" {
		t.Error(err)
	}
}

// TestRun: the worker lengthens what may run when money comes in, for accounts
// that were there and those that came later, and leaves nothing behind.
func TestRun(t *testing.T) {
	w := newWorld(t, storetest.SQLite(t))
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	w.now = models.At(time.Now()) // the worker's clock
	b := w.join("gannet", cards("a100-80gb", "GPU-a")...)
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan error)
	early := w.account("acc_a", money.Unit)
	one := w.launch(w.order(early, "a100-80gb.1g.10gb"))
	go func() { done <- w.fleet.Run(ctx) }()
	late := w.account("acc_b", money.Unit)
	two := w.launch(w.order(late, "a100-80gb.1g.10gb"))
	for _, in := range []models.Instance{one, two} {
		before := b.wanted(in).PaidSeconds
		gen := b.gen
		w.fund(in.AccountID, money.Unit, "more")
		for b.wanted(in).PaidSeconds <= before {
			wait, stop := context.WithTimeout(w.ctx, 30*time.Second)
			d, err := w.fleet.NextDesired(wait, b.id, gen)
			stop()
			w.must(err)
			gen = d.Generation
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestPullProgress: bytes reach the instance once a second, and pages are woken.
func TestPullProgress(t *testing.T) {
	w := newWorld(t, storetest.SQLite(t))
	b := w.join("gannet", cards("a100-80gb", "GPU-a")...)
	acc := w.account("acc_a", money.Unit)
	in := w.launch(w.order(acc, "a100-80gb.1g.10gb"))
	o := b.take(in, wire.PhasePulling)
	b.deliver()
	watch := w.st.Watch("instance:" + string(in.ID))
	defer watch.Close()
	o.Progress = wire.Progress{Done: 100, Total: 1000}
	b.count(1)
	if v := w.inState(in, models.Pulling); v.PullDone != 100 || v.PullTotal != 1000 {
		t.Errorf("%d of %d", v.PullDone, v.PullTotal)
	}
	select {
	case <-watch.C():
	default:
		t.Error("nobody was woken")
	}
}

func TestSlicesMadeByOthersAreNotSold(t *testing.T) {
	w := newWorld(t, storetest.SQLite(t))
	b := w.join("gannet", cards("h100-80gb", "GPU-h")...)
	for i, start := range []int{0, 1, 5} { // case B2
		id := string(rune('a' + i))
		b.has[id] = &wire.Observed{ID: id, Run: 1, Phase: wire.PhaseRunning, Slices: []wire.Slice{{DeviceUUID: "GPU-h", Placement: gpu.Placement{Profile: "1g.10gb", Start: start, Size: 1}}}}
	}
	w.fleet = fleet.New(w.st, w.bill, fleet.Config{StartedAt: w.now}, quiet())
	b.connect()
	for sku, want := range map[string]int{"h100-80gb.1g.10gb": 4, "h100-80gb.1g.20gb": 2, "h100-80gb.2g.20gb": 1, "h100-80gb.3g.40gb": 0, "h100-80gb.4g.40gb": 0, "h100-80gb": 0} {
		if n := w.available(sku); n != want {
			t.Errorf("%s: %d, want %d", sku, n, want)
		}
	}
	acc := w.account("acc_a", money.Unit)
	in := w.launch(w.order(acc, "h100-80gb.1g.10gb"))
	if v := w.instance(in); v.Slices[0].Start != 4 {
		t.Errorf("at %d, want 4", v.Slices[0].Start)
	}
}

// B14: one bad card of eight does not close its host; its renter alone is hit.
func TestOneBadCardOfEight(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		w := newWorld(t, st)
		b := w.join("kestrel", cards("h100-80gb", "GPU-0", "GPU-1", "GPU-2", "GPU-3", "GPU-4", "GPU-5", "GPU-6", "GPU-7")...)
		acc := w.account("acc_a", 100*money.Unit)
		hit, other := w.launch(w.order(acc, "h100-80gb")), w.launch(w.order(acc, "h100-80gb"))
		o := b.run(hit)
		b.run(other)
		b.count(7)
		card := w.instance(hit).Slices[0].DeviceUUID
		for i := range b.devices {
			if b.devices[i].UUID == card {
				b.devices[i].Health = "Xid 79: the GPU has fallen off the bus"
			}
		}
		b.end(o, wire.ReasonFault, nil)
		b.connect()
		if v := w.inState(hit, models.Failed); v.Span.Cursor != 7 || !strings.Contains(v.Detail, "The GPU under it failed") {
			t.Errorf("%d s, %s", v.Span.Cursor, v.Detail)
		}
		w.inState(other, models.Running)
		if n := w.available("h100-80gb"); n != 6 {
			t.Errorf("%d of the six well and free ones are sold", n)
		}
		again, err := w.fleet.Start(w.ctx, acc, hit.ID, w.now) // one click moves it
		w.must(err)
		if got := w.instance(again).Slices[0].DeviceUUID; got == card {
			t.Error("it was started on the card that failed")
		}
		w.sound(acc)
	})
}
