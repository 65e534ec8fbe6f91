package fleet_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"berth/gpu"
	"berth/models"
	"berth/models/store"
	"berth/models/store/storetest"
	"berth/money"
	"berth/wire"
)

// finish terminates an instance, on its node too.
func (b *box) finish(in models.Instance) {
	b.Helper()
	b.must(second(b.fleet.Terminate(b.ctx, in.AccountID, in.ID, b.now)))
	if o := b.has[string(in.ID)]; o != nil {
		b.end(o, wire.ReasonAsked, nil)
		b.gone(o)
	}
	b.deliver()
	b.answer()
}

func (w *world) availableTo(account models.AccountID, sku string) int {
	w.Helper()
	list, err := w.fleet.OffersTo(w.ctx, account, sku, w.now)
	w.must(err)
	if len(list) != 1 {
		w.Fatalf("%d offers of %s", len(list), sku)
	}
	return list[0].Available
}

// B6: shares of one request lie on different cards. B13: a card that one account has
// shares of is nobody else's, unless its operator lets accounts mix.
func TestShares(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		w := newWorld(t, st)
		b := w.join("kestrel", cards("rtx4090", "GPU-a", "GPU-b")...)
		one, two, three := w.account("acc_1", 100*money.Unit), w.account("acc_2", 100*money.Unit), w.account("acc_3", 100*money.Unit)
		free := func(account models.AccountID, want ...int) {
			t.Helper()
			for i, sku := range []string{"rtx4090", "rtx4090.ts4", "rtx4090.ts4.x2"} {
				if i < len(want) && w.availableTo(account, sku) != want[i] {
					t.Errorf("%s: %d of %s free, want %d", account, w.availableTo(account, sku), sku, want[i])
				}
			}
		}
		for _, sku := range []string{"rtx4090.ts4.x2"} { // groups have no default price
			w.must(st.InTx(w.ctx, func(tx *store.Tx) error {
				_, err := tx.AddPrice(models.Price{ID: "pri_x2", SKU: sku, BillingMode: models.OnDemand, PricePerHour: 1000, Currency: "USD", CreatedAt: w.now})
				return err
			}))
		}
		free("", 2, 8, 4)

		a := w.launch(w.order(one, "rtx4090.ts4"))
		b.run(a)
		a2 := w.launch(w.order(one, "rtx4090.ts4"))
		first, next := w.instance(a).Slices[0], w.instance(a2).Slices[0]
		if first.DeviceUUID != next.DeviceUUID || first.Start == next.Start || first.Size != 1 || first.MemoryMiB != 6141 {
			t.Errorf("%+v, then %+v", first.Lease, next.Lease)
		}
		free(one, 1, 6, 2)
		free(two, 1, 4, 0)
		// Shares of one request lie on different cards.
		pair := w.launch(w.order(one, "rtx4090.ts4.x2"))
		if got := w.instance(pair).Slices; len(got) != 2 || got[0].DeviceUUID == got[1].DeviceUUID {
			t.Errorf("%+v", got)
		}
		free(one, 0, 4, 1)
		free(two, 0, 0, 0)
		_, err := w.fleet.Launch(w.ctx, w.order(two, "rtx4090.ts4"), w.now)
		var p *models.Problem
		if !errors.As(err, &p) || p.Code != models.NoCapacity || !strings.Contains(p.What, "another account has a share") || len(p.Alternatives) > 0 {
			t.Errorf("beside another account: %+v", p)
		}

		// The operator may let accounts share a card, when nobody was told otherwise.
		other := w.instance(pair).Slices[0].DeviceUUID
		if other == first.DeviceUUID {
			other = w.instance(pair).Slices[1].DeviceUUID
		}
		if _, err := w.fleet.SetSharing(w.ctx, other, "", true, w.now); code(err) != "conflict" {
			t.Errorf("mixed under a renter: %v", err)
		}
		b.finish(pair)
		w.must(second(w.fleet.SetSharing(w.ctx, other, "", true, w.now)))
		pair = w.launch(w.order(one, "rtx4090.ts4.x2"))
		in := w.launch(w.order(two, "rtx4090.ts4"))
		if got := w.instance(in).Slices[0].DeviceUUID; got != other {
			t.Errorf("it landed on %s", got)
		}
		// What renters were told stays so; and all shares are sold, not one more.
		for name, want := range map[string]string{"ts2": "conflict", models.SharingNone: "conflict", "ts1": "invalid", "mig": "invalid"} {
			if _, err := w.fleet.SetSharing(w.ctx, other, name, false, w.now); code(err) != want {
				t.Errorf("set to %s: %v", name, err)
			}
		}
		if _, err := w.fleet.SetSharing(w.ctx, "GPU-none", "ts2", false, w.now); code(err) != "not_found" {
			t.Error(err)
		}
		for range w.availableTo(three, "rtx4090.ts4") {
			w.launch(w.order(three, "rtx4090.ts4"))
		}
		if _, err := w.fleet.Launch(w.ctx, w.order(three, "rtx4090.ts4"), w.now); code(err) != "no_capacity" {
			t.Errorf("one more than there are: %v", err)
		}
		w.sound(one, two, three)

		// What nodes report of shares is explained.
		b.run(a2)
		b.run(pair)
		b.connect()
		list, err := w.fleet.Devices(w.ctx)
		w.must(err)
		for _, d := range list {
			if d.Foreign != nil {
				t.Errorf("%s: %v are taken for somebody else's", d.UUID, d.Foreign)
			}
		}
	})
}

