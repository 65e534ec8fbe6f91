// Package sandbox runs instances as real processes in namespaces of their own,
// without a container engine. It owns a folder on the node: which instances there
// are, their disks, and for each run the folder that its shim works in. It starts
// shims and asks them; what happens in a run is the shim's business (package shim),
// what the place looks like the init's (package jail).
//
// What always holds: a run has at most one shim, for the shim holds the run's
// lock; everything needed to adopt instances after kill -9 is on disk.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"berth/agent/runtime"
	"berth/agent/runtime/shim"

	"golang.org/x/sys/unix"
)

// Config of a driver.
type Config struct {
	// Dir holds everything; one agent at a time. The folders above it must be
	// passable for other users (o+x) where only the rungs "sandbox (userns)" as
	// root or "process" work.
	Dir string
	// SelfExe is the Berth program; empty means the running one. It is copied into
	// Dir, since a `go run` build vanishes.
	SelfExe string
	// AllowUnisolated permits the last rung: plain processes.
	AllowUnisolated bool
	// Mask are further host paths that no instance may see, should they lie under
	// /usr or /opt. Dir is always masked.
	Mask []string
	Log  *slog.Logger
}

// Driver implements runtime.Driver.
type Driver struct {
	conf    Config
	exe     string // the copy in Dir
	uidBase int
	rungs   []runtime.Rung
	lock    *os.File
	watch   *watchers

	probing sync.Mutex
	info    *runtime.Info

	mu    sync.Mutex
	locks map[string]*sync.Mutex // per instance
}

var _ runtime.Driver = (*Driver)(nil)

// New opens the node's folder and adopts what runs in it. It fails if another
// agent holds the folder.
func New(c Config) (*Driver, error) {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, err
	}
	if c.Dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	d := &Driver{
		conf: c, uidBase: uidBase(c.Dir), locks: map[string]*sync.Mutex{},
		rungs: []runtime.Rung{runtime.RungRoot, runtime.RungUserNS, runtime.RungProcess},
	}
	if d.lock, err = lockFolder(c.Dir); err != nil {
		return nil, err
	}
	d.watch = newWatchers(d)
	if err := d.open(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *Driver) open() (err error) {
	for name, mode := range map[string]os.FileMode{"instances": 0o711, "bin": 0o711, "trash": 0o700} {
		p := filepath.Join(d.conf.Dir, name)
		if err := errors.Join(os.MkdirAll(p, mode), os.Chmod(p, mode)); err != nil {
			return err
		}
	}
	if d.exe, err = installSelf(d.conf.Dir, d.conf.SelfExe); err != nil {
		return fmt.Errorf("keep a copy of this program: %w", err)
	}
	// What an agent that was killed left half done.
	for _, pattern := range []string{"trash/*", "instances/.probe-*"} {
		left, err := fs.Glob(os.DirFS(d.conf.Dir), pattern)
		if err != nil {
			return err
		}
		for _, p := range left {
			if err := erase(filepath.Join(d.conf.Dir, p)); err != nil {
				return err
			}
		}
	}
	ids, err := d.instances()
	if err != nil {
		return err
	}
	inUse := map[string]bool{d.exe: true}
	for _, id := range ids {
		run, err := d.newestRun(id)
		if err != nil {
			return err
		}
		st, err := d.settle(id, run)
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue // it never started
		case err != nil:
			return fmt.Errorf("adopt instance %s: %w", id, err)
		}
		if !st.Phase.Over() {
			inUse[st.Exe] = true
			d.watch.follow(id, d.runDir(id, run), st.ShimPID)
			d.conf.Log.Info("adopted", "instance", id, "run", run)
		}
	}
	return dropPrograms(d.conf.Dir, inUse)
}

// Close lets go of the folder and leaves the instances running.
func (d *Driver) Close() error {
	d.watch.close()
	return d.lock.Close()
}

// lockFolder makes sure that one agent works in a folder.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("another agent works in %s: stop it or choose another folder", dir)
	}
	return f, nil
}

// Each node's folder gets its own thousand user ids above 200000, so that two
// nodes on one host are not the same user. The last one is the probe's.
const (
	firstUID    = 200_000
	uidsPerNode = 1000
)

func uidBase(dir string) int {
	h := fnv.New32a()
	h.Write([]byte(dir))
	return firstUID + int(h.Sum32()%2000)*uidsPerNode
}

// hold locks one instance; the result unlocks it.
func (d *Driver) hold(id string) func() {
	d.mu.Lock()
	l := d.locks[id]
	if l == nil {
		l = &sync.Mutex{}
		d.locks[id] = l
	}
	d.mu.Unlock()
	l.Lock()
	return l.Unlock
}

