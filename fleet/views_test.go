package fleet_test

import (
	"testing"
	"time"

	"berth/fleet"
	"berth/models"
	"berth/models/store/storetest"
	"berth/money"
)

func TestViews(t *testing.T) {
	w := newWorld(t, storetest.SQLite(t))
	b := w.join("gannet", cards("a100-80gb", "GPU-a")...)
	acc, other := w.account("acc_a", 10*money.Unit), w.account("acc_b", 10*money.Unit)
	mine := w.launch(w.order(acc, "a100-80gb.1g.10gb"))
	theirs := w.launch(w.order(other, "a100-80gb.2g.20gb"))
	b.run(mine)
	v := w.instance(mine)
	if v.NodeName != "gannet" || !v.Simulated || len(v.Slices) != 1 || v.Slices[0].Model.ID != "a100-80gb" || len(v.Slices[0].Others) != 1 || v.Slices[0].MemoryMiB != 9856 {
		t.Errorf("%+v", v)
	}
	for _, err := range []error{
		second(w.fleet.Instance(w.ctx, acc, theirs.ID)), second(w.fleet.Events(w.ctx, acc, theirs.ID, 0)),
		second(w.fleet.Stop(w.ctx, acc, theirs.ID, w.now)), second(w.fleet.Start(w.ctx, acc, theirs.ID, w.now)),
	} {
		if code(err) != "not_found" {
			t.Errorf("another account's instance: %v", err)
		}
	}
	for range 3 {
		w.pass(time.Second)
		w.launch(w.order(acc, "a100-80gb.1g.10gb"))
	}
	seen := map[models.InstanceID]bool{}
	cursor, pages := "", 0
	for ; pages == 0 || cursor != ""; pages++ {
		list, next, err := w.fleet.Instances(w.ctx, acc, fleet.InstanceFilter{}, cursor, 3)
		w.must(err)
		for _, v := range list {
			seen[v.ID] = true
		}
		cursor = next
	}
	if len(seen) != 4 || pages != 2 {
		t.Errorf("%d instances on %d pages", len(seen), pages)
	}
	if list, _, _ := w.fleet.Instances(w.ctx, acc, fleet.InstanceFilter{States: []models.InstanceState{models.Running}}, "", 0); len(list) != 1 {
		t.Errorf("%d running", len(list))
	}
	node, on, err := w.fleet.Node(w.ctx, b.id)
	w.must(err)
	if len(on) != 5 || node.Instances != 5 || len(node.Devices) != 1 || len(node.Devices[0].Leases) != 5 || node.HostInfo.Name != "gannet" {
		t.Errorf("%d on %+v", len(on), node)
	}
	if _, _, err := w.fleet.Node(w.ctx, "nod_none"); code(err) != "not_found" {
		t.Error(err)
	}
	stopped, refused, err := w.fleet.StopMany(w.ctx, acc, []models.InstanceID{mine.ID, theirs.ID}, w.now)
	if err != nil || len(stopped) != 1 || code(refused[theirs.ID]) != "not_found" {
		t.Errorf("stopped %d, refused %v, %v", len(stopped), refused, err)
	}
}

func second[T any](_ T, err error) error { return err }

// TestLiveReadings: a tick reaches the rings of instance and card, and the feeds;
// what was not measured stays so.
func TestLiveReadings(t *testing.T) {
	w := newWorld(t, storetest.SQLite(t))
	b := w.join("gannet", cards("a100-80gb", "GPU-a")...)
	acc := w.account("acc_a", 10*money.Unit)
	in := w.launch(w.order(acc, "a100-80gb.1g.10gb"))
	b.run(in)
	b.count(1)
	kept := w.fleet.Samples(fleet.OfInstance(in.ID), 0)
	var next fleet.Reading
	leave := w.fleet.Subscribe([]fleet.Subject{fleet.OfInstance(in.ID)}, func(list []fleet.Reading) { next = list[0] })
	b.count(1)
	leave()
	if len(kept) != 1 || next.Seq != kept[0].Seq+1 || next.Seconds != 2 || next.Run != 1 || *next.UtilizationPercent != 12.5 || next.PowerW != nil {
		t.Errorf("%+v then %+v", kept, next)
	}
	if got := w.fleet.Samples(fleet.OfInstance(in.ID), kept[0].Seq); len(got) != 1 || got[0].Seq != next.Seq {
		t.Errorf("%+v", got)
	}
	if got := w.fleet.Samples(fleet.OfCard(b.id, "GPU-a"), 0); len(got) != 2 || *got[0].TemperatureC != 40 || got[0].UtilizationPercent != nil {
		t.Errorf("%+v", got)
	}
}
