package agent

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"berth/agent/runtime"
	"berth/wire"
)

// goneGrace is how long a terminated instance may take to end by itself: its
// disk goes with it, so there is little to save.
const goneGrace = 2 * time.Second

// end brings the instance to stopped or gone. One that no entry explains is
// stopped and its slices are given back; its disk is left until the portal says
// gone, since a list that forgot it must not erase a renter's files.
func (w *worker) end(ctx context.Context, o order, seen runtime.Observed, found bool) (time.Duration, error) {
	if found && !seen.Phase.Over() {
		why, grace := verdict{reason: wire.ReasonAsked}, w.grace
		if !o.explained {
			why = verdict{reason: wire.ReasonUnexpected, detail: "The portal does not know this instance."}
		}
		if o.Want == wire.WantGone {
			grace = min(grace, goneGrace)
		}
		return w.stop(ctx, seen.Run, why, grace)
	}
	if found && !w.finished(seen.Run) {
		if err := w.finish(ctx, seen.Run, seen.Seconds, w.why(o, seen)); err != nil {
			return 0, err
		}
	}
	if last, said := w.journal.newestOf(w.id); said && last.Phase != wire.PhaseStopped {
		if err := w.finish(ctx, last.Run, w.lastSeconds(last), w.cut(o, last)); err != nil {
			return 0, err
		}
	}
	if err := w.slicer.release(ctx, w.id); err != nil {
		return 0, err
	}
	if o.Want == wire.WantGone {
		return lookAgain, w.remove(ctx, o)
	}
	if o.explained && !w.finished(o.Run) { // it was stopped before it began
		return lookAgain, w.finish(ctx, o.Run, 0, verdict{reason: wire.ReasonAsked})
	}
	if last, said := w.journal.newestOf(w.id); said {
		w.showEvent(last)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, said := w.journal.newestOf(w.id)
	w.nothing = !found && !said
	return lookAgain, nil
}

// remove erases what is left and says so, once in this agent's life: told again
// after a restart it does no harm.
func (w *worker) remove(ctx context.Context, o order) error {
	w.mu.Lock()
	told := w.view.Phase == wire.PhaseGone
	w.mu.Unlock()
	if told {
		return nil
	}
	if err := w.runtime.Remove(ctx, w.id); err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	last, said := w.journal.newestOf(w.id)
	ev := wire.Event{Run: o.Run, Phase: wire.PhaseGone, Reason: wire.ReasonAsked}
	if said && last.Run >= o.Run {
		ev.Run, ev.Seconds, ev.Reason, ev.Detail, ev.ExitCode = last.Run, last.Seconds, last.Reason, last.Detail, last.ExitCode
	}
	return w.say(ev)
}

// leave watches an instance that nothing explains while the portal is away: it
// goes on, and what becomes of it is told.
func (w *worker) leave(ctx context.Context, seen runtime.Observed, found bool) (time.Duration, error) {
	last, said := w.journal.newestOf(w.id)
	switch {
	case found && !seen.Phase.Over():
		w.showRun(seen)
		w.slicer.occupy(w.id)
	case found && !w.finished(seen.Run):
		return 0, w.finish(ctx, seen.Run, seen.Seconds, w.why(order{}, seen))
	case said:
		w.showEvent(last)
	}
	return lookAgain, nil
}

// stop ends the living run and leaves the rest to the next pass. The meter
// stands still from the call on.
func (w *worker) stop(ctx context.Context, run int, why verdict, grace time.Duration) (time.Duration, error) {
	w.ending = &why
	w.show(func(v *wire.Observed) { v.Run, v.Phase = run, wire.PhaseStopping })
	if err := w.runtime.Stop(ctx, w.id, grace); err != nil {
		return 0, fmt.Errorf("stop: %w", err)
	}
	return 0, nil
}

// why translates the runtime's account of a run's end.
func (w *worker) why(o order, seen runtime.Observed) verdict {
	v := verdict{reason: wire.ReasonNode, detail: seen.Reason, exitCode: seen.ExitCode}
	switch seen.Cause {
	case runtime.CauseExit:
		v.reason = wire.ReasonExited
	case runtime.CauseMemory:
		v.reason = wire.ReasonExited
		if v.exitCode == nil {
			killed := 128 + int(unix.SIGKILL)
			v.exitCode = &killed
		}
	case runtime.CauseDisk:
		v.reason = wire.ReasonDisk
	case runtime.CausePaid:
		v.reason = wire.ReasonPaidUntil
	case runtime.CauseStartup:
		v.reason = wire.ReasonStartup
	case runtime.CauseCommand:
		v.reason = wire.ReasonCommand
	case runtime.CauseDevices:
		v.reason = wire.ReasonDevices
	case runtime.CauseLost:
		v.reason = wire.ReasonSupervisor
	case runtime.CauseReboot:
		v.reason = wire.ReasonRebooted
	case runtime.CauseStopped:
		switch {
		case w.ending != nil:
			return *w.ending
		case o.explained && o.Want == wire.WantRunning && o.Run == seen.Run:
			v.reason, v.detail = wire.ReasonAsked, "By whoever runs the node, not from the portal."
		case o.explained:
			return verdict{reason: wire.ReasonAsked}
		default:
			return verdict{reason: wire.ReasonUnexpected, detail: "The portal does not know this instance."}
		}
	}
	return v
}

// cut is the verdict on a run that the runtime has nothing of any more.
func (w *worker) cut(o order, last wire.Event) verdict {
	switch {
	case last.Phase == wire.PhaseRunning:
		return verdict{reason: wire.ReasonSupervisor, detail: "It ran here and nothing of it is left."}
	case !o.explained:
		return verdict{reason: wire.ReasonUnexpected, detail: "The portal does not know this instance."}
	}
	return verdict{reason: wire.ReasonAsked}
}
