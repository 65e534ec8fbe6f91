package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"berth/agent/device"
	"berth/agent/runtime"
	"berth/wire"
)

// keepRunning brings the wanted run up and keeps it, ending what is left of
// earlier ones first.
func (w *worker) keepRunning(ctx context.Context, o order, seen runtime.Observed, found bool) (time.Duration, error) {
	if found && !seen.Phase.Over() && (seen.Run != o.Run || w.finished(o.Run)) {
		why := verdict{reason: wire.ReasonAsked}
		if seen.Run > o.Run {
			why = verdict{reason: wire.ReasonUnexpected, detail: fmt.Sprintf("run %d is wanted, a later one ran", o.Run)}
		}
		return w.stop(ctx, seen.Run, why, w.grace)
	}
	if found && seen.Run != o.Run && !w.finished(seen.Run) {
		return 0, w.finish(ctx, seen.Run, seen.Seconds, w.why(o, seen))
	}
	last, said := w.journal.newestOf(w.id)
	if said && last.Run < o.Run && last.Phase != wire.PhaseStopped { // it never got as far as the runtime
		return 0, w.finish(ctx, last.Run, last.Seconds, verdict{reason: wire.ReasonAsked})
	}
	if w.finished(o.Run) { // over and told: only a higher run starts it again
		w.showEvent(last)
		return lookAgain, w.slicer.release(ctx, w.id)
	}
	if found && seen.Run == o.Run {
		return w.tend(ctx, o, seen)
	}
	if said && last.Run == o.Run && last.Phase == wire.PhaseRunning {
		return 0, w.finish(ctx, o.Run, w.lastSeconds(last), verdict{reason: wire.ReasonSupervisor, detail: "It ran here and nothing of it is left."})
	}
	return w.start(ctx, o)
}

// tend looks after the wanted run, alive or over.
func (w *worker) tend(ctx context.Context, o order, seen runtime.Observed) (time.Duration, error) {
	if seen.Phase.Over() {
		return 0, w.finish(ctx, seen.Run, seen.Seconds, w.why(o, seen))
	}
	w.showRun(seen)
	w.slicer.occupy(w.id)
	if fault, err := w.slicer.fault(ctx, w.id); err != nil {
		return 0, err
	} else if fault != "" {
		return w.stop(ctx, seen.Run, verdict{reason: wire.ReasonFault, detail: fault}, w.grace)
	}
	if _, missing, err := w.slicer.given(ctx, w.id); err != nil {
		return 0, err
	} else if n, all := len(missing), len(w.slicer.grants.of(w.id)); n > 0 {
		detail := fmt.Sprintf("%d of %d slices are not on the device any more: %s of %s.", n, all, missing[0].Placement, missing[0].DeviceUUID)
		return w.stop(ctx, seen.Run, verdict{reason: wire.ReasonDevices, detail: detail}, w.grace)
	}
	if o.PaidSeconds > 0 && o.PaidSeconds != seen.PaidSeconds {
		if err := w.runtime.SetPaidSeconds(ctx, w.id, o.Run, o.PaidSeconds); err != nil {
			return 0, fmt.Errorf("set the paid seconds: %w", err)
		}
	}
	if seen.Phase == runtime.Starting {
		return time.Second, nil
	}
	return lookAgain, nil
}

// start makes the slices, gets the image and starts the run. It is begun anew
// after a failure or a crash at any line.
func (w *worker) start(ctx context.Context, o order) (time.Duration, error) {
	if w.triesRun != o.Run {
		w.tries, w.triesRun = 0, o.Run
	}
	if !slices.Contains(w.images, o.Spec.Image) {
		detail := fmt.Sprintf("This node has no image %q. It has: %s.", o.Spec.Image, strings.Join(w.images, ", "))
		return 0, w.finish(ctx, o.Run, 0, verdict{reason: wire.ReasonImage, detail: detail})
	}
	w.show(func(v *wire.Observed) { *v = wire.Observed{ID: w.id, Run: o.Run, Phase: wire.PhaseSlicing} })
	grants, err := w.slicer.make(ctx, w.id, o.Slices)
	if err != nil {
		var taken *takenError
		if errors.As(err, &taken) && w.leaving(taken) {
			w.show(func(v *wire.Observed) { v.Detail = err.Error() })
			return retryAtMin, nil
		}
		return w.startFailed(ctx, o, wire.ReasonSlices, err)
	}
	for _, phase := range []wire.Phase{wire.PhasePulling, wire.PhaseStarting} {
		last, said := w.journal.newestOf(w.id)
		if said && last.Run == o.Run && (last.Phase == phase || last.Phase == wire.PhaseStarting) {
			continue // told before a crash
		}
		if err := w.say(wire.Event{Run: o.Run, Phase: phase}); err != nil {
			return 0, err
		}
	}
	w.show(func(v *wire.Observed) { v.Phase = wire.PhaseStarting })
	w.slicer.occupy(w.id)
	err = w.runtime.Start(ctx, runtime.Spec{
		Instance:      w.id,
		Run:           o.Run,
		Name:          o.Spec.Name,
		Command:       o.Spec.Command,
		StartupScript: o.Spec.StartupScript,
		Env:           o.Spec.Env,
		DiskGiB:       int64(o.Spec.DiskGiB),
		MilliCPU:      int64(o.Spec.MilliCPU),
		MemoryMiB:     int64(o.Spec.MemoryMiB),
		Devices:       grants,
		PaidSeconds:   o.PaidSeconds,
	})
	if err != nil {
		return w.startFailed(ctx, o, wire.ReasonNode, err)
	}
	return retryAtMin, nil
}

// startFailed tries again a bounded number of times with the same wish, then
// fails the run with the driver's words: it is never stuck.
func (w *worker) startFailed(ctx context.Context, o order, reason string, err error) (time.Duration, error) {
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	w.tries++
	w.show(func(v *wire.Observed) { v.Detail = err.Error() })
	hopeless := errors.Is(err, device.ErrNotSupported) || errors.Is(err, device.ErrNotFound) || errors.Is(err, device.ErrPermission) || errors.Is(err, device.ErrResetRequired)
	if w.tries < startTries && !hopeless {
		again := retryAtMin << w.tries
		w.log.Warn("cannot start the instance yet", "instance", w.id, "run", o.Run, "error", err, "retry_in", again)
		return again, nil
	}
	return 0, w.finish(ctx, o.Run, 0, verdict{reason: reason, detail: err.Error()})
}

// lastSeconds is the most that is known of a run's seconds without the runtime.
func (w *worker) lastSeconds(last wire.Event) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.view.Run == last.Run {
		return max(last.Seconds, w.view.Seconds)
	}
	return last.Seconds
}
