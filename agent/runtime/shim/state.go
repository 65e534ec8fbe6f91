// Package shim is the small process above each instance. It launches the
// instance's tree (package jail), counts the seconds it is usable, ends it when
// they are used up, keeps its terminals and its log, and writes down how it ended.
// It needs no agent for any of this: an agent that dies and comes back finds the
// shim at its socket, or its last words in state.json.
//
// A run's folder holds spec.json (the order, written by the agent), lock (held
// while the shim lives), state.json, seconds, log, log.1, s.sock and shim.log (the
// shim's own errors).
package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"berth/agent/runtime"
	"berth/agent/runtime/jail"

	"golang.org/x/sys/unix"
)

// Names of files in a run's folder.
const (
	orderFile   = "spec.json"
	lockFile    = "lock"
	stateFile   = "state.json"
	secondsFile = "seconds"
	socketFile  = "s.sock"
	errorFile   = "shim.log"
)

// Order is what the agent has a shim do.
type Order struct {
	Spec  runtime.Spec `json:"spec"`
	Jail  jail.Config  `json:"jail"`
	Group string       `json:"group"` // name of the control group
}

// State is what a shim leaves on disk: written with fsync and rename at every
// change of phase. Seconds are kept beside it, once a second (see ReadState).
type State struct {
	runtime.Observed
	ShimPID   int      `json:"shim_pid"`
	InitPID   int      `json:"init_pid,omitempty"`
	InitStart uint64   `json:"init_start,omitempty"` // field 22 of /proc/PID/stat
	Exe       string   `json:"exe"`
	UID       int      `json:"uid"`
	Groups    []string `json:"groups,omitempty"`
}

// ReadState reads a run's folder: what its shim last wrote. os.ErrNotExist if no
// shim ever wrote there.
func ReadState(dir string) (s State, err error) {
	b, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("%s: %w", filepath.Join(dir, stateFile), err)
	}
	if !s.Phase.Over() {
		s.Seconds = max(s.Seconds, readSeconds(dir))
	}
	return s, nil
}

// WriteState replaces a run's state on disk. Only the shim calls it, and the
// driver once the shim is dead.
func WriteState(dir string, s State) error { return writeJSON(filepath.Join(dir, stateFile), s) }

// WriteOrder puts down what a shim started in dir shall do.
func WriteOrder(dir string, o Order) error { return writeJSON(filepath.Join(dir, orderFile), o) }

// ReadOrder reads it back; os.ErrNotExist if there is none.
func ReadOrder(dir string) (o Order, err error) {
	b, err := os.ReadFile(filepath.Join(dir, orderFile))
	if err != nil {
		return o, err
	}
	return o, json.Unmarshal(b, &o)
}

// writeJSON replaces a file so that a reader, or the next boot, sees the old text
// or the new, never a part.
func writeJSON(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// secondsKeeper overwrites the seconds file in place, 20 digits at a time, without
// fsync: a killed shim loses less than a second, a power cut what the kernel had
// not yet written back (about 35 s), which is then not charged.
type secondsKeeper struct {
	mu   sync.Mutex
	f    *os.File
	last int64
}

// keep writes n unless that much is kept already.
func (k *secondsKeeper) keep(n int64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n <= k.last {
		return nil
	}
	k.last = n
	_, err := k.f.WriteAt(fmt.Appendf(nil, "%020d\n", n), 0)
	return err
}

func readSeconds(dir string) int64 {
	b, err := os.ReadFile(filepath.Join(dir, secondsFile))
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// TakeLock takes the lock that a shim holds for its whole life, and is handed
// over to it: nobody else can be the shim of this run. ok is false if one lives.
//
// It is a lock of the open file, not of the process: it goes with the descriptor,
// and can be asked about (Alive) without being taken for a moment.
func TakeLock(dir string) (lock *os.File, ok bool, err error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, false, err
	}
	switch err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); {
	case err == nil:
		return f, true, nil
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EACCES):
		return nil, false, f.Close()
	default:
		f.Close()
		return nil, false, fmt.Errorf("lock %s: %w", dir, err)
	}
}

// Alive reports whether the run's shim lives.
func Alive(dir string) (bool, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	defer f.Close()
	held := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &held); err != nil {
		return false, fmt.Errorf("ask for the lock of %s: %w", dir, err)
	}
	return held.Type != unix.F_UNLCK, nil
}

// BootID names this boot of the host; state of another boot has no processes.
func BootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}
