package simulator

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"berth/agent/device"
	"berth/gpu"
)

// The physics of a card, first order throughout: power follows activity, heat
// follows power, memory fills at the speed of a copy. All slices of a card share
// its power and heat: the noisy neighbour that partitioning does not remove.
const (
	ambientC     = 30.0
	fullLoadRise = 42.0 // °C above ambient at full power, as air-cooled data-centre cards show
	powerTau     = 1.5  // seconds to follow activity
	heatTau      = 35.0 // seconds to follow power
	loadTau      = 0.7  // seconds for the utilisation counter to follow
	memoryRate   = 6e3  // MiB per second that a holder fills or gives back
	slowdownC    = 90.0 // where the model's data does not say
)

// load is what one holder does on one device.
type load struct {
	pid       int     // made up: a simulated card's holder need not be a process
	activity  float64 // 0 to 1 of the device
	memoryMiB float64
}

// heat is the card's present physical state.
type heat struct {
	at      time.Duration
	powerW  float64
	tempC   float64
	joule   float64             // used since the driver was loaded
	devices map[string]*reading // by UUID of card or slice
}

// reading is the present state of one device's counters.
type reading struct {
	activity  float64
	memoryMiB float64
}

func atRest(m gpu.Model) heat {
	idle := float64(m.IdleWatt)
	return heat{powerW: idle, tempC: ambientC + fullLoadRise*idle/float64(m.TDPWatt), devices: map[string]*reading{}}
}

func (h *heat) forget(uuid string) { delete(h.devices, uuid) }

// approach moves a value towards a target with time constant tau over dt seconds.
func approach(value, target, tau, dt float64) float64 {
	return target + (value-target)*math.Exp(-dt/tau)
}

// advance brings the card to the moment now, in steps short enough for heat and
// throttling to follow each other.
func (h *heat) advance(now time.Duration, c *card) {
	left := (now - h.at).Seconds()
	h.at = now
	// Beyond ten time constants everything has settled.
	for left = min(left, 10*heatTau); left > 0; left -= 0.5 {
		h.step(min(left, 0.5), c)
	}
}

func (h *heat) step(dt float64, c *card) {
	total := 0.0
	for uuid, share := range c.shares() {
		r := h.devices[uuid]
		if r == nil {
			r = &reading{}
			h.devices[uuid] = r
		}
		var want load
		for _, l := range c.holders[uuid] {
			want.activity += l.activity
			want.memoryMiB += l.memoryMiB
		}
		r.activity = approach(r.activity, min(1, want.activity), loadTau, dt)
		want.memoryMiB = min(want.memoryMiB, share.memoryMiB)
		r.memoryMiB += max(-memoryRate*dt, min(memoryRate*dt, want.memoryMiB-r.memoryMiB))
		total += r.activity * share.compute
	}
	idle, tdp := float64(c.model.IdleWatt), float64(c.model.TDPWatt)
	target := idle + (tdp-idle)*min(1, total)
	limit := slowdownC
	if c.model.SlowdownC > 0 {
		limit = float64(c.model.SlowdownC)
	}
	if h.tempC >= limit { // clocks fall until it cools
		target = idle + (target-idle)*0.5
	}
	before := h.powerW
	h.powerW = approach(before, target, powerTau, dt)
	h.joule += dt * (before + h.powerW) / 2
	h.tempC = approach(h.tempC, ambientC+fullLoadRise*h.powerW/tdp, heatTau, dt)
}

// share is a device's part of its card.
type share struct {
	compute   float64 // 0 to 1 of the card's compute
	memoryMiB float64
}

// shares lists the card itself and its slices; who holds the whole card has all.
func (c *card) shares() map[string]share {
	all := map[string]share{c.kept.UUID: {1, float64(c.model.MemoryMiB)}}
	for _, k := range c.kept.Slices {
		p, _ := c.model.Profile(k.Placement.Profile)
		all[k.UUID] = share{float64(p.ComputeSlices) / float64(c.model.ComputeSlices), float64(p.MemoryMiB)}
	}
	return all
}

// processes lists who holds the card itself, in the order in which they came.
func (c *card) processes() (out []device.Process) {
	for _, l := range c.holders[c.kept.UUID] {
		out = append(out, device.Process{PID: l.pid, MemoryMiB: whole(l.memoryMiB)})
	}
	slices.SortFunc(out, func(a, b device.Process) int { return a.PID - b.PID })
	return out
}

