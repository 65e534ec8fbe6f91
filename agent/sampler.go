package agent

import (
	"context"
	"sync"
	"time"

	"berth/agent/device"
	"berth/agent/runtime"
	"berth/gpu"
	"berth/wire"
)

// sampler reads all devices and instances once a second and hands the result to
// whoever listens. A listener that is slow loses ticks and delays nobody; losing
// one loses nothing, since seconds are cumulative.
type sampler struct {
	supervisor *supervisor
	devices    device.Driver

	used map[string]cpuUse // by instance, at the last tick

	mu        sync.Mutex
	latest    *wire.Tick
	listeners map[chan wire.Tick]struct{}
}

type cpuUse struct {
	run     int
	seconds float64
	at      time.Time
}

// tickQueue is how many ticks a listener may be behind before it loses some.
const tickQueue = 8

// run samples until ctx ends. Seq counts the seconds since the agent began by
// the monotonic clock, so a tick that was missed shows as a gap.
func (s *sampler) run(ctx context.Context) {
	began := time.Now()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	seq := int64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if now := int64(time.Since(began).Round(time.Second) / time.Second); now > seq {
			seq = now
			s.publish(s.sample(ctx, seq))
		}
	}
}

// listen returns a channel of ticks, the latest first, and what ends it.
func (s *sampler) listen() (<-chan wire.Tick, func()) {
	c := make(chan wire.Tick, tickQueue)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.latest != nil {
		c <- *s.latest
	}
	s.listeners[c] = struct{}{}
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.listeners, c)
	}
}

func (s *sampler) publish(t wire.Tick) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latest = &t
	for c := range s.listeners {
		select {
		case c <- t:
		default:
		}
	}
}

// sample reads everything once. What cannot be read costs its own value only.
func (s *sampler) sample(ctx context.Context, seq int64) wire.Tick {
	sup := s.supervisor
	t := wire.Tick{Seq: seq, BootID: sup.bootID, At: sup.now().UTC(), Devices: []wire.DeviceSample{}, Instances: []wire.InstanceSample{}}
	instances, err := sup.observed(ctx)
	if err != nil {
		sup.log.Warn("instances could not be sampled", "error", err)
	}
	s.follow(ctx, instances)

	cards, described, err := sup.devices(ctx)
	switch {
	case err != nil:
		sup.log.Warn("devices could not be sampled", "error", err)
	case sup.faults.see(described):
		sup.sweep(ctx) // whoever runs on a card that failed ends now
	}
	t.Inventory = sup.faults.version()
	for _, c := range cards {
		r := s.read(ctx, c.UUID)
		t.Devices = append(t.Devices, wire.DeviceSample{UUID: c.UUID, UtilizationPercent: r.UtilizationPercent, MemoryMiB: r.MemoryMiB, TemperatureC: r.TemperatureC, PowerW: r.PowerW})
	}
	for _, o := range instances {
		if o.Phase == wire.PhaseStopped || o.Phase == wire.PhaseGone {
			continue
		}
		sample := wire.InstanceSample{ID: o.ID, Run: o.Run, Phase: o.Phase, Seconds: o.Seconds, Progress: o.Progress}
		var readings []device.Reading
		for _, h := range sup.slicer.grants.of(o.ID) {
			if h.UUID != "" {
				r := s.read(ctx, h.UUID)
				if gpu.IsShare(h.Placement.Profile) {
					r = s.ofShare(h.UUID, o.ID, r)
				}
				readings = append(readings, r)
			}
		}
		total := together(readings)
		sample.UtilizationPercent, sample.MemoryMiB, sample.TemperatureC, sample.PowerW = total.UtilizationPercent, total.MemoryMiB, total.TemperatureC, total.PowerW
		t.Instances = append(t.Instances, sample)
	}
	return t
}

// read gives what a device measures; nothing, if it does not answer.
func (s *sampler) read(ctx context.Context, uuid string) device.Reading {
	r, err := s.devices.Sample(ctx, uuid)
	if err != nil {
		s.supervisor.log.Debug("device could not be read", "device", uuid, "error", err)
		return device.Reading{}
	}
	return r
}

// ofShare is what a card's reading says of one that has a share of it: how hot it
// is. Utilisation and power are the neighbours' too; the memory of its own programs
// is known where the device tells whose it is.
func (s *sampler) ofShare(card, instance string, of device.Reading) device.Reading {
	out := device.Reading{TemperatureC: of.TemperatureC}
	if f, ok := s.devices.(device.Follower); ok && of.MemoryMiB != nil {
		if used, held := f.Used(card, instance); held {
			out.MemoryMiB = &used
		}
	}
	return out
}

// together joins the readings of an instance's devices: mean utilisation, all
// memory, the hottest, all power. If one of them is not measured, the joint
// value is not.
func together(readings []device.Reading) device.Reading {
	if len(readings) == 0 {
		return device.Reading{}
	}
	out := readings[0]
	for _, r := range readings[1:] {
		out.UtilizationPercent = join(out.UtilizationPercent, r.UtilizationPercent, func(a, b float64) float64 { return a + b })
		out.MemoryMiB = join(out.MemoryMiB, r.MemoryMiB, func(a, b int64) int64 { return a + b })
		out.TemperatureC = join(out.TemperatureC, r.TemperatureC, func(a, b float64) float64 { return max(a, b) })
		out.PowerW = join(out.PowerW, r.PowerW, func(a, b float64) float64 { return a + b })
	}
	if u := out.UtilizationPercent; u != nil {
		mean := *u / float64(len(readings))
		out.UtilizationPercent = &mean
	}
	return out
}

func join[T any](a, b *T, f func(T, T) T) *T {
	if a == nil || b == nil {
		return nil
	}
	v := f(*a, *b)
	return &v
}

// follow tells devices without hardware what the instances do: what they ask for
// with berth-load, plus their own use of the host. One busy core keeps a device
// busy, as one thread that feeds a real one can.
func (s *sampler) follow(ctx context.Context, instances []wire.Observed) {
	follower, ok := s.devices.(device.Follower)
	if !ok {
		return
	}
	sup := s.supervisor
	used := map[string]cpuUse{}
	for _, o := range instances {
		if o.Phase != wire.PhaseRunning && o.Phase != wire.PhaseStarting {
			continue
		}
		u, err := sup.runtime.Usage(ctx, o.ID)
		if err != nil { // not running yet, or not any more
			u = runtime.Usage{}
		}
		now := cpuUse{run: o.Run, seconds: u.CPUSeconds, at: time.Now()}
		used[o.ID] = now
		cores := 0.0
		if before, known := s.used[o.ID]; known && before.run == o.Run {
			cores = max(0, now.seconds-before.seconds) / now.at.Sub(before.at).Seconds()
		}
		memory := u.MemoryBytes>>20 + u.Load.MemoryMiB
		for _, h := range sup.slicer.grants.of(o.ID) {
			follower.Load(h.UUID, o.ID, min(1, cores+u.Load.UtilizationPercent/100), memory)
		}
	}
	s.used = used
}