// Start begins a run; see runtime.Driver.
func (d *Driver) Start(ctx context.Context, spec runtime.Spec) error {
	if err := spec.Validate(); err != nil {
		return err
	}
	info := d.Probe(ctx)
	if !info.Usable() {
		return errors.New(info.Summary())
	}
	defer d.hold(spec.Instance)()
	id := spec.Instance
	newest, err := d.newestRun(id)
	if err != nil {
		return err
	}
	if newest > 0 {
		st, err := d.settle(id, newest)
		switch {
		case errors.Is(err, os.ErrNotExist):
			// Prepared and never started, or its shim is just waking up.
			alive, err := shim.Alive(d.runDir(id, newest))
			if err == nil && alive && newest != spec.Run {
				err = fmt.Errorf("start run %d of %s: run %d begins: %w", spec.Run, id, newest, runtime.ErrBusy)
			}
			if err != nil {
				return err
			}
		case err != nil:
			return err
		case newest == spec.Run:
			return nil
		case newest > spec.Run:
			return fmt.Errorf("run %d of instance %s is past: run %d came after it", spec.Run, id, newest)
		case !st.Phase.Over():
			return fmt.Errorf("start run %d of %s: run %d is %s: %w", spec.Run, id, newest, st.Phase, runtime.ErrBusy)
		}
	}
	uid, err := d.prepare(id)
	if err != nil {
		return fmt.Errorf("prepare instance %s: %w", id, err)
	}
	dir := d.runDir(id, spec.Run)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	pid, err := shim.Start(ctx, dir, d.exe, shim.Order{
		Spec: spec, Jail: d.jail(d.instanceDir(id), uid, info.Rung, spec), Group: d.groupName(id, spec.Run),
	})
	if err != nil {
		return err
	}
	d.watch.follow(id, dir, pid)
	d.conf.Log.Info("started", "instance", id, "run", spec.Run, "rung", string(info.Rung))
	return d.dropRuns(id, spec.Run)
}

// Stop ends the newest run; see runtime.Driver.
func (d *Driver) Stop(ctx context.Context, id string, grace time.Duration) error {
	run, err := d.newestRun(id)
	if err != nil || run == 0 {
		return err
	}
	// Not under the instance's lock: a grace may be long, and the state must stay
	// readable meanwhile.
	err = shim.Client{Dir: d.runDir(id, run)}.Stop(ctx, grace)
	if err != nil && !errors.Is(err, shim.ErrGone) {
		return fmt.Errorf("stop instance %s: %w", id, err)
	}
	defer d.hold(id)()
	if _, err = d.settle(id, run); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Remove erases an instance; see runtime.Driver.
func (d *Driver) Remove(ctx context.Context, id string) error {
	if !runtime.ValidInstance(id) {
		return nil // nothing can have that name
	}
	if err := d.Stop(ctx, id, 0); err != nil {
		return err
	}
	defer d.hold(id)()
	gone, err := os.MkdirTemp(filepath.Join(d.conf.Dir, "trash"), "")
	if err != nil {
		return err
	}
	// Renamed first: a half-erased instance must not look like one.
	if err := os.Rename(d.instanceDir(id), filepath.Join(gone, id)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := erase(gone); err != nil {
		return fmt.Errorf("erase instance %s: %w", id, err)
	}
	return nil
}

// SetPaidSeconds moves the paid limit; see runtime.Driver.
func (d *Driver) SetPaidSeconds(ctx context.Context, id string, run int, seconds int64) error {
	if seconds <= 0 {
		return nil
	}
	dir, err := d.knownRun(id, run)
	if err != nil {
		return err
	}
	err = shim.Client{Dir: dir}.SetPaid(ctx, seconds)
	if errors.Is(err, shim.ErrGone) {
		return nil
	}
	return err
}

// Terminal attaches to a shell; see runtime.Driver.
func (d *Driver) Terminal(ctx context.Context, id string, req runtime.TerminalRequest) (runtime.Terminal, error) {
	dir, err := d.knownRun(id, 0)
	if err != nil {
		return nil, err
	}
	t, err := shim.Client{Dir: dir}.Attach(ctx, req)
	if errors.Is(err, shim.ErrGone) {
		return nil, runtime.ErrNotRunning
	}
	return t, err
}

// Usage reads what a run uses; see runtime.Driver.
func (d *Driver) Usage(ctx context.Context, id string) (runtime.Usage, error) {
	dir, err := d.knownRun(id, 0)
	if err != nil {
		return runtime.Usage{}, err
	}
	u, err := shim.Client{Dir: dir}.Usage(ctx)
	if errors.Is(err, shim.ErrGone) {
		return u, runtime.ErrNotRunning
	}
	return u, err
}

// Logs reads a run's output; see runtime.Driver.
func (d *Driver) Logs(ctx context.Context, id string, run int, tail int64, follow bool) (io.ReadCloser, error) {
	dir, err := d.knownRun(id, run)
	if err != nil {
		return nil, err
	}
	if follow {
		r, err := shim.Client{Dir: dir}.Logs(ctx, tail)
		if !errors.Is(err, shim.ErrGone) {
			return r, err
		}
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(shim.ReadLog(dir, w, tail)) }()
	return r, nil
}
