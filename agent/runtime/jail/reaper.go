package jail

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// reaper starts processes and collects every dead child, its own and those it
// inherits as pid 1. os/exec cannot be used beside it: two waiters would steal
// each other's children.
type reaper struct {
	mu      sync.Mutex
	waiters map[int]chan unix.WaitStatus
	empty   chan struct{} // closed while there is no child; replaced at the next start
	idle    bool
}

func newReaper() *reaper {
	r := &reaper{waiters: map[int]chan unix.WaitStatus{}, empty: make(chan struct{}), idle: true}
	close(r.empty)
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	go func() {
		for range children {
			r.reap()
		}
	}()
	return r
}

// start runs a program; the channel yields its status once.
func (r *reaper) start(argv []string, attr *syscall.ProcAttr) (int, <-chan unix.WaitStatus, error) {
	r.mu.Lock() // so that a child that ends at once finds its waiter
	defer r.mu.Unlock()
	pid, err := syscall.ForkExec(argv[0], argv, attr)
	if err != nil {
		return 0, nil, err
	}
	ch := make(chan unix.WaitStatus, 1)
	r.waiters[pid] = ch
	if r.idle {
		r.idle, r.empty = false, make(chan struct{})
	}
	return pid, ch, nil
}

func (r *reaper) reap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, unix.WNOHANG, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.ECHILD && !r.idle:
			r.idle = true
			close(r.empty)
			return
		case err != nil || pid == 0:
			return
		}
		if ch := r.waiters[pid]; ch != nil {
			delete(r.waiters, pid)
			ch <- ws
		}
	}
}

// gone returns a channel that is closed when no child is left.
func (r *reaper) gone() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.empty
}

// exitCode follows the shells: 128+n for signal n.
func exitCode(ws unix.WaitStatus) int {
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}
