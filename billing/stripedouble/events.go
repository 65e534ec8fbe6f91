package stripedouble

import (
	"encoding/json"
	"hash/fnv"
	"time"
)

// event is one entry of the event log. The object is the snapshot of the moment:
// a delivery that comes late tells what was true then, as Stripe's do.
type event struct {
	ID, Type     string
	Created      int64
	Object       json.RawMessage
	Previous     object // what the change replaced, for the events that say so
	Request, Key string // the API request that caused it; empty for the payer or the bank

	Pending   bool // not delivered yet and not given up
	Delivered bool
	Attempts  int
	NextAt    time.Time
	LastTry   string // what the last attempt met, for people
}

// emit writes an event into the log, in the transaction that made it true.
func (x *tx) emit(kind string, about, previous object) {
	f, _ := x.state.faults.get(only)
	e := event{
		ID: newID("evt_", 24), Type: kind, Created: x.now.Unix(), Object: mustJSON(about), Previous: previous,
		Request: x.request, Key: x.key, Pending: true,
		NextAt: x.now.Add(time.Duration(f.DelayMS) * time.Millisecond),
	}
	if f.Reorder {
		h := fnv.New32a()
		h.Write([]byte(e.ID))
		e.NextAt = e.NextAt.Add(time.Duration(h.Sum32()%200) * time.Millisecond)
	}
	x.state.events.put(e.ID, e)
}
