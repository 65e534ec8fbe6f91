package stripedouble

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"
)

// A table holds the objects of one kind in memory, in the order they were first
// written. Writes are staged until the transaction's record is on disk, then
// merged; a failed transaction drops them. Values are never changed in place, so
// a staged value never shows through. The server's mutex guards every table.
type table[T any] struct {
	name   string
	rows   map[string]T
	order  []string
	staged map[string]T
	fresh  []string // staged ids in order of first write
}

func newTable[T any](name string) *table[T] {
	return &table[T]{name: name, rows: map[string]T{}, staged: map[string]T{}}
}

func (t *table[T]) get(id string) (T, bool) {
	if v, ok := t.staged[id]; ok {
		return v, true
	}
	v, ok := t.rows[id]
	return v, ok
}

func (t *table[T]) put(id string, v T) {
	if _, ok := t.staged[id]; !ok {
		t.fresh = append(t.fresh, id)
	}
	t.staged[id] = v
}

// newestFirst walks the committed rows.
func (t *table[T]) newestFirst() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for _, id := range slices.Backward(t.order) {
			if !yield(id, t.rows[id]) {
				return
			}
		}
	}
}

// anyTable is what journal and transaction need of a table, whatever it holds.
type anyTable interface {
	tableName() string
	size() int
	load(id string, value json.RawMessage) error
	stagedRows() ([]row, error)
	merge()
	drop()
	dump(emit func(row) error) error
}

func (t *table[T]) tableName() string { return t.name }
func (t *table[T]) size() int         { return len(t.rows) }

func (t *table[T]) load(id string, value json.RawMessage) error {
	var v T
	if err := json.Unmarshal(value, &v); err != nil {
		return fmt.Errorf("%s %s: %w", t.name, id, err)
	}
	t.set(id, v)
	return nil
}

func (t *table[T]) set(id string, v T) {
	if _, ok := t.rows[id]; !ok {
		t.order = append(t.order, id)
	}
	t.rows[id] = v
}

func (t *table[T]) stagedRows() ([]row, error) {
	rows := make([]row, 0, len(t.fresh))
	for _, id := range t.fresh {
		value, err := json.Marshal(t.staged[id])
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", t.name, id, err)
		}
		rows = append(rows, row{t.name, id, value})
	}
	return rows, nil
}

func (t *table[T]) merge() {
	for _, id := range t.fresh {
		t.set(id, t.staged[id])
	}
	t.drop()
}

func (t *table[T]) drop() {
	clear(t.staged)
	t.fresh = t.fresh[:0]
}

func (t *table[T]) dump(emit func(row) error) error {
	for _, id := range t.order {
		value, err := json.Marshal(t.rows[id])
		if err != nil {
			return err
		}
		if err := emit(row{t.name, id, value}); err != nil {
			return err
		}
	}
	return nil
}

// forget removes the rows that old names. It is for the compaction at start only:
// a removal is not itself recorded.
func (t *table[T]) forget(old func(T) bool) {
	t.order = slices.DeleteFunc(t.order, func(id string) bool {
		gone := old(t.rows[id])
		if gone {
			delete(t.rows, id)
		}
		return gone
	})
}

// tables is everything the double remembers.
type tables struct {
	customers *table[customer]
	sessions  *table[session]
	setups    *table[setupIntent]
	intents   *table[intent]
	charges   *table[charge]
	refunds   *table[refund]
	disputes  *table[dispute]
	methods   *table[method]
	portals   *table[portal]
	events    *table[event]
	replies   *table[reply]
	faults    *table[Faults]
	tallies   *table[tally]
}

func newTables() tables {
	return tables{
		customers: newTable[customer]("customer"),
		sessions:  newTable[session]("session"),
		setups:    newTable[setupIntent]("setup_intent"),
		intents:   newTable[intent]("payment_intent"),
		charges:   newTable[charge]("charge"),
		refunds:   newTable[refund]("refund"),
		disputes:  newTable[dispute]("dispute"),
		methods:   newTable[method]("payment_method"),
		portals:   newTable[portal]("portal"),
		events:    newTable[event]("event"),
		replies:   newTable[reply]("reply"),
		faults:    newTable[Faults]("faults"),
		tallies:   newTable[tally]("tally"),
	}
}

func (t *tables) all() []anyTable {
	return []anyTable{t.customers, t.sessions, t.setups, t.intents, t.charges, t.refunds,
		t.disputes, t.methods, t.portals, t.events, t.replies, t.faults, t.tallies}
}

func (t *tables) load(r row) error {
	for _, any := range t.all() {
		if any.tableName() == r.Table {
			return any.load(r.ID, r.Value)
		}
	}
	return fmt.Errorf("written by a newer version (it has a %q): use that version, or another directory", r.Table)
}

func (t *tables) dump(emit func(row) error) error {
	for _, any := range t.all() {
		if err := any.dump(emit); err != nil {
			return err
		}
	}
	return nil
}

// forgetOld drops what Stripe drops too: idempotent answers after a day, events
// after thirty.
func (t *tables) forgetOld(now time.Time) {
	t.replies.forget(func(r reply) bool { return r.old(now) })
	month := now.Add(-30 * 24 * time.Hour).Unix()
	t.events.forget(func(e event) bool { return e.Created < month && !e.Pending })
}
