package simulator

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"berth/agent/device"
)

// The device nodes: one file for each card and slice, as the kernel's driver
// shows them under /dev. An instance is shown the files of what it was granted;
// a file that is missing is a device that cannot be seen.

func (s *Simulator) node(uuid string) string { return filepath.Join(s.dir, "nodes", uuid) }

// layNodes makes the files agree with the cards.
func (s *Simulator) layNodes() error {
	dir := filepath.Join(s.dir, "nodes")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	found, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, file := range found {
		if c, _ := s.holder(file.Name()); c == nil {
			s.liftNode(file.Name())
		}
	}
	for _, c := range s.cards {
		uuids := []string{c.kept.UUID}
		for _, k := range c.kept.Slices {
			uuids = append(uuids, k.UUID)
		}
		for _, uuid := range uuids {
			if err := s.layNode(uuid); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Simulator) layNode(uuid string) error {
	return os.WriteFile(s.node(uuid), []byte("simulated device "+uuid+"\n"), 0o644)
}

func (s *Simulator) liftNode(uuid string) {
	if err := os.Remove(s.node(uuid)); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.log.Warn("a simulated device node could not be removed", "device", uuid, "error", err)
	}
}

// Lose makes a slice vanish under whoever uses it, as after a fault that the
// driver answers by dropping the instance.
func (s *Simulator) Lose(slice string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, k := s.holder(slice)
	if k == nil {
		return fmt.Errorf("%w: slice %s", device.ErrNotFound, slice)
	}
	c.kept.Slices = slices.DeleteFunc(slices.Clone(c.kept.Slices), func(k keptSlice) bool { return k.UUID == slice })
	delete(c.holders, slice)
	c.heat.forget(slice)
	s.liftNode(slice)
	return s.state.save()
}

// Reboot loses what a restart of the host loses.
func (s *Simulator) Reboot() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.reboot()
	for _, c := range s.cards {
		clear(c.holders)
		c.heat = atRest(c.model)
	}
	if err := s.state.save(); err != nil {
		return err
	}
	return s.layNodes()
}
