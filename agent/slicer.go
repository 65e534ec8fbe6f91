package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"berth/agent/device"
	"berth/agent/runtime"
	"berth/gpu"
	"berth/wire"
)

// slicer makes the devices agree with what instances are granted. Each of its
// steps may be repeated after a crash between any two lines.
type slicer struct {
	devices device.Driver
	grants  *grants
	log     *slog.Logger
	freed   func() // an instance gave a slice back

	ready sync.Mutex // held while the slices that lie ready change
}

// make claims and creates the wanted slices at their places and reads them back.
// Slices the instance holds and does not want are given back first. On error
// some may be made: repeat, or release.
func (s *slicer) make(ctx context.Context, instance string, want []wire.Slice) ([]runtime.DeviceGrant, error) {
	for _, h := range s.grants.of(instance) {
		if !slices.ContainsFunc(want, func(w wire.Slice) bool { return same(w, h.Slice) }) {
			if err := s.destroy(ctx, instance, h); err != nil {
				return nil, err
			}
		}
	}
	for _, w := range want {
		if err := s.create(ctx, instance, w); err != nil {
			return nil, err
		}
	}
	given, missing, err := s.given(ctx, instance)
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("made, but the device does not list %s of %s", missing[0].Placement, missing[0].DeviceUUID)
	}
	return given, err
}

func (s *slicer) create(ctx context.Context, instance string, w wire.Slice) error {
	card, h, fresh, err := s.claim(ctx, instance, w)
	if err != nil {
		return err
	}
	if undivided(w.Placement) {
		if n := len(card.Slices); n > 0 {
			err := fmt.Errorf("device %s: %w: %d slice(s) are on it that Berth has not granted", card.UUID, device.ErrInUse, n)
			return errors.Join(err, s.grants.drop(instance, w))
		}
		if fresh && len(card.Processes) > 0 && len(s.grants.on(card.UUID)) == 1 { // its own
			err := fmt.Errorf("device %s: %w: %s on it that Berth did not start", card.UUID, device.ErrInUse, describeProcesses(card.Processes))
			return errors.Join(err, s.grants.drop(instance, w))
		}
		if card.MIG { // it stayed in it after its last slice
			if err := s.devices.Undivide(ctx, card.UUID); err != nil {
				err = fmt.Errorf("make device %s undivided: %w", card.UUID, err)
				return errors.Join(err, s.grants.drop(instance, w))
			}
		}
		return s.grants.name(instance, w, card.UUID)
	}
	there := slices.IndexFunc(card.Slices, func(d device.Slice) bool {
		return d.UUID == h.UUID || h.UUID == "" && !fresh && d.Placement == w.Placement // made just before a crash
	})
	if there >= 0 && card.Slices[there].HalfMade {
		if err := s.devices.Destroy(ctx, card.Slices[there].UUID); err != nil {
			return fmt.Errorf("destroy what a crash left of %s of device %s: %w", w.Placement, card.UUID, err)
		}
		there = -1
	}
	if there >= 0 {
		return s.grants.name(instance, w, card.Slices[there].UUID)
	}
	made, err := s.devices.Create(ctx, card.UUID, w.Placement.Profile, w.Placement.Start)
	if err != nil { // then nothing was made
		err = fmt.Errorf("make %s on device %s: %w", w.Placement, card.UUID, err)
		return errors.Join(err, s.grants.drop(instance, w))
	}
	if err := s.grants.name(instance, w, made.UUID); err != nil {
		return err
	}
	if made.Placement != w.Placement {
		h.UUID = made.UUID
		return errors.Join(fmt.Errorf("device %s made %s where %s was asked for", card.UUID, made.Placement, w.Placement), s.destroy(ctx, instance, h))
	}
	return nil
}

// claim writes down that the instance takes the slice of a card that is well. One
// that lies ready there becomes its own; others that are in the way go.
func (s *slicer) claim(ctx context.Context, instance string, w wire.Slice) (card device.Card, h heldSlice, fresh bool, err error) {
	if instance != nobody {
		s.ready.Lock()
		defer s.ready.Unlock()
		for _, r := range s.grants.of(nobody) {
			switch {
			case same(r.Slice, w) && r.UUID != "":
				err = s.grants.move(r, nobody, instance)
			case overlap(r.Slice, w):
				err = s.destroy(ctx, nobody, r)
			}
			if err != nil {
				return card, h, false, err
			}
		}
	}
	if card, err = s.card(ctx, w.DeviceUUID); err != nil {
		return card, h, false, err
	}
	if card.Health != device.HealthOK {
		return card, h, false, fmt.Errorf("device %s: %w: %s", card.UUID, device.ErrLost, card.Health)
	}
	h, fresh, err = s.grants.claim(instance, w)
	return card, h, fresh, err
}

