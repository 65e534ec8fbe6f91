//go:build nvml && cgo

package nvml

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"berth/agent/device"
)

// Sample implements device.Driver.
func (d *Driver) Sample(ctx context.Context, uuid string) (device.Reading, error) {
	c, err := d.find(ctx, uuid)
	if err != nil {
		return device.Reading{}, err
	}
	return read(ctx, d, c, func() (device.Reading, error) {
		dev, err := d.handle(c)
		if err != nil {
			return device.Reading{}, err
		}
		if c.uuid == uuid {
			return d.sampleCard(dev)
		}
		i := slices.IndexFunc(c.live, func(l live) bool { return l.UUID == uuid })
		if i < 0 {
			return device.Reading{}, fmt.Errorf("%w: slice %s", device.ErrNotFound, uuid)
		}
		return d.sampleSlice(c, c.live[i])
	})
}

// sampleCard reads a whole card. Each value stands for itself: one that the card
// does not measure (utilisation in MIG mode) leaves the others.
func (d *Driver) sampleCard(dev nvml.Device) (r device.Reading, err error) {
	use, ret := dev.GetUtilizationRates()
	if known(&err, ret, "read the utilisation") {
		r.UtilizationPercent = ptr(float64(use.Gpu))
		r.MemoryBusyPercent = ptr(float64(use.Memory))
	}
	r.MemoryMiB = d.usedMemory(&err, dev)
	r.TemperatureC = temperature(&err, dev)
	milliwatt, ret := dev.GetPowerUsage()
	if known(&err, ret, "read the power") {
		r.PowerW = ptr(float64(milliwatt) / 1000)
	}
	millijoule, ret := dev.GetTotalEnergyConsumption()
	if known(&err, ret, "read the energy") {
		r.EnergyMJ = ptr(int64(millijoule))
	}
	r.SMClockMHz = clock(&err, dev, nvml.CLOCK_SM)
	r.MemoryClockMHz = clock(&err, dev, nvml.CLOCK_MEM)
	return r, err
}

// sampleSlice reads a slice: memory by its own handle, utilisation by GPM, and the
// temperature of its card. Power it has none.
func (d *Driver) sampleSlice(c *card, l live) (r device.Reading, err error) {
	r.TemperatureC = temperature(&err, c.dev)
	if l.dev == nil {
		return r, err
	}
	r.MemoryMiB = d.usedMemory(&err, l.dev)
	if c.fixed.gpm {
		m := c.meters[l.UUID]
		if m == nil {
			m = &meter{lib: d.lib, instance: l.GPUInstance}
			c.meters[l.UUID] = m
		}
		r.UtilizationPercent = m.read(&err, c.dev, time.Now())
		if r.UtilizationPercent != nil {
			r.EngineActive = ptr(*r.UtilizationPercent / 100)
		}
	}
	return r, err
}

// known reports whether a value was read. Not supported, and not permitted, is a
// value that is not known; a lost card is an error of the whole reading.
func known(err *error, ret nvml.Return, what string) bool {
	problem := problem(ret, "%s", what)
	if errors.Is(problem, device.ErrLost) && *err == nil {
		*err = problem
	}
	return problem == nil
}

func clock(err *error, dev nvml.Device, of nvml.ClockType) *int {
	mhz, ret := dev.GetClockInfo(of)
	if !known(err, ret, "read a clock") {
		return nil
	}
	return ptr(int(mhz))
}

func temperature(err *error, dev nvml.Device) *float64 {
	t, ret := dev.GetTemperature(nvml.TEMPERATURE_GPU)
	if !known(err, ret, "read the temperature") {
		return nil
	}
	return ptr(float64(t))
}

// usedMemory leaves out what the driver has reserved for itself, where it says how
// much that is (R510 and later).
func (d *Driver) usedMemory(err *error, dev nvml.Device) *int64 {
	if d.hasMemoryV2 {
		if m, ret := dev.GetMemoryInfo_v2(); ret == nvml.SUCCESS {
			return ptr(int64((m.Used - min(m.Used, m.Reserved)) >> 20))
		}
	}
	m, ret := dev.GetMemoryInfo()
	if !known(err, ret, "read the memory") {
		return nil
	}
	return ptr(int64(m.Used >> 20))
}

// meter measures the utilisation of one slice between two samples of the card's
// performance counters (GPM: Hopper and later).
type meter struct {
	lib      nvml.Interface
	instance int // the GPU instance
	last     nvml.GpmSample
	at       time.Time
	value    *float64 // as of at; nil: not known yet
}

// gpmInterval is how far apart two samples must be at least.
const gpmInterval = 100 * time.Millisecond

// read samples and returns the share of the time since the last sample in which
// the slice computed, in percent; nil while there is no earlier one. Asked again
// too soon, it answers as before.
func (m *meter) read(err *error, dev nvml.Device, at time.Time) *float64 {
	if m.last != nil && at.Sub(m.at) < gpmInterval {
		return m.value
	}
	next, ret := m.lib.GpmSampleAlloc()
	if !known(err, ret, "make room for a sample") {
		return nil
	}
	if ret := dev.GpmMigSampleGet(m.instance, next); !known(err, ret, "sample the slice") {
		next.Free()
		m.drop()
		return nil
	}
	before := m.last
	m.last, m.at, m.value = next, at, nil
	if before == nil {
		return nil
	}
	defer before.Free()
	get := nvml.GpmMetricsGetType{NumMetrics: 1, Sample1: before, Sample2: next}
	get.Metrics[0].MetricId = uint32(nvml.GPM_METRIC_GRAPHICS_UTIL)
	if ret := m.lib.GpmMetricsGet(&get); !known(err, ret, "compute the utilisation") || nvml.Return(get.Metrics[0].NvmlReturn) != nvml.SUCCESS {
		return nil
	}
	m.value = ptr(max(0, min(100, get.Metrics[0].Value)))
	return m.value
}

func (m *meter) drop() {
	if m.last != nil {
		m.last.Free()
	}
	m.last, m.value = nil, nil
}

// tidy drops the meters of slices that are gone, in the card's turn.
func (c *card) tidy() {
	for uuid, m := range c.meters {
		if !slices.ContainsFunc(c.live, func(l live) bool { return l.UUID == uuid && l.GPUInstance == m.instance }) {
			m.drop()
			delete(c.meters, uuid)
		}
	}
	for instance := range c.unmade {
		if !slices.ContainsFunc(c.live, func(l live) bool { return l.GPUInstance == instance && l.HalfMade }) {
			delete(c.unmade, instance)
		}
	}
}

func (c *card) dropMeters() {
	c.live = nil
	c.tidy()
}
