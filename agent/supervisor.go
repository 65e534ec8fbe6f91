package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"berth/agent/device"
	"berth/agent/runtime"
	"berth/wire"
)

// errOlder answers a desired state below one that was seen.
var errOlder = errors.New("an older desired state")

// supervisor makes the node agree with what the portal wants of it, again and
// again, from whatever it finds: it never needs to have seen each step. Each
// instance has one worker, so no two actions meet on one instance.
type supervisor struct {
	dir     string
	runtime runtime.Driver
	slicer  *slicer
	tables  *tables
	journal *journal
	images  []string
	grace   time.Duration
	bootID  string
	now     func() time.Time
	log     *slog.Logger

	layouts *layouts
	faults  faults
	running sync.WaitGroup
	puts    sync.Mutex // one desired state at a time, to the disk and then to mu

	mu        sync.Mutex
	ctx       context.Context // of the workers; nil before start
	desired   wire.Desired
	confirmed bool // the portal has said what it wants on the present connection
	workers   map[string]*worker
}

// sweepEvery is how often all instances are looked at though nothing was heard.
const sweepEvery = 15 * time.Second

func (s *supervisor) desiredFile() string { return filepath.Join(s.dir, "desired.json") }

// load reads the last desired state: a restarted agent goes on from it even when
// the portal is away.
func (s *supervisor) load() error { return readJSON(s.desiredFile(), &s.desired) }

// begin gives each instance its worker, which work until ctx ends.
func (s *supervisor) begin(ctx context.Context) {
	s.mu.Lock()
	s.ctx = ctx
	s.mu.Unlock()
	s.sweep(ctx)
}

// run supervises until ctx ends; instances go on without it.
func (s *supervisor) run(ctx context.Context) {
	changes := s.runtime.Watch(ctx)
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		s.sweep(ctx)
		for waiting := true; waiting; {
			select {
			case id, open := <-changes:
				if !open { // the driver was closed; the sweep still sees
					changes = nil
				}
				s.wake(id)
			case <-tick.C:
				waiting = false
			case <-ctx.Done():
				s.mu.Lock() // a sweep that has just begun workers is over after this
				s.mu.Unlock()
				s.running.Wait()
				return
			}
		}
	}
}

// put takes the node's whole desired state: on disk first, then in force. It
// fails with errOlder, or says what is wrong with it.
func (s *supervisor) put(ctx context.Context, d wire.Desired) error {
	if err := checkDesired(d); err != nil {
		return err
	}
	s.puts.Lock()
	defer s.puts.Unlock()
	s.mu.Lock()
	before := s.desired
	s.mu.Unlock()
	if d.Generation < before.Generation {
		return fmt.Errorf("%w: generation %d, this node acts on %d", errOlder, d.Generation, before.Generation)
	}
	if !reflect.DeepEqual(d, before) {
		if err := writeJSON(s.desiredFile(), d); err != nil {
			return fmt.Errorf("keep the desired state: %w", err)
		}
	}
	s.mu.Lock()
	if !reflect.DeepEqual(d.Layouts, before.Layouts) {
		s.layouts.want(d.Layouts)
	}
	s.desired, s.confirmed = d, true
	for _, w := range s.workers {
		w.reconsider()
	}
	s.mu.Unlock()
	s.sweep(ctx)
	return nil
}

func checkDesired(d wire.Desired) error {
	seen := map[string]bool{}
	for _, e := range d.Instances {
		switch {
		case !runtime.ValidInstance(e.ID) || seen[e.ID]:
			return fmt.Errorf("instance id %q is malformed or there twice", e.ID)
		case e.Run < 1:
			return fmt.Errorf("instance %s: run %d; runs count from 1", e.ID, e.Run)
		case e.Want != wire.WantRunning && e.Want != wire.WantStopped && e.Want != wire.WantGone:
			return fmt.Errorf("instance %s: %q is not a wish this agent knows", e.ID, e.Want)
		}
		seen[e.ID] = true
	}
	return nil
}

// unconfirm is called for each new connection: what no entry explains is ended
// only on the portal's fresh word, never for a stale file.
func (s *supervisor) unconfirm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.confirmed = false
}

