package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"berth/agent/runtime"
	"berth/wire"
)

// worker looks after one instance: look, do what is missing, look again. All it
// needs to know stands in the runtime, on the devices, in the grants and in the
// journal; its fields are for people and for pacing.
type worker struct {
	*supervisor
	id    string
	awake chan struct{} // capacity 1

	tries    int      // failures in a row of starting triesRun
	triesRun int      //
	ending   *verdict // why the worker itself is ending the run, if not asked to

	// Under supervisor.mu:
	order   order              // what the present pass acts on
	abandon context.CancelFunc // of the present pass; nil between passes
	view    wire.Observed
	nothing bool // nothing is known of the instance here any more
}

// order is what the portal wants of an instance, for one pass.
type order struct {
	wire.DesiredInstance
	explained bool // an entry names the instance
	confirmed bool // the portal's list is fresh: the unexplained may be ended
}

// verdict is why a run ended, in wire's words.
type verdict struct {
	reason, detail string
	exitCode       *int
}

// errOvertaken ends a pass whose wish changed under it.
var errOvertaken = errors.New("overtaken by a new wish")

const (
	lookAgain  = 5 * time.Second // nothing to do: changes wake the worker earlier
	retryAtMin = 250 * time.Millisecond
	retryAtMax = 15 * time.Second
	startTries = 5 // then the run fails, with the driver's words
)

func (w *worker) run(ctx context.Context) {
	log := w.log.With("instance", w.id)
	failures := 0
	for {
		again, err := w.pass(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errOvertaken):
			again = 0
		case err != nil:
			again = min(retryAtMax, retryAtMin<<min(failures, 10))
			failures++
			log.Error("cannot bring the instance to where it should be", "error", err, "retry_in", again)
		default:
			failures = 0
		}
		if err == nil && w.retire(w) {
			return
		}
		timer := time.NewTimer(again)
		select {
		case <-w.awake:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// wake asks for another pass; one already asked for is enough.
func (w *worker) wake() {
	select {
	case w.awake <- struct{}{}:
	default:
	}
}

// reconsider ends a pass that acts on what is no longer wanted: a launch that
// was cancelled must not run to its end first. The caller holds mu.
func (w *worker) reconsider() {
	e, explained := w.entry(w.id)
	if w.abandon != nil && (explained != w.order.explained || e.Want != w.order.Want || e.Run != w.order.Run) {
		w.abandon()
	}
}

// begin fixes what this pass acts on.
func (w *worker) begin(ctx context.Context) (order, context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	e, explained := w.entry(w.id)
	w.order = order{DesiredInstance: e, explained: explained, confirmed: w.confirmed}
	w.order.ID = w.id
	w.abandon, w.nothing = cancel, false
	return w.order, ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.abandon = nil
		cancel()
	}
}

// pass does what is missing and says when to look again at the latest.
func (w *worker) pass(parent context.Context) (time.Duration, error) {
	o, ctx, done := w.begin(parent)
	defer done()
	seen, err := w.runtime.Observe(ctx, w.id, 0)
	found := err == nil
	if err != nil && !errors.Is(err, runtime.ErrNotFound) {
		return 0, fmt.Errorf("observe: %w", err)
	}
	if found {
		if err := w.account(seen); err != nil {
			return 0, err
		}
	}
	var again time.Duration
	switch {
	case o.explained && o.Want == wire.WantRunning:
		again, err = w.keepRunning(ctx, o, seen, found)
	case o.explained || o.confirmed:
		again, err = w.end(ctx, o, seen, found)
	default:
		again, err = w.leave(ctx, seen, found)
	}
	if err != nil && ctx.Err() != nil {
		return 0, errOvertaken // whatever it failed with, that is why
	}
	return again, err
}

// account journals that a run became usable, before anything is done with it
// further: the first second paid is the first second usable.
func (w *worker) account(seen runtime.Observed) error {
	last, said := w.journal.newestOf(w.id)
	if seen.ReadyAt.IsZero() || said && (last.Run > seen.Run || last.Run == seen.Run && (last.Phase == wire.PhaseRunning || last.Phase == wire.PhaseStopped)) {
		return nil
	}
	return w.say(wire.Event{Run: seen.Run, Phase: wire.PhaseRunning, Seconds: seen.Seconds})
}

// finished reports whether the run's end is journalled.
func (w *worker) finished(run int) bool {
	last, said := w.journal.newestOf(w.id)
	return said && (last.Run > run || last.Run == run && last.Phase == wire.PhaseStopped)
}

// finish gives the slices back and then journals the end of a run.
func (w *worker) finish(ctx context.Context, run int, seconds int64, v verdict) error {
	w.show(func(o *wire.Observed) { o.Run, o.Seconds, o.Phase = run, max(seconds, 0), wire.PhaseStopping })
	if err := w.slicer.release(ctx, w.id); err != nil {
		return err
	}
	if !w.finished(run) {
		ev := wire.Event{Run: run, Phase: wire.PhaseStopped, Seconds: seconds, Reason: v.reason, Detail: v.detail, ExitCode: v.exitCode}
		if err := w.say(ev); err != nil {
			return err
		}
	}
	w.ending = nil
	return nil
}

// say journals a fact and shows it. Nothing may be built on it before say returns.
func (w *worker) say(ev wire.Event) error {
	ev.BootID, ev.At, ev.Instance = w.bootID, w.now().UTC(), w.id
	for _, h := range w.slicer.grants.of(w.id) {
		ev.Slices = append(ev.Slices, h.Slice)
	}
	ev, err := w.journal.append(ev)
	if err != nil {
		return err
	}
	w.log.Info("instance is "+string(ev.Phase), "instance", w.id, "run", ev.Run, "seconds", ev.Seconds, "reason", ev.Reason, "detail", ev.Detail)
	w.showEvent(ev)
	return nil
}

// showEvent makes the view what the event says.
func (w *worker) showEvent(ev wire.Event) { w.show(func(o *wire.Observed) { *o = viewOfEvent(ev) }) }

func (w *worker) show(change func(*wire.Observed)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.view)
}

// showRun makes the view what the runtime says of a living run.
func (w *worker) showRun(seen runtime.Observed) {
	w.show(func(o *wire.Observed) {
		v := viewOfRun(seen)
		if o.Run == v.Run {
			v.Seconds = max(v.Seconds, o.Seconds)
		}
		*o = v
	})
}

func viewOfEvent(ev wire.Event) wire.Observed {
	return wire.Observed{ID: ev.Instance, Run: ev.Run, Phase: ev.Phase, Reason: ev.Reason, Detail: ev.Detail, ExitCode: ev.ExitCode, Seconds: ev.Seconds, Progress: ev.Progress}
}

func viewOfRun(seen runtime.Observed) wire.Observed {
	phase := wire.PhaseStarting
	switch seen.Phase {
	case runtime.Running:
		phase = wire.PhaseRunning
	case runtime.Stopping:
		phase = wire.PhaseStopping
	}
	return wire.Observed{ID: seen.Instance, Run: seen.Run, Phase: phase, Seconds: seen.Seconds}
}
