//go:build nvml && cgo

package nvml

import (
	"context"
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"berth/agent/device"
)

// Undivide implements device.Driver.
func (d *Driver) Undivide(ctx context.Context, uuid string) error {
	c, err := d.card(uuid)
	if err != nil {
		return err
	}
	_, err = inTurn(ctx, c, func() (struct{}, error) {
		if _, err := d.lookNow(c); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, d.leave(c)
	}, nil)
	return err
}

// leave ends MIG mode on a card that has no slices left, in the card's turn.
func (d *Driver) leave(c *card) error {
	dev, err := d.handle(c)
	if err != nil {
		return err
	}
	if m, err := migMode(dev); err != nil || !m.now && !m.pending {
		return ignoreUnsupported(err)
	}
	left, err := d.readSlices(c)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("%w: %d slice(s) are on card %s", device.ErrInUse, len(left), c.uuid)
	}
	return d.setMode(c, false)
}

// setMode changes the MIG mode in the card's turn. The library gives two answers,
// that of the call and that of the activation, and says SUCCESS to the first while
// the second is that the card is held or owes a reset: so the mode is read back. On
// Ampere the driver resets the card as part of this, on Hopper and later it does
// not; both fail while somebody has the card open.
func (d *Driver) setMode(c *card, on bool) error {
	dev, err := d.handle(c)
	if err != nil {
		return err
	}
	before, err := migMode(dev)
	if err != nil {
		return err
	}
	if before.now != before.pending {
		return fmt.Errorf("%w: MIG mode of card %s is %s and will be %s", device.ErrResetRequired, c.uuid, onOff(before.now), onOff(before.pending))
	}
	if before.now == on {
		return nil
	}
	if list, err := processes(dev); err != nil {
		return err
	} else if len(list) > 0 {
		return fmt.Errorf("%w: card %s is held %s", device.ErrInUse, c.uuid, held(dev))
	}
	activation, ret := dev.SetMigMode(number(on))
	c.dev = nil // the device may have been unbound and bound again
	if ret != nvml.SUCCESS {
		return problem(ret, "turn MIG mode %s", onOff(on))
	}
	if dev, err = d.handle(c); err != nil {
		return err
	}
	after, err := migMode(dev)
	if err != nil {
		return err
	}
	switch {
	case after.now == on:
		d.register(c)
		d.log.Info("MIG mode is "+onOff(on), "device", c.uuid)
		return nil
	case activation == nvml.ERROR_RESET_REQUIRED: // pending: the operator's reset brings it about
		return problem(activation, "turn MIG mode %s", onOff(on))
	}
	// Held, or the reason is not known: take the wish back, so that the card stays
	// on sale as it is, and the next try begins anew.
	if after.pending != after.now {
		_, ret := dev.SetMigMode(number(!on))
		c.dev = nil
		d.logged("take back the change of MIG mode", problem(ret, "turn MIG mode %s", onOff(!on)))
	}
	if activation == nvml.ERROR_IN_USE {
		return fmt.Errorf("turn MIG mode %s: %w, %s", onOff(on), device.ErrInUse, held(dev))
	}
	return fmt.Errorf("turn MIG mode %s: it did not change (activation: NVML %d)", onOff(on), int(activation))
}

func number(on bool) int {
	if on {
		return nvml.DEVICE_MIG_ENABLE
	}
	return nvml.DEVICE_MIG_DISABLE
}