// sweep sees that whatever is wanted, runs, is held or was spoken of has its
// worker, and wakes them all.
func (s *supervisor) sweep(ctx context.Context) {
	ids := append(s.journal.instances(), s.slicer.grants.instances()...)
	listed, err := s.runtime.List(ctx)
	if err != nil && ctx.Err() == nil {
		s.log.Error("cannot list instances", "error", err)
	}
	for _, o := range listed {
		ids = append(ids, o.Instance)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil || s.ctx.Err() != nil {
		return
	}
	for _, e := range s.desired.Instances {
		ids = append(ids, e.ID)
	}
	for _, id := range ids {
		if s.workers[id] == nil {
			i := slices.IndexFunc(listed, func(o runtime.Observed) bool { return o.Instance == id })
			w := &worker{supervisor: s, id: id, awake: make(chan struct{}, 1), view: s.firstView(id, listed, i)}
			s.workers[id] = w
			s.running.Go(func() { w.run(s.ctx) })
		}
	}
	for _, w := range s.workers {
		w.wake()
	}
}

// firstView is what is known of an instance before its worker has looked: a State
// that lacked a running instance would have it taken for lost.
func (s *supervisor) firstView(id string, listed []runtime.Observed, i int) wire.Observed {
	if i >= 0 && !listed[i].Phase.Over() {
		return viewOfRun(listed[i])
	}
	if last, said := s.journal.newestOf(id); said {
		return viewOfEvent(last)
	}
	if i >= 0 {
		return wire.Observed{ID: id, Run: listed[i].Run, Phase: wire.PhaseStopping, Seconds: listed[i].Seconds}
	}
	return wire.Observed{ID: id}
}

// wake makes the instance's worker look again.
func (s *supervisor) wake(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.workers[id]; w != nil {
		w.wake()
	}
}

// entry is what the portal wants of the instance; the caller holds mu.
func (s *supervisor) entry(id string) (wire.DesiredInstance, bool) {
	i := slices.IndexFunc(s.desired.Instances, func(e wire.DesiredInstance) bool { return e.ID == id })
	if i < 0 {
		return wire.DesiredInstance{}, false
	}
	return s.desired.Instances[i], true
}

// leaving reports whether the holder of a slice is on its way to give it back,
// so that whoever was promised it next need only wait.
func (s *supervisor) leaving(t *takenError) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, wanted := s.entry(t.holder)
	return !wanted || e.Want != wire.WantRunning ||
		!slices.ContainsFunc(e.Slices, func(w wire.Slice) bool { return overlap(w, t.slice) })
}

// retire removes the worker of an instance of which nothing is left to do or to
// tell. False: it must go on.
func (s *supervisor) retire(w *worker) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, wanted := s.entry(w.id); wanted || !w.nothing {
		return false
	}
	delete(s.workers, w.id)
	return true
}

// devices reads the cards, and how they are told to the portal.
func (s *supervisor) devices(ctx context.Context) ([]device.Card, []wire.Device, error) {
	granted := s.slicer.grants.all()
	cards, err := s.slicer.devices.Inventory(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("list devices: %w", err)
	}
	s.tables.see(ctx, cards)
	out := describeDevices(cards, append(granted, s.slicer.grants.all()...), s.tables)
	for i := range out {
		if what := s.layouts.trouble(out[i].UUID); what != "" && out[i].Health == device.HealthOK {
			out[i].Health = what
		}
	}
	return cards, out, nil
}

// observed lists what the node has, with the seconds as the runtime counts them
// now, in order of instance id.
func (s *supervisor) observed(ctx context.Context) ([]wire.Observed, error) {
	listed, err := s.runtime.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list instances: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range listed {
		if w := s.workers[o.Instance]; w != nil && w.view.Run == o.Run {
			w.view.Seconds = max(w.view.Seconds, o.Seconds)
		}
	}
	var out []wire.Observed
	for _, w := range s.workers {
		if w.view.Phase == "" { // not looked at yet, or never here
			continue
		}
		v := w.view
		v.Slices = nil
		for _, h := range s.slicer.grants.of(w.id) {
			v.Slices = append(v.Slices, h.Slice)
		}
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b wire.Observed) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}
