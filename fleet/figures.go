package fleet

import (
	"maps"
	"slices"
	"sync"
	"time"

	"berth/models"
)

// Figures are counts since this portal started, for its metrics.
type Figures struct {
	// Launches counts them by outcome: "placed", or the code of the Problem.
	Launches map[string]uint64
	// Phases is how long runs spent in each state on their way to being usable.
	Phases map[models.InstanceState]Histogram
}

// Histogram counts durations in seconds: Counts[i] are those up to Bounds[i].
type Histogram struct {
	Bounds []float64
	Counts []uint64
	Count  uint64
	Sum    float64
}

// phaseBounds span the making of a slice (a fraction of a second) and the pull of
// a large image (minutes).
var phaseBounds = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900}

// figures collects them.
type figures struct {
	mu       sync.Mutex
	launches map[string]uint64
	phases   map[models.InstanceState]*Histogram
}

func newFigures() *figures {
	return &figures{launches: map[string]uint64{}, phases: map[models.InstanceState]*Histogram{}}
}

func (f *figures) launched(outcome string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.launches[outcome]++
}

func (f *figures) spent(in models.InstanceState, took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.phases[in]
	if h == nil {
		h = &Histogram{Bounds: phaseBounds, Counts: make([]uint64, len(phaseBounds))}
		f.phases[in] = h
	}
	seconds := max(0, took.Seconds())
	for i, bound := range h.Bounds {
		if seconds <= bound {
			h.Counts[i]++
		}
	}
	h.Count++
	h.Sum += seconds
}

// Figures returns the counts as they are now.
func (s *Service) Figures() Figures {
	f := s.figures
	f.mu.Lock()
	defer f.mu.Unlock()
	out := Figures{Launches: maps.Clone(f.launches), Phases: map[models.InstanceState]Histogram{}}
	for state, h := range f.phases {
		c := *h
		c.Counts = slices.Clone(h.Counts)
		out.Phases[state] = c
	}
	return out
}
