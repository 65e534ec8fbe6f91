//go:build nvml && cgo

package nvml

import (
	"context"
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"berth/agent/device"
	"berth/gpu"
)

// waitEvents is how long one wait for an event lasts: how long Close may take.
const waitEvents = 500 * time.Millisecond

// none says in an event that it is of the whole card.
const none = ^uint32(0)

// listen asks for the faults of all cards. Where the library has no events, what is
// wrong with a card shows when it does not answer.
func (d *Driver) listen() {
	set, ret := d.lib.EventSetCreate()
	if ret != nvml.SUCCESS {
		d.log.Warn("faults of GPUs cannot be followed", "error", problem(ret, "make an event set"))
		return
	}
	d.events = set
	for _, c := range d.cards {
		_, err := inTurn(context.Background(), c, func() (struct{}, error) {
			_, err := d.handle(c)
			if err == nil {
				d.register(c)
			}
			return struct{}{}, err
		}, nil)
		d.logged("look at a card", err)
	}
}

// register asks for one card's faults, in its turn; again after it was bound anew.
func (d *Driver) register(c *card) {
	if d.events == nil {
		return
	}
	if ret := c.dev.RegisterEvents(nvml.EventTypeXidCriticalError, d.events); ret != nvml.SUCCESS {
		d.log.Warn("faults of a GPU cannot be followed", "device", c.uuid, "error", problem(ret, "register for events"))
	}
}

// follow takes in faults until ctx ends.
func (d *Driver) follow(ctx context.Context) {
	defer d.events.Free()
	for ctx.Err() == nil {
		e, ret := d.events.Wait(uint32(waitEvents / time.Millisecond))
		switch ret {
		case nvml.SUCCESS:
			if e.EventType == nvml.EventTypeXidCriticalError {
				d.fault(e, time.Now())
			}
		case nvml.ERROR_TIMEOUT:
		default: // a card that is lost makes every wait fail at once
			d.log.Debug("waiting for faults", "error", problem(ret, "wait"))
			select {
			case <-time.After(waitEvents):
			case <-ctx.Done():
			}
		}
	}
}

// fault takes in one fault. One that makes the card sick is kept until it is
// mended, over restarts of the agent too.
func (d *Driver) fault(e nvml.EventData, at time.Time) {
	x := gpu.LookupXid(int(e.EventData))
	uuid, ret := e.Device.GetUUID()
	i := slices.IndexFunc(d.cards, func(c *card) bool { return ret == nvml.SUCCESS && c.uuid == uuid })
	if i < 0 {
		d.log.Error("a fault of a GPU that does not say which it is", "fault", x.String())
		return
	}
	c := d.cards[i]
	c.mu.Lock()
	c.xid = x.Number
	seen := c.seen
	c.mu.Unlock()
	slice := ""
	if e.GpuInstanceId != none {
		if i := slices.IndexFunc(seen.Slices, func(s device.Slice) bool { return s.GPUInstance == int(e.GpuInstanceId) }); i >= 0 {
			slice = seen.Slices[i].UUID
		}
	}
	d.log.Error("fault of a GPU", "device", uuid, "slice", slice, "gpu_instance", int32(e.GpuInstanceId), "compute_instance", int32(e.ComputeInstanceId), "fault", x.String(), "sick", x.Sick)
	if x.Sick {
		d.logged("write down the fault", d.faults.add(uuid, Fault{Xid: x.Number, At: at}))
	}
}