// readCard is what the driver reports of the card. Under MIG it has no
// utilisation (NVML answers "not supported").
func (c *card) readCard(noise *rand.Rand) device.Reading {
	memory := 0.0
	for _, r := range c.heat.devices {
		memory += r.memoryMiB
	}
	out := device.Reading{
		MemoryMiB:    whole(memory),
		TemperatureC: ptr(math.Round(c.heat.tempC + noise.NormFloat64()*0.2)),
		PowerW:       ptr(math.Round(c.heat.powerW*(1+noise.NormFloat64()*0.006)*10) / 10),
		EnergyMJ:     ptr(int64(c.heat.joule * 1000)),
	}
	if !c.kept.MIG {
		out.UtilizationPercent = percent(c.heat.devices[c.kept.UUID], noise)
		if c.model.Class == "datacenter" {
			out.EngineActive = ptr(*out.UtilizationPercent / 100)
		}
	}
	return out
}

// readSlice is what is known of a slice: no power, and the card's temperature.
func (c *card) readSlice(k keptSlice, noise *rand.Rand) device.Reading {
	r := c.heat.devices[k.UUID]
	memory := 0.0
	if r != nil {
		memory = r.memoryMiB
	}
	busy := percent(r, noise)
	return device.Reading{
		UtilizationPercent: busy,
		EngineActive:       ptr(*busy / 100),
		MemoryMiB:          whole(memory),
		TemperatureC:       ptr(math.Round(c.heat.tempC + noise.NormFloat64()*0.2)),
	}
}

// percent rounds as the counter does; an idle device reads an exact 0.
func percent(r *reading, noise *rand.Rand) *float64 {
	if r == nil || r.activity < 0.005 {
		return ptr(0.0)
	}
	return ptr(math.Round(max(0, min(100, 100*r.activity+noise.NormFloat64()*1.2))))
}

func whole(mib float64) *int64 { return ptr(int64(math.Round(mib))) }

func ptr[T any](v T) *T { return &v }

// Occupy implements device.Follower.
func (s *Simulator) Occupy(uuid, holder string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, _ := s.holder(uuid)
	if c == nil {
		return
	}
	if c.holders[uuid] == nil {
		c.holders[uuid] = map[string]load{}
	}
	if _, held := c.holders[uuid][holder]; !held {
		c.heat.advance(s.clock(), c)
		s.lastPID++
		c.holders[uuid][holder] = load{pid: s.lastPID}
	}
}

// Load implements device.Follower.
func (s *Simulator) Load(uuid, holder string, activity float64, memoryMiB int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, _ := s.holder(uuid)
	if c == nil {
		return
	}
	if l, held := c.holders[uuid][holder]; held {
		c.heat.advance(s.clock(), c) // what was so far was under the old load
		// Nothing but the memory that is left limits a holder: who comes first has it,
		// and the next one's allocation fails.
		left := c.shares()[uuid].memoryMiB
		for other, o := range c.holders[uuid] {
			if other != holder {
				left -= o.memoryMiB
			}
		}
		c.holders[uuid][holder] = load{pid: l.pid, activity: max(0, min(1, activity)), memoryMiB: max(0, min(float64(memoryMiB), left))}
	}
}

// Used implements device.Follower. Memory that is still filling is told in the
// proportions in which it will be had.
func (s *Simulator) Used(uuid, holder string) (memoryMiB int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, _ := s.holder(uuid)
	if c == nil {
		return 0, false
	}
	l, held := c.holders[uuid][holder]
	if !held {
		return 0, false
	}
	c.heat.advance(s.clock(), c)
	sum := 0.0
	for _, o := range c.holders[uuid] {
		sum += o.memoryMiB
	}
	r := c.heat.devices[uuid]
	if r == nil || sum == 0 {
		return 0, true
	}
	return *whole(min(r.memoryMiB, sum) * l.memoryMiB / sum), true
}

// Vacate implements device.Follower.
func (s *Simulator) Vacate(uuid, holder string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, _ := s.holder(uuid)
	if c == nil {
		return
	}
	c.heat.advance(s.clock(), c)
	delete(c.holders[uuid], holder)
	if len(c.holders[uuid]) == 0 {
		delete(c.holders, uuid)
	}
}

var (
	_ device.Driver   = (*Simulator)(nil)
	_ device.Follower = (*Simulator)(nil)
)
