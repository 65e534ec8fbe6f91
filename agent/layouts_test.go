package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"berth/agent/device"
	"berth/agent/device/simulator"
	"berth/gpu"
	"berth/wire"
)

// divided adds a card's layout to a desired state.
func divided(d wire.Desired, parts ...wire.Slice) wire.Desired {
	l := wire.Layout{DeviceUUID: parts[0].DeviceUUID}
	for _, p := range parts {
		l.Placements = append(l.Placements, p.Placement)
	}
	d.Layouts = append(d.Layouts, l)
	return d
}

// lies tells whether a card carries exactly these slices and is for sale.
func lies(card string, want ...string) func(wire.State) bool {
	return func(s wire.State) bool {
		return slices.Equal(placements(s, card), want) && healthOf(s, card) == device.HealthOK
	}
}

func healthOf(s wire.State, card string) string {
	i := slices.IndexFunc(s.Devices, func(d wire.Device) bool { return d.UUID == card })
	return s.Devices[i].Health
}

// uuidOf is what the device calls the slice that starts there now.
func uuidOf(t *testing.T, n *node, card string, start int) string {
	t.Helper()
	cards, err := n.sim.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cards {
		for _, s := range c.Slices {
			if c.UUID == card && s.Placement.Start == start {
				return s.UUID
			}
		}
	}
	return ""
}

// B3, on the node: slices lie ready, an instance takes one as it is, a new layout
// keeps what is in use, and what an instance gives back lies ready again, made anew.
func TestLayout(t *testing.T) {
	n := newNode(t)
	n.begin()
	p := n.portal
	card := n.card(0)
	small := func(start int) wire.Slice { return slice(t, card, "1g.10gb", start) }
	two, three := slice(t, card, "2g.20gb", 2), slice(t, card, "3g.40gb", 4)
	p.put(divided(desired(1), small(0), small(1), two, three))
	p.until("four slices lie ready", lies(card, "1g.10gb@0", "1g.10gb@1", "2g.20gb@2", "3g.40gb@4"))
	ready := uuidOf(t, n, card, 0)

	p.put(divided(desired(2, want("i1", wire.WantRunning, small(0))), small(0), small(1), two, three))
	p.untilPhase("i1", wire.PhaseRunning)
	if got := uuidOf(t, n, card, 0); got != ready {
		t.Errorf("the instance got %s, %s lay ready", got, ready)
	}
	p.put(divided(desired(3, want("i1", wire.WantRunning, small(0))), small(0), small(1), small(2), small(3), small(4), small(5), small(6)))
	all := []string{"1g.10gb@0", "1g.10gb@1", "1g.10gb@2", "1g.10gb@3", "1g.10gb@4", "1g.10gb@5", "1g.10gb@6"}
	s := p.until("seven slices", lies(card, all...))
	if o, _ := instanceOf(s, "i1"); o.Phase != wire.PhaseRunning || o.Run != 1 || uuidOf(t, n, card, 0) != ready {
		t.Errorf("what was in use was touched: %+v", o)
	}
	p.put(divided(desired(4, want("i1", wire.WantStopped)), small(0), small(1), small(2), small(3), small(4), small(5), small(6)))
	p.until("given back, it lies ready again", func(s wire.State) bool {
		o, _ := instanceOf(s, "i1")
		return o.Phase == wire.PhaseStopped && lies(card, all...)(s)
	})
	if got := uuidOf(t, n, card, 0); got == ready {
		t.Error("the slice of an instance that ended lies ready as it was left")
	}

	// After a restart of the host all of it is made anew; without a layout it goes.
	n.end()
	reboot(t, n)
	n.begin()
	p.until("made anew", lies(card, all...))
	p.put(desired(5, want("i1", wire.WantStopped)))
	p.until("taken apart", lies(card))
}