func TestSharingExcludesSlices(t *testing.T) {
	w := newWorld(t, storetest.SQLite(t))
	b := w.join("kestrel", cards("a100-80gb", "GPU-a", "GPU-b")...)
	acc := w.account("acc_a", 100*money.Unit)
	slice := w.launch(w.order(acc, "a100-80gb.1g.10gb"))
	b.run(slice)
	on := w.instance(slice).Slices[0].DeviceUUID
	if _, err := w.fleet.SetSharing(w.ctx, on, "ts2", false, w.now); code(err) != "conflict" {
		t.Errorf("a card in slices: %v", err)
	}
	b.finish(slice)
	for _, uuid := range []string{"GPU-a", "GPU-b"} {
		w.must(second(w.fleet.SetSharing(w.ctx, uuid, "ts2", false, w.now)))
	}
	offers, err := w.fleet.Offers(w.ctx, "", w.now)
	w.must(err)
	var ids []string
	for _, o := range offers {
		ids = append(ids, o.SKU.ID)
	}
	if !slices.Equal(ids, []string{"a100-80gb", "a100-80gb.ts2"}) || offers[1].PricePerHour != 1_000_000 || offers[1].Available != 4 {
		t.Errorf("%v: %+v", ids, offers)
	}
	if _, err := w.fleet.Launch(w.ctx, w.order(acc, "a100-80gb.1g.10gb"), w.now); code(err) != "no_capacity" {
		t.Errorf("a slice of a shared card: %v", err)
	}
	if _, err := w.fleet.PlanLayout(w.ctx, "GPU-a", []string{"1g.10gb"}); code(err) != "invalid" {
		t.Errorf("a shared card is divided: %v", err)
	}
	w.must(second(w.fleet.SetSharing(w.ctx, "GPU-a", models.SharingNone, false, w.now)))
	w.must(second(w.fleet.SetLayout(w.ctx, "GPU-a", []string{"1g.10gb"})))
	if _, err := w.fleet.SetSharing(w.ctx, "GPU-a", "ts2", false, w.now); code(err) != "conflict" {
		t.Errorf("a divided card is shared: %v", err)
	}
}

// An agent from before shares is not asked for any.
func TestSharesOfAnOlderAgent(t *testing.T) {
	w := newWorld(t, storetest.SQLite(t))
	b := w.join("kestrel", cards("rtx4090", "GPU-a")...)
	b.host.Sharing = nil
	b.connect()
	if list, err := w.fleet.Offers(w.ctx, "", w.now); err != nil || len(list) != 1 || list[0].SKU.ID != "rtx4090" || list[0].Available != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	acc := w.account("acc_a", 100*money.Unit)
	if _, err := w.fleet.Launch(w.ctx, w.order(acc, "rtx4090.ts4"), w.now); code(err) != "no_capacity" {
		t.Error(err)
	}
	w.launch(w.order(acc, "rtx4090"))
}

