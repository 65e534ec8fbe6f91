package agent

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"berth/gpu"
	"berth/wire"
)

// grants is the record of which instance holds which part of which device, and
// so of what Berth has made on the devices. A slice is written down before it is
// made and crossed out after it is gone: whatever a crash leaves on a device is
// either explained here or not Berth's.
type grants struct {
	path string

	mu   sync.Mutex
	held map[string][]heldSlice // by instance; those of nobody lie ready
}

// heldSlice is one grant. UUID is what the device calls it; empty means that it
// was about to be made.
type heldSlice struct {
	wire.Slice
	UUID string `json:"uuid"`
}

// takenError says that another instance holds the place.
type takenError struct {
	slice  wire.Slice
	holder string
}

func (e *takenError) Error() string {
	return fmt.Sprintf("%s of device %s is still held by instance %s", e.slice.Placement, e.slice.DeviceUUID, e.holder)
}

func openGrants(path string) (*grants, error) {
	g := &grants{path: path, held: map[string][]heldSlice{}}
	if err := readJSON(path, &g.held); err != nil {
		return nil, err
	}
	return g, nil
}

func (g *grants) of(instance string) []heldSlice {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.held[instance])
}

func (g *grants) instances() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var ids []string
	for id := range g.held {
		if id != nobody {
			ids = append(ids, id)
		}
	}
	return ids
}

// claim writes down that the instance takes the slice, which fails with a
// *takenError while another instance holds any of its units. fresh is false if
// the instance had it already.
func (g *grants) claim(instance string, s wire.Slice) (h heldSlice, fresh bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, held := range g.held {
		for _, h := range held {
			switch {
			case id == instance && same(h.Slice, s):
				return h, false, nil
			case overlap(h.Slice, s):
				return heldSlice{}, false, &takenError{slice: s, holder: id}
			}
		}
	}
	h = heldSlice{Slice: s}
	return h, true, g.put(instance, append(slices.Clone(g.held[instance]), h))
}

// name notes what the device calls a claimed slice.
func (g *grants) name(instance string, s wire.Slice, uuid string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	held := slices.Clone(g.held[instance])
	for i := range held {
		if same(held[i].Slice, s) {
			held[i].UUID = uuid
		}
	}
	return g.put(instance, held)
}

// drop crosses a slice out.
func (g *grants) drop(instance string, s wire.Slice) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.put(instance, slices.DeleteFunc(slices.Clone(g.held[instance]), func(h heldSlice) bool { return same(h.Slice, s) }))
}

// move hands a slice from one holder to another, as one change.
func (g *grants) move(h heldSlice, from, to string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.write(map[string][]heldSlice{
		from: slices.DeleteFunc(slices.Clone(g.held[from]), func(o heldSlice) bool { return same(o.Slice, h.Slice) }),
		to:   append(slices.Clone(g.held[to]), h),
	})
}

// put changes one instance's record, on disk first; the caller holds mu.
func (g *grants) put(instance string, held []heldSlice) error {
	return g.write(map[string][]heldSlice{instance: held})
}

// write changes the records of some holders, on disk first; the caller holds mu.
func (g *grants) write(changed map[string][]heldSlice) error {
	next := maps.Clone(g.held)
	for holder, held := range changed {
		if next[holder] = held; len(held) == 0 {
			delete(next, holder)
		}
	}
	if err := writeJSON(g.path, next); err != nil {
		return fmt.Errorf("write down who holds which slices: %w", err)
	}
	g.held = next
	return nil
}

// on returns what is held of a card.
func (g *grants) on(card string) []heldSlice {
	return slices.DeleteFunc(g.all(), func(h heldSlice) bool { return h.DeviceUUID != card })
}

// all returns every grant of every instance.
func (g *grants) all() []heldSlice {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []heldSlice
	for _, held := range g.held {
		out = append(out, held...)
	}
	return out
}

func same(a, b wire.Slice) bool {
	return a.DeviceUUID == b.DeviceUUID && a.Placement == b.Placement
}

// overlap reports whether two slices are in each other's way: they have a unit in
// common, or one is a whole card, or one is a share of a card and the other is not
// one of the same kind.
func overlap(a, b wire.Slice) bool {
	if a.DeviceUUID != b.DeviceUUID {
		return false
	}
	p, q := a.Placement, b.Placement
	if (undivided(p) || undivided(q)) && p.Profile != q.Profile {
		return true
	}
	return p.Profile == gpu.Whole || p.Start < q.Start+q.Size && q.Start < p.Start+p.Size
}

// undivided tells whether a grant is of the card itself, whole or shared by turns:
// nothing is made on the device for it.
func undivided(p gpu.Placement) bool { return p.Profile == gpu.Whole || gpu.IsShare(p.Profile) }
