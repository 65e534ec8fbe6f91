package sandbox

import (
	"context"
	"sync"
	"time"

	"berth/agent/runtime/shim"

	"golang.org/x/sys/unix"
)

// watchers follows living shims and tells subscribers whose state changed.
type watchers struct {
	d       *Driver
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu   sync.Mutex
	subs map[*subscriber]bool
}

// subscriber collects ids until its reader takes them.
type subscriber struct {
	changed map[string]bool
	wake    chan struct{}
}

func newWatchers(d *Driver) *watchers {
	ctx, cancel := context.WithCancel(context.Background())
	return &watchers{d: d, ctx: ctx, cancel: cancel, subs: map[*subscriber]bool{}}
}

func (w *watchers) close() {
	w.cancel()
	w.running.Wait()
}

// follow reports the changes of one run until its shim ends, and buries the shim
// if it is this process's child.
func (w *watchers) follow(id, dir string, pid int) {
	w.running.Go(func() {
		for w.ctx.Err() == nil {
			err := shim.Client{Dir: dir}.Watch(w.ctx, func() { w.tell(id) })
			if w.ctx.Err() != nil {
				return
			}
			if alive, e := shim.Alive(dir); e == nil && !alive {
				break
			}
			if err == nil {
				// The run is over; the shim serves its last answers, then exits.
				w.tell(id)
			}
			select {
			case <-w.ctx.Done():
			case <-time.After(time.Second):
			}
		}
		w.bury(pid)
		w.tell(id)
	})
}

// bury reaps a shim that is this process's child.
func (w *watchers) bury(pid int) {
	for range 100 {
		if pid <= 0 {
			return
		}
		got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		if err != unix.EINTR && (err != nil || got == pid) {
			return
		}
		select {
		case <-w.ctx.Done():
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (w *watchers) tell(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := range w.subs {
		s.changed[id] = true
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// Watch reports changes; see runtime.Driver.
func (d *Driver) Watch(ctx context.Context) <-chan string {
	w, out := d.watch, make(chan string)
	s := &subscriber{changed: map[string]bool{}, wake: make(chan struct{}, 1)}
	w.mu.Lock()
	w.subs[s] = true
	w.mu.Unlock()
	w.running.Go(func() {
		defer close(out)
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.subs, s)
		}()
		for {
			select {
			case <-s.wake:
			case <-ctx.Done():
				return
			case <-w.ctx.Done():
				return
			}
			w.mu.Lock()
			changed := s.changed
			s.changed = map[string]bool{}
			w.mu.Unlock()
			for id := range changed {
				select {
				case out <- id:
				case <-ctx.Done():
					return
				case <-w.ctx.Done():
					return
				}
			}
		}
	})
	return out
}
