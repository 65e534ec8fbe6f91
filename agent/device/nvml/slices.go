//go:build nvml && cgo

package nvml

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"berth/agent/device"
	"berth/gpu"
)

// live is a slice with the library's handles of it: a GPU instance, and in it one
// compute instance that fills it. The latter is missing in a half-made slice.
type live struct {
	device.Slice
	gi  nvml.GpuInstance
	ci  nvml.ComputeInstance
	dev nvml.Device // the MIG device
}

// readSlices lists what is on a card in MIG mode, in the order of the starts.
func (d *Driver) readSlices(c *card) (out []live, err error) {
	table, err := d.readTable(c)
	if err != nil {
		return nil, err
	}
	if len(table) == 0 {
		return nil, nil
	}
	caps, err := d.host.capabilities()
	if err != nil {
		return nil, err
	}
	for i := range table {
		e := &table[i]
		asked := e.info
		asked.InstanceCount = max(asked.InstanceCount, 16) // the room for the answer: the driver's own count is not always right
		list, ret := c.dev.GetGpuInstances(&asked)
		if ret != nvml.SUCCESS {
			return nil, problem(ret, "list the slices of %s", e.Name)
		}
		for _, gi := range list {
			l, err := d.readSlice(c, e, gi, caps)
			if errors.Is(err, device.ErrNotFound) { // it went meanwhile
				continue
			}
			if err != nil {
				return nil, err
			}
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b live) int {
		return cmp.Or(cmp.Compare(a.Placement.Start, b.Placement.Start), cmp.Compare(a.GPUInstance, b.GPUInstance))
	})
	return out, nil
}

func (d *Driver) readSlice(c *card, e *entry, gi nvml.GpuInstance, caps capabilities) (live, error) {
	info, ret := gi.GetInfo()
	if ret != nvml.SUCCESS {
		return live{}, problem(ret, "read a slice of %s", e.Name)
	}
	l := live{gi: gi, Slice: device.Slice{Card: c.uuid, MemoryMiB: e.MemoryMiB, GPUInstance: int(info.Id),
		Placement: gpu.Placement{Profile: e.Name, Start: int(info.Placement.Start), Size: int(info.Placement.Size)}}}
	if err := e.readParts(gi); err != nil {
		return l, err
	}
	for _, p := range e.parts {
		list, ret := gi.GetComputeInstances(&p)
		if ret != nvml.SUCCESS {
			return l, problem(ret, "list the compute instances of %s", l.Placement)
		}
		if len(list) > 0 {
			return l, l.finish(c, list[0], caps)
		}
	}
	l.HalfMade = true
	if l.UUID = c.unmade[l.GPUInstance]; l.UUID == "" {
		l.UUID = fmt.Sprintf("%s-gi%d", c.uuid, l.GPUInstance)
	}
	return l, nil
}

// finish fills in what a compute instance gives a slice: the UUID, and the nodes
// by which a program reaches it.
func (l *live) finish(c *card, ci nvml.ComputeInstance, caps capabilities) (err error) {
	info, ret := ci.GetInfo()
	if ret != nvml.SUCCESS {
		return problem(ret, "read the compute instance of %s", l.Placement)
	}
	if l.dev, l.UUID, err = migDevice(c, l.GPUInstance, info); err != nil {
		return fmt.Errorf("%s: %w", l.Placement, err)
	}
	l.ci = ci
	nodes, err := caps.nodes(c.fixed.minor, l.GPUInstance, int(info.Id))
	if err != nil {
		return err
	}
	l.Node, l.Nodes = nodes[len(nodes)-1], append(c.fixed.nodes(), nodes...)
	return nil
}

