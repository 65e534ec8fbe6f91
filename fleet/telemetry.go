package fleet

import (
	"slices"
	"sync"

	"berth/models"
)

// KeptSamples is how many readings are kept per instance and device: 15 minutes
// at one a second.
const KeptSamples = 900

// Sample is one second of one instance or device. A reading that the device
// does not give is nil. Seq grows with every sample of one key, also over
// restarts of agent and portal: it is never below the Unix second it was taken.
type Sample struct {
	Seq                int64
	At                 models.Instant // when the portal took it in
	Run                int            // of an instance; 0 for a device
	Seconds            int64          // of the run, as the node counts
	UtilizationPercent *float64
	MemoryMiB          *int64
	TemperatureC       *float64
	PowerW             *float64
}

// Subject is what samples are of.
type Subject string

// OfInstance is an instance.
func OfInstance(id models.InstanceID) Subject { return Subject("instance:" + id) }

// OfNode is all cards of a node together: the mean of their utilisation, the sum
// of their memory and power, the temperature of the hottest.
func OfNode(id models.NodeID) Subject { return Subject("node:" + id) }

// OfCard is a whole card. It has the node in it, so that a node can speak of its
// own cards only.
func OfCard(node models.NodeID, uuid string) Subject {
	return Subject("card:" + string(node) + ":" + uuid)
}

// Cards and CardsOf are each card of all nodes, or of one. They can only be
// subscribed to.
const Cards Subject = "cards"

// CardsOf is Cards of one node.
func CardsOf(node models.NodeID) Subject { return Subject("cards:" + node) }

// telemetry keeps a ring per instance, card and node, rolls the minutes up, and
// hands new samples to who subscribed.
type telemetry struct {
	mu   sync.Mutex
	keys map[Subject]*series
}

type series struct {
	ring []packed      // grows to KeptSamples, then wraps
	next int           // where the following one goes, once full
	last int64         // Seq of the newest
	subs []*subscriber // never changed in place, so that add may call them without the lock
	roll rolling
}

type subscriber struct{ publish func([]Reading) }

// Reading is a sample and what it is of: ID is that of the instance or node, or
// the card's UUID.
type Reading struct {
	Subject Subject
	ID      string
	Sample
	groups []Subject // whose subscribers hear of it too
}

func newTelemetry() *telemetry { return &telemetry{keys: map[Subject]*series{}} }

// packed is a Sample without pointers, since there are a million of them.
type packed struct {
	seq      int64
	at       models.Instant
	seconds  int64
	memory   int64
	util     float64
	temp     float64
	power    float64
	run      int32
	measured uint8 // one bit per reading
}

const (
	hasUtil = 1 << iota
	hasMemory
	hasTemp
	hasPower
)

func pack(s Sample) packed {
	p := packed{seq: s.Seq, at: s.At, seconds: s.Seconds, run: int32(s.Run)}
	if s.UtilizationPercent != nil {
		p.util, p.measured = *s.UtilizationPercent, p.measured|hasUtil
	}
	if s.MemoryMiB != nil {
		p.memory, p.measured = *s.MemoryMiB, p.measured|hasMemory
	}
	if s.TemperatureC != nil {
		p.temp, p.measured = *s.TemperatureC, p.measured|hasTemp
	}
	if s.PowerW != nil {
		p.power, p.measured = *s.PowerW, p.measured|hasPower
	}
	return p
}

func (p packed) sample() Sample {
	s := Sample{Seq: p.seq, At: p.at, Run: int(p.run), Seconds: p.seconds}
	if p.measured&hasUtil != 0 {
		s.UtilizationPercent = &p.util
	}
	if p.measured&hasMemory != 0 {
		s.MemoryMiB = &p.memory
	}
	if p.measured&hasTemp != 0 {
		s.TemperatureC = &p.temp
	}
	if p.measured&hasPower != 0 {
		s.PowerW = &p.power
	}
	return s
}

// Samples returns the kept readings of a subject with Seq above after, oldest
// first.
func (s *Service) Samples(of Subject, after int64) []Sample { return s.telemetry.samples(of, after) }

// Subscribe has publish called with the new readings of subjects until leave is:
// with those of one tick of a node at once. Whoever takes the tick in calls it, so
// it must not wait; two calls may be under way at once, and one may still be after
// leave. A reading is among Samples before publish is called with it.
func (s *Service) Subscribe(to []Subject, publish func([]Reading)) (leave func()) {
	return s.telemetry.subscribe(to, publish)
}

func (t *telemetry) samples(of Subject, after int64) []Sample {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.keys[of].since(after)
}

func (t *telemetry) subscribe(to []Subject, publish func([]Reading)) (leave func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	sub := &subscriber{publish}
	var all []*series
	for _, subject := range to {
		s := t.series(subject)
		s.subs = append(s.subs, sub)
		all = append(all, s)
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, s := range all {
			s.subs = slices.DeleteFunc(s.subs, func(other *subscriber) bool { return other == sub })
		}
	}
}

func (t *telemetry) series(of Subject) *series {
	s := t.keys[of]
	if s == nil {
		s = &series{}
		t.keys[of] = s
	}
	return s
}

// since returns the samples after a sequence number, oldest first.
func (s *series) since(after int64) []Sample {
	if s == nil {
		return nil
	}
	var out []Sample
	for i := range s.ring {
		if p := s.ring[(s.next+i)%len(s.ring)]; p.seq > after {
			out = append(out, p.sample())
		}
	}
	return out
}

// take keeps a tick's readings and hands them on.
func (t *telemetry) take(list []Reading) {
	for sub, readings := range t.keep(list) {
		sub.publish(readings)
	}
}

func (t *telemetry) keep(list []Reading) map[*subscriber][]Reading {
	t.mu.Lock()
	defer t.mu.Unlock()
	heard := map[*subscriber][]Reading{}
	for _, r := range list {
		s := t.series(r.Subject)
		r.Sample = s.add(r.Sample)
		s.roll.add(r.Sample)
		for _, sub := range s.subs {
			heard[sub] = append(heard[sub], r)
		}
		for _, g := range r.groups {
			if s := t.keys[g]; s != nil {
				for _, sub := range s.subs {
					heard[sub] = append(heard[sub], r)
				}
			}
		}
	}
	return heard
}

// add numbers a sample and keeps it.
func (s *series) add(sample Sample) Sample {
	sample.Seq = max(s.last+1, sample.At.Time().Unix())
	s.last = sample.Seq
	p := pack(sample)
	if len(s.ring) < KeptSamples {
		s.ring = append(s.ring, p)
	} else {
		s.ring[s.next] = p
		s.next = (s.next + 1) % KeptSamples
	}
	return sample
}

// forget drops what has had no sample since before, no reader, and nothing to store.
func (t *telemetry) forget(before models.Instant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, s := range t.keys {
		if len(s.subs) > 0 || s.roll.waits() {
			continue
		}
		if n := len(s.ring); n == 0 || s.ring[(s.next+n-1)%n].at < before {
			delete(t.keys, key)
		}
	}
}
