package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"berth/gpu"
	"berth/models"
	"berth/models/store"
	"berth/models/store/storetest"
)

func anInstance(id, name string) models.Instance {
	return models.Instance{ID: models.InstanceID(id), AccountID: "acc_a", NodeID: "nod_a", Name: name, SKU: "rtx4090", BillingMode: models.OnDemand,
		State: models.Placing, Want: models.WantRunning, Run: 1, DiskGiB: 7}
}

func aLease(id string, in models.InstanceID, start, size int) models.Lease {
	return models.Lease{ID: id, InstanceID: in, AccountID: "acc_a", NodeID: "nod_a", DeviceUUID: "GPU-a", Profile: "p", Start: start, Size: size, CreatedAt: 1}
}

func TestInstanceRows(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, s *store.Store) {
		ctx := context.Background()
		in := func(work func(tx *store.Tx) error) error { return s.InTx(ctx, work) }
		first := anInstance("ins_1", "tern")
		first.ClientKey, first.Env, first.Command = "K", map[string]string{"A": "ü"}, []string{"sh", "-c", "x"}
		if err := in(func(tx *store.Tx) error { return tx.InsertInstance(first) }); err != nil {
			t.Fatal(err)
		}
		sameKey := anInstance("ins_2", "gull")
		sameKey.ClientKey = "K"
		for name, row := range map[string]models.Instance{"name": anInstance("ins_3", "tern"), "client key": sameKey} {
			if err := in(func(tx *store.Tx) error { return tx.InsertInstance(row) }); !errors.Is(err, store.ErrDuplicate) {
				t.Errorf("the same %s twice: %v", name, err)
			}
		}
		err := in(func(tx *store.Tx) error {
			got, found, err := tx.InstanceByClientKey("acc_a", "K")
			if err != nil || !found || got.Env["A"] != "ü" || len(got.Command) != 3 {
				t.Errorf("%+v, %v, %v", got, found, err)
			}
			if _, found, err := tx.InstanceByClientKey("acc_b", "K"); found || err != nil {
				t.Errorf("another account's key: %v, %v", found, err)
			}
			got.State, got.Detail, got.Run = models.Terminated, "gone", 2
			if err := tx.SaveInstance(got, models.Placing, 1); err != nil {
				return err
			}
			if err := tx.SaveInstance(got, models.Placing, 1); !errors.Is(err, models.ErrStale) {
				t.Errorf("the slower of two: %v", err)
			}
			return tx.InsertInstance(anInstance("ins_4", "tern")) // its name is free again
		})
		if err != nil {
			t.Fatal(err)
		}
		err = s.View(ctx, func(tx *store.Tx) error {
			got, err := tx.Instance("ins_1")
			if err != nil || got.State != models.Terminated || got.Run != 2 || got.Detail != "gone" || got.DiskGiB != 7 {
				t.Errorf("%+v, %v", got, err)
			}
			if _, err := tx.Instance("ins_none"); !models.HasCode(err, models.NotFound) {
				t.Error(err)
			}
			names, err := tx.LiveNames("acc_a")
			if err != nil || !slices.Equal(names, []string{"tern"}) {
				t.Errorf("%v, %v", names, err)
			}
			disks, err := tx.DiskPerNode()
			if err != nil || disks["nod_a"] != 7 {
				t.Errorf("%v, %v", disks, err)
			}
			accounts, err := tx.ActiveAccounts()
			if err != nil || !slices.Equal(accounts, []models.AccountID{"acc_a"}) {
				t.Errorf("%v, %v", accounts, err)
			}
			runs, err := tx.ActiveRuns("nod_a")
			if err != nil || len(runs) != 1 || runs[0].ID != "ins_4" || runs[0].Run != 1 {
				t.Errorf("%+v, %v", runs, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestInstancePagesAndEvents(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, s *store.Store) {
		ctx := context.Background()
		err := s.InTx(ctx, func(tx *store.Tx) error {
			for i := range 7 {
				row := anInstance(fmt.Sprintf("ins_%d", i), fmt.Sprintf("n-%d", i))
				if i == 3 {
					row.State = models.Failed
				}
				if err := tx.InsertInstance(row); err != nil {
					return err
				}
			}
			for i := range 3 {
				if err := tx.AddInstanceEvent(models.InstanceEvent{InstanceID: "ins_1", At: models.Instant(i), Kind: "placed"}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		err = s.View(ctx, func(tx *store.Tx) error {
			var ids []models.InstanceID
			cursor := ""
			for page := 0; page == 0 || cursor != ""; page++ {
				list, next, err := tx.AccountInstances("acc_a", []models.InstanceState{models.Placing}, cursor, 3)
				if err != nil {
					return err
				}
				for _, in := range list {
					ids = append(ids, in.ID)
				}
				cursor = next
			}
			if want := []models.InstanceID{"ins_6", "ins_5", "ins_4", "ins_2", "ins_1", "ins_0"}; !slices.Equal(ids, want) {
				t.Errorf("%v", ids)
			}
			events, err := tx.InstanceEvents("ins_1", 1, 10)
			if err != nil || len(events) != 2 || events[0].Seq != 2 || events[1].Seq != 3 {
				t.Errorf("%+v, %v", events, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// TestNoUnitIsLeasedTwice: the primary key decides, also between racing
// transactions that took no other lock.
func TestNoUnitIsLeasedTwice(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, s *store.Store) {
		ctx := context.Background()
		var wg sync.WaitGroup
		var mu sync.Mutex
		took, refused := 0, 0
		for i := range 20 {
			wg.Go(func() {
				id := fmt.Sprintf("lea_%d", i)
				err := s.InTx(ctx, func(tx *store.Tx) error {
					return tx.TakeLeases([]models.Lease{aLease(id, models.InstanceID(id), i%3, 2)}) // all of 0, 1, 2 want unit 2 or meet at it
				})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					took++
				case errors.Is(err, store.ErrDuplicate):
					refused++
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if took < 1 || took > 2 || took+refused != 20 {
			t.Errorf("%d took, %d were refused", took, refused)
		}
		err := s.InTx(ctx, func(tx *store.Tx) error {
			held, err := tx.HeldLeases()
			if err != nil || len(held) != took {
				t.Errorf("%d rows for %d leases: %v", len(held), took, err)
			}
			for _, l := range held {
				released, err := tx.ReleaseLeases(l.InstanceID, 5)
				if err != nil || len(released) != 1 || released[0].Placement() != (gpu.Placement{Profile: "p", Start: l.Start, Size: 2}) {
					t.Errorf("%+v, %v", released, err)
				}
				if again, err := tx.ReleaseLeases(l.InstanceID, 6); err != nil || again != nil {
					t.Errorf("released twice: %+v, %v", again, err)
				}
			}
			return tx.TakeLeases([]models.Lease{aLease("lea_x", "ins_x", 0, 8)})
		})
		if err != nil {
			t.Fatal(err)
		}
		err = s.View(ctx, func(tx *store.Tx) error {
			for name, read := range map[string]func() ([]models.Lease, error){
				"node":     func() ([]models.Lease, error) { return tx.NodeLeases("nod_a") },
				"instance": func() ([]models.Lease, error) { return tx.InstanceLeases([]models.InstanceID{"ins_x", "ins_y"}) },
				"device":   func() ([]models.Lease, error) { return tx.DeviceLeases([]string{"GPU-a"}) },
			} {
				if list, err := read(); err != nil || len(list) != 1 || list[0].ID != "lea_x" {
					t.Errorf("by %s: %+v, %v", name, list, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestNodesAndDevices(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, s *store.Store) {
		ctx := context.Background()
		node := models.Node{ID: "nod_a", Name: "gannet", PublicKey: []byte("a"), State: models.NodeOffline, Host: []byte("{}"), SeenAt: 10}
		if err := s.InTx(ctx, func(tx *store.Tx) error { return tx.InsertNode(node) }); err != nil {
			t.Fatal(err)
		}
		for _, n := range []models.Node{{ID: "nod_b", Name: "gannet", PublicKey: []byte("b")}, {ID: "nod_b", Name: "skua", PublicKey: []byte("a")}} {
			n.Host = []byte("{}")
			if err := s.InTx(ctx, func(tx *store.Tx) error { return tx.InsertNode(n) }); !errors.Is(err, store.ErrDuplicate) {
				t.Errorf("%s: %v", n.Name, err)
			}
		}
		watch := s.Watch("node:nod_a")
		defer watch.Close()
		err := s.InTx(ctx, func(tx *store.Tx) error {
			locked, err := tx.LockNode("nod_a")
			if err != nil {
				return err
			}
			if err := tx.BumpNode("nod_a"); err != nil {
				return err
			}
			if err := tx.TouchNode(locked, 20); err != nil {
				return err
			}
			if err := tx.SetEventSeq("nod_a", 7, 21); err != nil {
				return err
			}
			one := models.Device{UUID: "GPU-1", Index: 1, Model: "rtx4090", State: models.DeviceOK}
			two := models.Device{UUID: "GPU-0", Index: 0, Model: "a100-80gb", State: models.DeviceOK, Slices: []gpu.Placement{{Profile: "1g.10gb", Start: 3, Size: 1}}}
			if err := tx.PutDevices("nod_a", []models.Device{one, two}); err != nil {
				return err
			}
			two.Name = "renamed"
			return tx.PutDevices("nod_a", []models.Device{two})
		})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-watch.C():
		default:
			t.Error("nobody who waits for the node was woken")
		}
		err = s.InTx(ctx, func(tx *store.Tx) error {
			n, err := tx.Node("nod_a")
			if err != nil || n.Generation != 1 || n.EventSeq != 7 || n.SeenAt != 21 || n.State != models.NodeOnline {
				t.Errorf("%+v, %v", n, err)
			}
			list, err := tx.NodeDevices("nod_a")
			if err != nil || len(list) != 2 || list[0].UUID != "GPU-0" || list[0].Name != "renamed" || len(list[0].Slices) != 1 || list[1].State != models.DeviceAbsent {
				t.Errorf("%+v, %v", list, err)
			}
			if _, err := tx.DevicesByUUID([]string{"GPU-0", "GPU-none"}); err == nil {
				t.Error("a card that is not there")
			}
			for before, want := range map[models.Instant]int{20: 0, 21: 1} {
				if silent, err := tx.SilentNodes(before); err != nil || len(silent) != want {
					t.Errorf("%d silent since %d: %v", len(silent), before, err)
				}
			}
			if err := tx.SetNodeOffline("nod_a"); err != nil {
				return err
			}
			if silent, err := tx.SilentNodes(30); err != nil || len(silent) != 0 {
				t.Errorf("an idle node that is offline is news: %v", err)
			}
			if err := tx.InsertInstance(anInstance("ins_1", "tern")); err != nil {
				return err
			}
			if silent, err := tx.SilentNodes(30); err != nil || len(silent) != 1 {
				t.Errorf("a silent node with an instance is not: %v", err)
			}
			return tx.PutDevices("nod_a", nil)
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestJoinTokens(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, s *store.Store) {
		err := s.InTx(context.Background(), func(tx *store.Tx) error {
			if err := tx.InsertJoinToken(models.JoinToken{Hash: "h", CreatedBy: "usr", CreatedAt: 1, ExpiresAt: 2}); err != nil {
				return err
			}
			if err := tx.UseJoinToken("h", "nod_a", 2); err != nil {
				return err
			}
			got, err := tx.LockJoinToken("h")
			if err != nil || got.UsedAt != 2 || got.NodeID != "nod_a" {
				t.Errorf("%+v, %v", got, err)
			}
			_, err = tx.LockJoinToken("none")
			if !models.HasCode(err, models.NotFound) {
				t.Error(err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