// migDevice is the MIG device of a compute instance, and its UUID. Current drivers
// give it with the instance; nvml.h calls it the parent there, and if it is, the
// card's MIG devices are walked.
func migDevice(c *card, instance int, info nvml.ComputeInstanceInfo) (nvml.Device, string, error) {
	uuid, ret := info.Device.GetUUID()
	if ret != nvml.SUCCESS {
		return nil, "", problem(ret, "read the UUID")
	}
	if uuid != c.uuid {
		return info.Device, uuid, nil
	}
	most, ret := c.dev.GetMaxMigDeviceCount()
	if ret != nvml.SUCCESS {
		return nil, "", problem(ret, "count the MIG devices")
	}
	for i := range most {
		dev, ret := c.dev.GetMigDeviceHandleByIndex(i)
		if ret != nvml.SUCCESS {
			continue // no such index now
		}
		gi, ret := dev.GetGpuInstanceId()
		if ret != nvml.SUCCESS || gi != instance {
			continue
		}
		if ci, ret := dev.GetComputeInstanceId(); ret != nvml.SUCCESS || ci != int(info.Id) {
			continue
		}
		uuid, ret := dev.GetUUID()
		return dev, uuid, problem(ret, "read the UUID")
	}
	return nil, "", fmt.Errorf("it is no MIG device: %w", device.ErrNotFound)
}

// Create implements device.Driver.
func (d *Driver) Create(ctx context.Context, uuid, profile string, start int) (device.Slice, error) {
	c, err := d.card(uuid)
	if err != nil {
		return device.Slice{}, err
	}
	made, err := inTurn(ctx, c, func() (live, error) { return d.create(c, profile, start) }, func(l live) {
		d.log.Warn("a slice that nobody waits for any more is destroyed", "device", uuid, "slice", l.Placement.String())
		d.logged("destroy it", d.unmake(c, l.UUID))
	})
	if err != nil {
		return device.Slice{}, err
	}
	d.log.Info("slice made", "device", uuid, "slice", made.Placement.String(), "uuid", made.UUID)
	return made.Slice, nil
}

// create makes a slice in the card's turn. What it did is undone where a later step
// fails.
func (d *Driver) create(c *card, profile string, start int) (made live, err error) {
	dev, err := d.handle(c)
	if err != nil {
		return made, err
	}
	before, err := migMode(dev)
	if err != nil {
		return made, err
	}
	if _, err := d.entryOf(c, profile, start); err != nil && (before.now || !errors.Is(err, errPlacesUnknown)) {
		return made, err // before the mode changes for nothing
	}
	if err := d.setMode(c, true); err != nil {
		return made, err
	}
	defer func() {
		if err != nil && !before.now && c.fixed.model.ResetlessMIG {
			d.logged("leave MIG mode again", d.leave(c))
		}
	}()
	e, err := d.entryOf(c, profile, start)
	if err != nil {
		return made, err
	}
	place := e.At(start)
	gi, ret := c.dev.CreateGpuInstanceWithPlacement(&e.info, &nvml.GpuInstancePlacement{Start: uint32(start), Size: uint32(e.Units)})
	if ret != nvml.SUCCESS {
		err := problem(ret, "make %s", place)
		if errors.Is(err, device.ErrInUse) {
			err = fmt.Errorf("%w, %s", err, held(c.dev))
		}
		return made, err
	}
	defer func() {
		if err != nil {
			d.logged("undo a half-made slice", d.destroy(c, live{Slice: device.Slice{UUID: made.UUID, Placement: place}, gi: gi, ci: made.ci}))
		}
	}()
	info, ret := gi.GetInfo()
	if ret != nvml.SUCCESS {
		return made, problem(ret, "read back %s", place)
	}
	if got := (gpu.Placement{Profile: profile, Start: int(info.Placement.Start), Size: int(info.Placement.Size)}); got != place {
		return made, fmt.Errorf("NVIDIA's driver made %s of size %d where %s of size %d was asked for", got, got.Size, place, place.Size)
	}
	made = live{gi: gi, Slice: device.Slice{Card: c.uuid, Placement: place, MemoryMiB: e.MemoryMiB, GPUInstance: int(info.Id)}}
	if err := e.readParts(gi); err != nil {
		return made, err
	}
	if made.ci, ret = gi.CreateComputeInstance(&e.parts[0]); ret != nvml.SUCCESS {
		made.ci = nil
		return made, problem(ret, "make the compute instance of %s", place)
	}
	caps, err := d.host.capabilities()
	if err != nil {
		return made, err
	}
	if err := made.finish(c, made.ci, caps); err != nil {
		return made, err
	}
	_, err = d.lookNow(c)
	return made, err
}

