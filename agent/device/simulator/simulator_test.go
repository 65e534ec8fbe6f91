package simulator

import (
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/agent/device"
	"berth/agent/device/devicetest"
	"berth/gpu"
)

// open makes a simulator whose operations take no time.
func open(t testing.TB, dir string, models ...gpu.ModelID) *Simulator {
	t.Helper()
	s, err := New(dir, models, 7, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s.latency = func() time.Duration { return 0 }
	return s
}

func TestConformance(t *testing.T) {
	for _, model := range []gpu.ModelID{"a100-80gb", "h100-80gb"} {
		t.Run(string(model), func(t *testing.T) {
			devicetest.Run(t, func(t *testing.T) devicetest.Subject {
				dir := t.TempDir()
				s := open(t, dir, "rtx4090", model)
				return devicetest.Subject{
					Driver: s,
					Occupy: func(t *testing.T, uuid string) func() {
						holder := rand.Text()
						s.Occupy(uuid, holder)
						return func() { s.Vacate(uuid, holder) }
					},
					Reopen: func(t *testing.T) device.Driver { return open(t, dir) },
				}
			})
		})
	}
}

// Any sequence of creations and destructions agrees with the pure geometry, and
// destroying all returns to the empty card.
func TestAgreesWithGeometry(t *testing.T) {
	dir := t.TempDir()
	var dividable []gpu.ModelID
	for _, m := range gpu.Models() {
		if m.Partitions() {
			dividable = append(dividable, m.ID)
		}
	}
	s := open(t, dir, dividable...)
	ctx := t.Context()
	rapid.Check(t, func(rt *rapid.T) {
		cards, err := s.Inventory(ctx)
		if err != nil {
			rt.Fatal(err)
		}
		card := rapid.SampledFrom(cards).Draw(rt, "card")
		model, err := gpu.Lookup(card.Model)
		if err != nil {
			rt.Fatal(err)
		}
		made := map[string]gpu.Placement{}
		used := func() (out []gpu.Placement) {
			for _, p := range made {
				out = append(out, p)
			}
			return out
		}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			if len(made) > 0 && rapid.Bool().Draw(rt, "destroy") {
				uuid := rapid.SampledFrom(sortedKeys(made)).Draw(rt, "which")
				if err := s.Destroy(ctx, uuid); err != nil {
					rt.Fatal(err)
				}
				delete(made, uuid)
				continue
			}
			p := rapid.SampledFrom(model.Profiles).Draw(rt, "profile")
			start := rapid.SampledFrom(p.Starts).Draw(rt, "start")
			fits := slices.Contains(model.FreeStarts(p, used()), start)
			slice, err := s.Create(ctx, card.UUID, p.Name, start)
			if fits != (err == nil) || !fits && !errors.Is(err, device.ErrNoRoom) {
				rt.Fatalf("%s@%d beside %v: geometry says %v, the simulator %v", p.Name, start, used(), fits, err)
			}
			if err == nil {
				made[slice.UUID] = slice.Placement
			}
			if err := model.CheckLayout(used()); err != nil {
				rt.Fatal(err)
			}
		}
		for uuid := range made {
			if err := s.Destroy(ctx, uuid); err != nil {
				rt.Fatal(err)
			}
		}
		after, err := s.Inventory(ctx)
		if err != nil {
			rt.Fatal(err)
		}
		if got := after[card.Index]; got.MIG && model.ResetlessMIG || len(got.Slices) != 0 {
			rt.Fatalf("after destroying all: %+v", got)
		}
	})
}