// TestSharesNeverTooMany launches and ends whole cards and shares of several accounts
// in any order: there is never more on a card than it has, and what is offered to
// an account is what it can launch.
func TestSharesNeverTooMany(t *testing.T) {
	w := newWorld(t, storetest.SQLite(t))
	b := w.join("kestrel", cards("rtx4090", "GPU-a", "GPU-b", "GPU-c")...)
	w.must(second(w.fleet.SetSharing(w.ctx, "GPU-b", "ts3", false, w.now)))
	w.must(second(w.fleet.SetSharing(w.ctx, "GPU-c", "", true, w.now)))
	accounts := []models.AccountID{w.account("acc_1", 500*money.Unit), w.account("acc_2", 500*money.Unit), w.account("acc_3", 500*money.Unit)}
	random := rand.New(rand.NewPCG(1, 2))
	var live []models.Instance
	launched := map[string]int{}
	for range 250 {
		if len(live) > 0 && random.IntN(5) < 2 {
			i := random.IntN(len(live))
			b.finish(live[i])
			live = slices.Delete(live, i, i+1)
		} else {
			account, sku := accounts[random.IntN(3)], []string{"rtx4090", "rtx4090.ts4", "rtx4090.ts4", "rtx4090.ts3"}[random.IntN(4)]
			before := w.availableTo(account, sku)
			in, err := w.fleet.Launch(w.ctx, w.order(account, sku), w.now)
			if (err == nil) != (before > 0) || err != nil && code(err) != "no_capacity" {
				t.Fatalf("%d of %s offered to %s: %v", before, sku, account, err)
			}
			if err == nil {
				live = append(live, in)
				launched[sku]++
			}
		}
		devices, err := w.fleet.Devices(w.ctx)
		w.must(err)
		for _, d := range devices {
			kinds, holders := map[string]bool{}, map[models.AccountID]bool{}
			for _, l := range d.Leases {
				kinds[l.Profile], holders[l.AccountID] = true, true
			}
			if len(kinds) > 1 || kinds[gpu.Whole] && len(d.Leases) > 1 || len(d.Leases) > d.Share().N || len(holders) > 1 && !d.Mixed {
				t.Fatalf("%s has %+v", d.UUID, d.Leases)
			}
		}
		w.sound(accounts...)
	}
	if len(launched) != 3 {
		t.Error(fmt.Sprint("not all were launched: ", launched))
	}
}

// B6 as it was met: one card has two shares free, the other none.
func TestTwoSharesNeedTwoCards(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		w := newWorld(t, st)
		w.join("kestrel", cards("rtx4090", "GPU-a", "GPU-b")...)
		w.must(st.InTx(w.ctx, func(tx *store.Tx) error {
			_, err := tx.AddPrice(models.Price{ID: "pri_x2", SKU: "rtx4090.ts4.x2", BillingMode: models.OnDemand, PricePerHour: 1000, Currency: "USD", CreatedAt: w.now})
			return err
		}))
		acc := w.account("acc_a", 100*money.Unit)
		w.launch(w.order(acc, "rtx4090"))
		w.launch(w.order(acc, "rtx4090.ts4"))
		w.launch(w.order(acc, "rtx4090.ts4"))
		if n := w.availableTo(acc, "rtx4090.ts4"); n != 2 {
			t.Fatalf("%d shares free", n)
		}
		if _, err := w.fleet.Launch(w.ctx, w.order(acc, "rtx4090.ts4.x2"), w.now); code(err) != "no_capacity" || !strings.Contains(err.Error(), "needs 2 different cards") || !strings.Contains(err.Error(), "best has 1") {
			t.Errorf("%v", err)
		}
	})
}