// reboot loses what the simulated cards lose when their host restarts.
func reboot(t *testing.T, n *node) {
	t.Helper()
	path := filepath.Join(n.dir, "simulator", "simulator.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, after, ok := strings.Cut(string(raw), `"boot_id": "`)
	if !ok {
		t.Fatalf("no boot id in %s", raw)
	}
	if err := os.WriteFile(path, []byte(before+`"boot_id": "earlier-`+after), 0o600); err != nil {
		t.Fatal(err)
	}
}

// stubborn is a simulator that refuses one profile while it is told to.
type stubborn struct {
	*simulator.Simulator
	card, profile string
	refuses       atomic.Bool
	asked         atomic.Int32
}

func (s *stubborn) Create(ctx context.Context, card, profile string, start int) (device.Slice, error) {
	if card == s.card && profile == s.profile {
		s.asked.Add(1)
		if s.refuses.Load() {
			return device.Slice{}, fmt.Errorf("%w: a client holds the card", device.ErrInUse)
		}
	}
	return s.Simulator.Create(ctx, card, profile, start)
}

// B4: a change that fails half-way is undone and tried again, on the same wish,
// and the card says why; the other cards are sold all the while.
func TestLayoutFailsAndIsTriedAgain(t *testing.T) {
	n := newNode(t)
	bad := &stubborn{profile: "3g.40gb"}
	n.wrap = func(s *simulator.Simulator) device.Driver { bad.Simulator = s; return bad }
	n.begin()
	p := n.portal
	card, other := n.card(0), n.card(1)
	bad.card = card
	before := []wire.Slice{slice(t, card, "1g.10gb", 0), slice(t, card, "1g.10gb", 1)}
	p.put(divided(desired(1), before...))
	p.until("two lie ready", lies(card, "1g.10gb@0", "1g.10gb@1"))

	bad.refuses.Store(true)
	after := divided(desired(2, want("i1", wire.WantRunning, slice(t, other, "3g.40gb", 4))), slice(t, card, "2g.20gb", 0), slice(t, card, "3g.40gb", 4))
	p.put(after)
	s := p.until("said why", func(s wire.State) bool { return healthOf(s, card) != device.HealthOK })
	for _, part := range []string{"partitioning failed: step 4 of 4, make 3g.40gb@4", "a client holds the card", "next try at"} {
		if got := healthOf(s, card); !strings.Contains(got, part) {
			t.Errorf("%q does not say %q", got, part)
		}
	}
	if got := placements(s, card); !slices.Equal(got, []string{"1g.10gb@0", "1g.10gb@1"}) {
		t.Errorf("not undone: %v", got)
	}
	p.untilPhase("i1", wire.PhaseRunning) // on the other card
	if got := healthOf(p.state(), other); got != device.HealthOK {
		t.Errorf("the other card: %s", got)
	}
	tries := bad.asked.Load()
	p.until("tried again", func(wire.State) bool { return bad.asked.Load() > tries })
	bad.refuses.Store(false)
	p.until("divided at last", lies(card, "2g.20gb@0", "3g.40gb@4"))
}

// A slice that is handed over has one holder, also on disk.
func TestGrantsMove(t *testing.T) {
	path := filepath.Join(t.TempDir(), "grants.json")
	g, err := openGrants(path)
	if err != nil {
		t.Fatal(err)
	}
	s := wire.Slice{DeviceUUID: "GPU-1", Placement: gpu.Placement{Profile: "1g.10gb", Start: 2, Size: 1}}
	if _, _, err := g.claim(nobody, s); err != nil {
		t.Fatal(err)
	}
	if err := g.name(nobody, s, "MIG-1"); err != nil {
		t.Fatal(err)
	}
	if err := g.move(g.of(nobody)[0], nobody, "i1"); err != nil {
		t.Fatal(err)
	}
	again, err := openGrants(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range []*grants{g, again} {
		if of := g.of("i1"); len(g.of(nobody)) != 0 || len(of) != 1 || of[0].UUID != "MIG-1" || len(g.instances()) != 1 {
			t.Errorf("%+v lies ready, the instance has %+v", g.of(nobody), of)
		}
	}
}