// given reads back what the instance holds: the devices to show it, and the
// slices that are on record and not on the device.
func (s *slicer) given(ctx context.Context, instance string) (given []runtime.DeviceGrant, missing []heldSlice, err error) {
	cards, err := s.devices.Inventory(ctx)
	if err != nil {
		return nil, nil, err
	}
next:
	for _, h := range s.grants.of(instance) {
		for _, c := range cards {
			if c.UUID == h.UUID {
				grant := runtime.DeviceGrant{UUID: c.UUID, Name: c.Name, MemoryMiB: int64(c.MemoryMiB), Node: c.Node, Nodes: c.Nodes}
				if h.Placement.Profile != gpu.Whole { // a share: its fair part, which nothing holds its neighbours to
					grant.Profile, grant.MemoryMiB = h.Placement.Profile, int64(h.MemoryMiB)
				}
				given = append(given, grant)
				continue next
			}
			for _, d := range c.Slices {
				if d.UUID == h.UUID && !d.HalfMade {
					given = append(given, runtime.DeviceGrant{UUID: d.UUID, ParentUUID: c.UUID, Name: c.Name, Profile: d.Placement.Profile, MemoryMiB: int64(d.MemoryMiB), Node: d.Node, Nodes: d.Nodes})
					continue next
				}
			}
		}
		missing = append(missing, h)
	}
	return given, missing, nil
}

// fault returns what is wrong with a card that the instance holds a part of;
// empty while all are well.
func (s *slicer) fault(ctx context.Context, instance string) (string, error) {
	cards, err := s.devices.Inventory(ctx)
	for _, h := range s.grants.of(instance) {
		for _, c := range cards {
			if c.UUID == h.DeviceUUID && c.Health != device.HealthOK {
				return c.Health, nil
			}
		}
	}
	return "", err
}

// release destroys all the instance holds. Nothing held is success.
func (s *slicer) release(ctx context.Context, instance string) error {
	held := s.grants.of(instance)
	for _, h := range held {
		if err := s.destroy(ctx, instance, h); err != nil {
			return err
		}
	}
	if len(held) > 0 {
		s.freed()
	}
	return nil
}

func (s *slicer) destroy(ctx context.Context, instance string, h heldSlice) error {
	s.vacate(instance, h)
	uuid := h.UUID
	card, err := s.card(ctx, h.DeviceUUID)
	if err != nil && uuid == "" && !errors.Is(err, device.ErrNotFound) {
		return err
	}
	for _, d := range card.Slices {
		// A crash came before its name was known, and it may or may not be there; or
		// when it was half gone, and it has no name any more.
		if d.Placement == h.Placement && (uuid == "" || d.HalfMade) {
			uuid = d.UUID
		}
	}
	if uuid != "" && !undivided(h.Placement) {
		switch err := s.devices.Destroy(ctx, uuid); {
		case errors.Is(err, device.ErrLost): // its slices go with the reset that it needs
			s.log.Error("the device is lost, its slice is given up", "instance", instance, "device", h.DeviceUUID, "slice", h.Placement.String(), "error", err)
		case err != nil:
			return fmt.Errorf("destroy %s of device %s: %w", h.Placement, h.DeviceUUID, err)
		}
	}
	return s.grants.drop(instance, h.Slice)
}

func (s *slicer) card(ctx context.Context, uuid string) (device.Card, error) {
	cards, err := s.devices.Inventory(ctx)
	if err != nil {
		return device.Card{}, err
	}
	for _, c := range cards {
		if c.UUID == uuid {
			return c, nil
		}
	}
	return device.Card{}, fmt.Errorf("%w: this node has no card %s", device.ErrNotFound, uuid)
}

// occupy tells devices without hardware that the instance has them open.
func (s *slicer) occupy(instance string) {
	if f, ok := s.devices.(device.Follower); ok {
		for _, h := range s.grants.of(instance) {
			f.Occupy(h.UUID, instance)
		}
	}
}

func (s *slicer) vacate(instance string, h heldSlice) {
	if f, ok := s.devices.(device.Follower); ok {
		f.Vacate(h.UUID, instance)
	}
}