func sortedKeys(m map[string]gpu.Placement) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func TestCardsKept(t *testing.T) {
	dir := t.TempDir()
	first, err := open(t, dir, "a100-80gb", "rtx4090").Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	more, err := open(t, dir, "rtx4090", "a100-80gb", "a100-80gb").Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(more) != 3 || more[0].UUID != first[0].UUID || more[1].UUID != first[1].UUID || more[2].Model != "a100-80gb" {
		t.Errorf("asked for one more a100-80gb: %+v, had %+v", more, first)
	}
	_, err = New(dir, []gpu.ModelID{"rtx4090"}, 7, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "2 more simulated a100-80gb than asked for") {
		t.Errorf("fewer cards than kept: error %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, stateFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = New(dir, nil, 7, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "remove the file") {
		t.Errorf("damaged file: error %v", err)
	}
}

func TestRebootLosesSlices(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, "a100-80gb")
	card := s.cards[0].kept.UUID
	slice, err := s.Create(t.Context(), card, "1g.10gb", 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reboot(); err != nil {
		t.Fatal(err)
	}
	for _, d := range []*Simulator{s, open(t, dir)} {
		cards, err := d.Inventory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if cards[0].UUID != card || !cards[0].MIG || len(cards[0].Slices) != 0 {
			t.Errorf("after a reboot: %+v, want Ampere's MIG mode and no slices", cards[0])
		}
	}
	if err := s.Undivide(t.Context(), card); err != nil {
		t.Fatal(err)
	}
	if cards, err := s.Inventory(t.Context()); err != nil || cards[0].MIG {
		t.Errorf("made undivided: %+v, %v", cards[0], err)
	}
	if _, err := os.Stat(slice.Node); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lost slice's node is still there: %v", err)
	}
}

