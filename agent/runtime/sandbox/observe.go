package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"berth/agent/runtime"
	"berth/agent/runtime/cgroup"
	"berth/agent/runtime/jail"
	"berth/agent/runtime/shim"

	"golang.org/x/sys/unix"
)

// askTimeout bounds a question to a shim.
const askTimeout = 10 * time.Second

// List reads every instance's newest run; see runtime.Driver.
func (d *Driver) List(ctx context.Context) ([]runtime.Observed, error) {
	ids, err := d.instances()
	if err != nil {
		return nil, err
	}
	out := []runtime.Observed{}
	for _, id := range ids {
		o, err := d.Observe(ctx, id, 0)
		switch {
		case errors.Is(err, runtime.ErrNotFound): // removed meanwhile, or prepared and never started
		case err != nil:
			return nil, err
		default:
			out = append(out, o)
		}
	}
	return out, nil
}

// Observe reads one run; see runtime.Driver.
func (d *Driver) Observe(ctx context.Context, id string, run int) (runtime.Observed, error) {
	defer d.hold(id)()
	if run == 0 {
		var err error
		if run, err = d.newestRun(id); err != nil {
			return runtime.Observed{}, err
		}
	}
	dir, err := d.knownRun(id, run)
	if err != nil {
		return runtime.Observed{}, err
	}
	st, err := d.settle(id, run)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return runtime.Observed{}, fmt.Errorf("%s, run %d: %w", id, run, runtime.ErrNotFound)
	case err != nil:
		return runtime.Observed{}, fmt.Errorf("observe instance %s: %w", id, err)
	case st.Phase.Over():
		return st.Observed, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	live, err := shim.Client{Dir: dir}.State(ctx)
	switch {
	case err == nil:
		return live.Observed, nil
	case errors.Is(err, shim.ErrGone): // it ended between the two looks
		st, err = d.settle(id, run)
	case ctx.Err() != nil:
		// A shim that does not answer is alive all the same: what it last wrote is
		// true, if up to a second old.
		return st.Observed, nil
	}
	return st.Observed, err
}

// settle reads a run's state from disk, and ends on paper what ended without its
// shim being able to write. It is called with the instance held (or alone, in
// New). os.ErrNotExist if the run never started.
func (d *Driver) settle(id string, run int) (shim.State, error) {
	if run == 0 {
		return shim.State{}, os.ErrNotExist
	}
	dir := d.runDir(id, run)
	// In this order: a shim writes its last word before it dies.
	alive, err := shim.Alive(dir)
	if err != nil {
		return shim.State{}, err
	}
	st, err := shim.ReadState(dir)
	if err != nil || st.Phase.Over() || alive {
		return st, err
	}
	boot, err := shim.BootID()
	if err != nil {
		return st, err
	}
	if st.Cause == runtime.CauseNone {
		st.Cause, st.Reason = runtime.CauseLost, "shim lost"
		if st.BootID != boot {
			st.Cause, st.Reason = runtime.CauseReboot, "the node restarted"
		}
	}
	if st.BootID == boot {
		if err := endOrphans(st); err != nil {
			return st, err
		}
		if err := cgroup.Open(st.Groups).Remove(); err != nil {
			d.conf.Log.Warn("control group stays", "instance", id, "error", err)
		}
	}
	st.Phase, st.ExitedAt, st.Groups = runtime.Exited, time.Now().UTC(), nil
	d.conf.Log.Warn("ended without its shim", "instance", id, "run", run, "reason", st.Reason, "seconds", st.Seconds)
	return st, shim.WriteState(dir, st)
}

// endOrphans makes sure that nothing of a run lives whose shim was killed. The
// kernel kills an isolated tree by itself; plain processes end when their init
// sees the socket close, and where root gave them a user id they can be found.
func endOrphans(st shim.State) error {
	deadline := time.Now().Add(10 * time.Second)
	for {
		living := 0
		if s, err := jail.ReadStat(st.InitPID); st.InitPID > 0 && err == nil && s.StartTicks == st.InitStart && s.State != 'Z' {
			// Not the init alone: the orphans of a plain one would be nobody's.
			if err := jail.KillTree(st.InitPID); err != nil {
				return err
			}
			living++
		}
		if os.Getuid() == 0 && st.UID >= firstUID {
			all, err := jail.OfUser(st.UID)
			if err != nil {
				return err
			}
			for _, pid := range all {
				unix.Kill(pid, unix.SIGKILL)
				living++
			}
		}
		if living == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d processes of a run whose shim is gone do not end", living)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
