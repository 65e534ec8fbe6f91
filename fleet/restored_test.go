package fleet_test

import (
	"testing"
	"time"

	"berth/models"
	"berth/models/store"
	"berth/models/store/storetest"
	"berth/money"
)

// TestRestoredDatabase: a portal whose database was restored counts its desired
// states on from where the node is: a node refuses a lower generation, for ever.
func TestRestoredDatabase(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		w := newWorld(t, st)
		b := w.join("gannet", cards("a100-80gb", "GPU-a")...)
		acc := w.account("acc_a", 10*money.Unit)
		in := w.launch(w.order(acc, "a100-80gb.1g.10gb"))
		b.run(in)
		b.disconnect()
		const seen = 1000 // what the node acted on before the restore
		b.gen = seen
		w.pass(time.Minute)
		b.connect()
		w.inState(in, models.Running)
		first := b.desired().Generation
		if first <= seen {
			t.Errorf("the portal sends generation %d, the node acts on %d", first, seen)
		}
		b.connect()
		if again := b.desired().Generation; again != first {
			t.Errorf("generation %d became %d without a change", first, again)
		}
	})
}