// The reading follows what holders do, and only there.
func TestPhysics(t *testing.T) {
	s := open(t, t.TempDir(), "a100-80gb")
	now := time.Duration(0)
	s.clock = func() time.Duration { return now }
	ctx := t.Context()
	card := s.cards[0].kept.UUID
	big, err := s.Create(ctx, card, "3g.40gb", 4)
	if err != nil {
		t.Fatal(err)
	}
	small, err := s.Create(ctx, card, "1g.10gb", 0)
	if err != nil {
		t.Fatal(err)
	}
	read := func(uuid string) device.Reading {
		t.Helper()
		r, err := s.Sample(ctx, uuid)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	rest := read(card)
	if u := *read(small.UUID).UtilizationPercent; u != 0 {
		t.Errorf("an idle slice reads %v %%", u)
	}

	s.Occupy(big.UUID, "i1")
	s.Load(big.UUID, "i1", 1, 20_000)
	now += time.Second
	if m := *read(big.UUID).MemoryMiB; m <= 0 || m >= 20_000 {
		t.Errorf("memory after one second: %d MiB, want on its way", m)
	}
	now += 2 * time.Minute
	hot := read(card)
	if u := *read(big.UUID).UtilizationPercent; u < 94 {
		t.Errorf("a busy slice reads %v %%", u)
	}
	if m := *read(big.UUID).MemoryMiB; m != 20_000 {
		t.Errorf("memory %d MiB, want 20000", m)
	}
	if *hot.PowerW < *rest.PowerW+80 || *hot.TemperatureC < *rest.TemperatureC+8 {
		t.Errorf("three of seven slices busy: %v W %v °C, at rest %v W %v °C", *hot.PowerW, *hot.TemperatureC, *rest.PowerW, *rest.TemperatureC)
	}
	if other := read(small.UUID); *other.UtilizationPercent != 0 || *other.MemoryMiB != 0 || *other.TemperatureC < *rest.TemperatureC+8 {
		t.Errorf("the idle neighbour reads %v %%, %d MiB, %v °C; want 0, 0 and the card's heat", *other.UtilizationPercent, *other.MemoryMiB, *other.TemperatureC)
	}
	s.Load(big.UUID, "i1", 1, 1<<40)
	now += time.Minute
	if m := *read(big.UUID).MemoryMiB; int(m) != big.MemoryMiB {
		t.Errorf("memory %d MiB, want the slice's %d", m, big.MemoryMiB)
	}
	s.Vacate(big.UUID, "i1")
	now += 10 * time.Minute
	cold := read(card)
	if *cold.MemoryMiB != 0 || *cold.PowerW > *rest.PowerW*1.1 || *cold.TemperatureC > *rest.TemperatureC+1 {
		t.Errorf("after the holder left: %d MiB, %v W, %v °C", *cold.MemoryMiB, *cold.PowerW, *cold.TemperatureC)
	}
}

// Holders of one card take turns and have its memory together: who comes first has
// what it asked for, the next one what is left.
func TestHoldersShareACard(t *testing.T) {
	s := open(t, t.TempDir(), "rtx4090")
	now := time.Duration(0)
	s.clock = func() time.Duration { return now }
	card := s.cards[0].kept.UUID
	used := func(holder string) int64 {
		t.Helper()
		now += time.Minute
		mib, ok := s.Used(card, holder)
		if !ok {
			t.Fatalf("%s is unknown", holder)
		}
		return mib
	}
	for _, holder := range []string{"a", "b"} {
		s.Occupy(card, holder)
	}
	s.Load(card, "a", 0.3, 20_000)
	s.Load(card, "b", 0.3, 8_000)
	if a, b := used("a"), used("b"); a != 20_000 || b != 4_564 {
		t.Errorf("%d and %d MiB", a, b)
	}
	r, err := s.Sample(t.Context(), card)
	if err != nil || *r.MemoryMiB != 24_564 || *r.UtilizationPercent < 50 || *r.UtilizationPercent > 70 {
		t.Errorf("the card reads %+v, %v", r, err)
	}
	s.Vacate(card, "a")
	if _, ok := s.Used(card, "a"); ok {
		t.Error("a is gone and has memory")
	}
	s.Load(card, "b", 0.3, 8_000) // tries again
	if b := used("b"); b != 8_000 {
		t.Errorf("b has %d MiB alone", b)
	}
	if _, ok := s.Used("GPU-none", "b"); ok {
		t.Error("memory on a card that is not there")
	}
}

func TestFaultyCard(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, "a100-80gb", "a100-80gb")
	ctx := t.Context()
	card, well := s.cards[0].kept.UUID, s.cards[1].kept.UUID
	inventory := func() []device.Card {
		t.Helper()
		cards, err := s.Inventory(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return cards
	}
	if _, err := s.Create(ctx, card, "1g.10gb", 0); err != nil {
		t.Fatal(err)
	}
	fault := func(xid int) {
		t.Helper()
		if err := SetFault(dir, card, xid); err != nil {
			t.Fatal(err)
		}
	}
	fault(31) // a program's mistake
	if h := inventory()[0].Health; h != device.HealthOK {
		t.Errorf("health %q after a program's mistake", h)
	}
	fault(79)
	cards := inventory()
	if !strings.HasPrefix(cards[0].Health, "Xid 79, the GPU has fallen off the bus") || cards[1].Health != device.HealthOK || len(cards[0].Slices) != 1 {
		t.Errorf("%+v", cards)
	}
	if _, err := s.Create(ctx, card, "1g.10gb", 1); !errors.Is(err, device.ErrLost) {
		t.Errorf("create on a lost card: %v", err)
	}
	if _, err := s.Sample(ctx, card); !errors.Is(err, device.ErrLost) {
		t.Errorf("sample of a lost card: %v", err)
	}
	if _, err := s.Create(ctx, well, "1g.10gb", 0); err != nil {
		t.Errorf("the card beside it: %v", err)
	}
	again := open(t, dir) // a fault does not go away with the program
	if cards, err := again.Inventory(ctx); err != nil || cards[0].Health == device.HealthOK {
		t.Errorf("%+v, %v", cards, err)
	}
	fault(0)
	if cards := inventory(); cards[0].Health != device.HealthOK || len(cards[0].Slices) != 0 || cards[0].MIG || len(cards[1].Slices) != 1 {
		t.Errorf("after the reset %+v", cards)
	}
	if err := SetFault(dir, "GPU-none", 79); err == nil || !strings.Contains(err.Error(), card) {
		t.Errorf("a card that is not there: %v", err)
	}
}

// B20: in one session the list is read anew each time, and devices go by UUID: what
// was destroyed is not there any more, also when another lies in its place.
func TestListAfterDestroy(t *testing.T) {
	s := open(t, t.TempDir(), "a100-80gb")
	card := s.cards[0].kept.UUID
	list := func() (uuids []string) {
		t.Helper()
		cards, err := s.Inventory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range cards[0].Slices {
			uuids = append(uuids, d.UUID)
		}
		return uuids
	}
	var made []string
	for start := range 3 {
		d, err := s.Create(t.Context(), card, "1g.10gb", start)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, d.UUID)
	}
	if err := s.Destroy(t.Context(), made[1]); err != nil {
		t.Fatal(err)
	}
	if got := list(); !slices.Equal(got, []string{made[0], made[2]}) {
		t.Errorf("after one went: %v of %v", got, made)
	}
	again, err := s.Create(t.Context(), card, "1g.10gb", 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := list(); !slices.Equal(got, []string{made[0], again.UUID, made[2]}) || again.UUID == made[1] {
		t.Errorf("after another came: %v", got)
	}
	if _, err := s.Sample(t.Context(), made[1]); !errors.Is(err, device.ErrNotFound) {
		t.Errorf("what was destroyed is read: %v", err)
	}
}
