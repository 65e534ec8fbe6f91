package simulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"berth/gpu"
)

// faultsFile says which cards have a fault, as somebody put it there with
// SetFault: by UUID, the Xid. It is read while the simulator runs.
const faultsFile = "simulated-faults.json"

// Cards lists the UUIDs of the cards kept in dir.
func Cards(dir string) (uuids []string, err error) {
	var st state
	raw, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil {
		return nil, fmt.Errorf("no simulated cards: %w", err)
	}
	if err := json.Unmarshal(raw, &st); err != nil {
		return nil, err
	}
	for _, c := range st.Cards {
		uuids = append(uuids, c.UUID)
	}
	return uuids, nil
}

// SetFault gives a card kept in dir a fault by its Xid; 0 mends it by a reset,
// which loses the card's slices. A simulator that runs on dir sees it within a
// second. It fails when there is no such card.
func SetFault(dir, card string, xid int) error {
	cards, err := Cards(dir)
	if err != nil {
		return err
	}
	if !slices.Contains(cards, card) {
		return fmt.Errorf("no simulated card is called %s; there are %v", card, cards)
	}
	faults, err := readFaults(dir)
	if err != nil {
		return err
	}
	if xid == 0 {
		delete(faults, card)
	} else {
		faults[card] = xid
	}
	raw, err := json.Marshal(faults)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, faultsFile)
	if err := os.WriteFile(path+".new", raw, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func readFaults(dir string) (map[string]int, error) {
	faults := map[string]int{}
	raw, err := os.ReadFile(filepath.Join(dir, faultsFile))
	if errors.Is(err, os.ErrNotExist) {
		return faults, nil
	}
	if err != nil {
		return nil, err
	}
	return faults, json.Unmarshal(raw, &faults)
}

// feelFaults takes in what faultsFile says now; the caller holds mu. A card whose
// fault is gone was reset.
func (s *Simulator) feelFaults() error {
	faults, err := readFaults(s.dir)
	if err != nil {
		return err
	}
	for _, c := range s.cards {
		xid := faults[c.kept.UUID]
		if xid == c.xid {
			continue
		}
		if c.xid = xid; xid == 0 {
			s.log.Warn("simulated reset of a card", "device", c.kept.UUID)
			c.lost = ""
			if err := s.reset(c); err != nil {
				return err
			}
			continue
		}
		x := gpu.LookupXid(xid)
		s.log.Error("simulated fault of a card", "device", c.kept.UUID, "fault", x.String())
		if x.Sick {
			c.lost = x.String()
		}
	}
	return nil
}

// reset loses what a card loses when it is reset.
func (s *Simulator) reset(c *card) error {
	for _, k := range c.kept.Slices {
		s.liftNode(k.UUID)
	}
	c.kept.MIG, c.kept.Slices = false, nil
	clear(c.holders)
	c.heat = atRest(c.model)
	return s.state.save()
}
