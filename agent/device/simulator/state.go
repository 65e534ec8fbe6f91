package simulator

import (
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"berth/gpu"
)

// stateFile is the "hardware" within the simulator's folder.
const stateFile = "simulator.json"

// state is what a real host would have in its slots and a real card in its
// memory.
type state struct {
	path string

	Seed   uint64     `json:"seed"`
	BootID string     `json:"boot_id"`
	Cards  []keptCard `json:"cards"`
}

type keptCard struct {
	UUID   string      `json:"uuid"`
	Model  gpu.ModelID `json:"model"`
	MIG    bool        `json:"mig"`
	Slices []keptSlice `json:"slices"`
}

type keptSlice struct {
	UUID      string        `json:"uuid"`
	Placement gpu.Placement `json:"placement"`
	Number    int           `json:"number"` // its GPU instance
}

func (k keptCard) placements() []gpu.Placement {
	var out []gpu.Placement
	for _, s := range k.Slices {
		out = append(out, s.Placement)
	}
	return out
}

// openState reads the kept cards, loses their slices if the host has restarted
// since, and adds the cards that are asked for and missing.
func openState(dir string, models []gpu.ModelID, seed uint64) (state, error) {
	st := state{path: filepath.Join(dir, stateFile), Seed: seed}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return st, err
	}
	raw, err := os.ReadFile(st.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if st.Seed == 0 {
			st.Seed = rand.Uint64()
		}
	case err != nil:
		return st, err
	default:
		if err := json.Unmarshal(raw, &st); err != nil {
			return st, fmt.Errorf("read the simulated cards in %s: %w; remove the file when no instance runs to begin with new cards", st.path, err)
		}
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return st, err
	}
	before := len(st.Cards)
	now := strings.TrimSpace(string(boot))
	if st.BootID != now {
		st.reboot()
	}
	if err := st.add(models); err != nil {
		return st, err
	}
	if st.BootID == now && len(st.Cards) == before {
		return st, nil
	}
	st.BootID = now
	return st, st.save()
}

// add brings in the cards that are asked for and not kept.
func (st *state) add(models []gpu.ModelID) error {
	missing := map[gpu.ModelID]int{}
	for _, id := range models {
		missing[id]++
	}
	for _, c := range st.Cards {
		missing[c.Model]--
	}
	if len(models) > 0 {
		for id, n := range missing {
			if n < 0 {
				return fmt.Errorf("%s keeps %d more simulated %s than asked for: ask for them too, or remove the file when no instance runs", st.path, -n, id)
			}
		}
	}
	for _, id := range models {
		if missing[id] == 0 {
			continue
		}
		if _, err := gpu.Lookup(id); err != nil {
			return err
		}
		missing[id]--
		st.Cards = append(st.Cards, keptCard{UUID: "GPU-" + newUUID(), Model: id})
	}
	return nil
}

// reboot loses what cards lose with the host's power: all slices, and from
// Hopper on the MIG mode too. Ampere keeps it.
func (st *state) reboot() {
	for i := range st.Cards {
		c := &st.Cards[i]
		m, err := gpu.Lookup(c.Model)
		c.MIG, c.Slices = c.MIG && err == nil && m.ModePersists, nil
	}
}

// newUUID is random whatever the seed: two nodes must never have one card.
func newUUID() string {
	var b [16]byte
	crand.Read(b[:]) // never fails: it ends the program instead
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// freeNumber is the lowest number that no slice of the card has, from 1.
func (k keptCard) freeNumber() int {
	n := 1
	for slices.ContainsFunc(k.Slices, func(s keptSlice) bool { return s.Number == n }) {
		n++
	}
	return n
}

// save replaces the file whole, so that a crash leaves the card before or after
// an operation, never between.
func (st *state) save() error {
	raw, err := json.MarshalIndent(st, "", " ")
	if err != nil {
		return err
	}
	temp := st.path + ".new"
	file, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(raw)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(temp, st.path)
}