// entryOf is the profile's line of the card's table, if it may lie at start. It
// fails with ErrNotSupported.
func (d *Driver) entryOf(c *card, profile string, start int) (*entry, error) {
	table, err := d.readTable(c)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(table, func(e entry) bool { return e.Name == profile })
	if i < 0 {
		return nil, fmt.Errorf("%w: %s has no slices of profile %q", device.ErrNotSupported, c.fixed.name, profile)
	}
	if table[i].Starts == nil {
		return nil, fmt.Errorf("%s of %s: %w", profile, c.fixed.name, errPlacesUnknown)
	}
	if !slices.Contains(table[i].Starts, start) {
		return nil, fmt.Errorf("%w: %s starts at %v, not at %d", device.ErrNotSupported, profile, table[i].Starts, start)
	}
	return &table[i], nil
}

// errPlacesUnknown: an old driver says of a divided card only where slices start.
var errPlacesUnknown = errors.New("the driver does not say where such a slice starts")

// Destroy implements device.Driver.
func (d *Driver) Destroy(ctx context.Context, uuid string) error {
	c, err := d.find(ctx, uuid)
	if errors.Is(err, device.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = inTurn(ctx, c, func() (struct{}, error) { return struct{}{}, d.unmake(c, uuid) }, nil)
	return err
}

// unmake destroys a slice by UUID in the card's turn.
func (d *Driver) unmake(c *card, uuid string) error {
	if _, err := d.lookNow(c); err != nil { // what was there may be gone
		return err
	}
	i := slices.IndexFunc(c.live, func(l live) bool { return l.UUID == uuid })
	if i < 0 {
		return nil
	}
	place := c.live[i].Placement
	err := d.destroy(c, c.live[i])
	if _, again := d.lookNow(c); err != nil || again != nil {
		return errors.Join(err, again)
	}
	d.log.Info("slice destroyed", "device", c.uuid, "slice", place.String(), "uuid", uuid)
	if len(c.live) == 0 && c.fixed.model.ResetlessMIG {
		d.logged("leave MIG mode", d.leave(c)) // Undivide comes back to it
	}
	return nil
}

// destroy ends what there is of a slice: its compute instance, then its GPU
// instance. It can be repeated where it stopped.
func (d *Driver) destroy(c *card, l live) error {
	if l.ci != nil {
		if err := gone(l.ci.Destroy(), "destroy the compute instance of %s", l.Placement); err != nil {
			return d.blame(err, l)
		}
		c.unmade[l.GPUInstance] = l.UUID // until the GPU instance is gone too
	}
	if err := gone(l.gi.Destroy(), "destroy %s", l.Placement); err != nil {
		return d.blame(err, l)
	}
	delete(c.unmade, l.GPUInstance)
	return nil
}

// gone is problem, where what is not there any more was to be destroyed.
func gone(ret nvml.Return, what string, args ...any) error {
	if ret == nvml.ERROR_NOT_FOUND {
		return nil
	}
	return problem(ret, what, args...)
}

// blame adds to ErrInUse who it is.
func (d *Driver) blame(err error, l live) error {
	if errors.Is(err, device.ErrInUse) && l.dev != nil {
		return fmt.Errorf("%w, %s", err, held(l.dev))
	}
	return err
}

func (d *Driver) logged(what string, err error) {
	if err != nil {
		d.log.Warn("cannot "+what, "error", err)
	}
}
