package fleet_test

import (
	"strings"
	"testing"

	"berth/models"
	"berth/models/store"
	"berth/models/store/storetest"
	"berth/money"
	"berth/wire"
)

// TestNodesWordsAreKept: a renter's command and a node's fault are quoted, in any
// letters. None may keep the portal from taking the event in: it would come again
// for ever, and with it no other event of that node.
func TestNodesWordsAreKept(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		w := newWorld(t, st)
		b := w.join("gannet", cards("a100-80gb", "GPU-a")...)
		acc := w.account("acc_a", 10*money.Unit)
		for words, want := range map[string]string{
			"übung: command not found": "Übung: command not found.",
			"命令: command not found":    "命令: command not found.",
			"nul \x00 inside":          "Nul  inside.",
			"\x00":                     "",
			"broken \xff byte":         "Broken \uFFFD byte.",
		} {
			in := w.launch(w.order(acc, "a100-80gb.1g.10gb"))
			o := b.take(in, wire.PhaseStarting)
			o.Detail = words
			b.end(o, wire.ReasonStartup, nil)
			b.deliver()
			if v := w.inState(in, models.Failed); !strings.Contains(v.Detail, "The node says: "+want) {
				t.Errorf("%q became %q", words, v.Detail)
			}
			b.disconnect()
			b.connect()
		}
	})
}
