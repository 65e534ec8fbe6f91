package shim

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"time"

	"berth/agent/runtime"
	"berth/agent/runtime/cgroup"
	"berth/agent/runtime/jail"

	"golang.org/x/sys/unix"
)

// Subcommand is the shim's name on the command line, before the run's folder.
const Subcommand = "shim"

// endGrace is how long a tree has between SIGTERM and SIGKILL when the shim ends
// it by itself.
const endGrace = 10 * time.Second

// Descriptors handed to a shim by Start.
const (
	fdLock  = 3
	fdReady = 4
)

// shim is one run. Its loop (run, on the main thread) owns the course of events;
// mu guards what connections read and write beside it.
type shim struct {
	dir   string
	order Order
	log   *logWriter
	kept  secondsKeeper
	err   io.Writer // the shim's own troubles

	tree  *jail.Tree
	group *cgroup.Group
	wakes chan func() // work for the loop, from connections
	done  chan struct{}

	paid, grace *time.Timer
	second      *time.Ticker

	mu       sync.Mutex
	st       State
	meter    meter
	load     runtime.LoadTarget
	cpu      float64
	watchers map[chan struct{}]bool
	sessions map[string]*session
	asked    map[int]chan jail.Message
	lastAsk  int
	opening  sync.Mutex // one shell at a time
}

// Main is `berth shim DIR`, started by the agent with the run's lock and a pipe to
// say that it is ready. The main goroutine must be locked to the main thread.
func Main(args []string) int {
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, "berth: this command is started by Berth itself")
		return 2
	}
	unix.CloseOnExec(fdLock)
	ready := os.NewFile(fdReady, "ready")
	unix.CloseOnExec(fdReady)
	// Heard and dropped, not ignored: that would pass on to the instance.
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGPIPE)
	s, err := open(args[0])
	var sock *socket
	if err == nil {
		sock, err = listen(s)
	}
	if err != nil {
		fmt.Fprintln(ready, err)
		return 1
	}
	if err := s.persist(); err != nil {
		fmt.Fprintln(ready, err)
		return 1
	}
	fmt.Fprintln(ready, "ok")
	ready.Close()
	s.run()
	sock.close()
	return 0
}

func open(dir string) (*shim, error) {
	// The socket is made by its bare name, so that the folder's path may be long.
	if err := os.Chdir(dir); err != nil {
		return nil, err
	}
	unix.Umask(0o077)
	order, err := ReadOrder(dir)
	if err != nil {
		return nil, err
	}
	boot, err := BootID()
	if err != nil {
		return nil, err
	}
	log, err := openLog(dir)
	if err != nil {
		return nil, err
	}
	secs, err := os.OpenFile(filepath.Join(dir, secondsFile), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	s := &shim{
		dir: dir, order: order, log: log, kept: secondsKeeper{f: secs}, err: os.Stderr,
		wakes: make(chan func()), done: make(chan struct{}),
		paid: stopped(), grace: stopped(), second: time.NewTicker(time.Second),
		watchers: map[chan struct{}]bool{}, sessions: map[string]*session{}, asked: map[int]chan jail.Message{},
	}
	s.meter.setLimit(0, order.Spec.PaidSeconds)
	s.st = State{
		Observed: runtime.Observed{
			Instance: order.Spec.Instance, Run: order.Spec.Run, Phase: runtime.Starting, PaidSeconds: s.meter.limit,
			StartedAt: time.Now().UTC(), BootID: boot, VisibleDevices: []string{}, Rung: order.Jail.Rung,
		},
		ShimPID: os.Getpid(), Exe: order.Jail.Exe, UID: order.Jail.UID,
	}
	return s, nil
}

// stopped returns a timer that is not running.
func stopped() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// clock reads the monotonic clock, which stands still while the host is suspended.
func clock() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(fmt.Sprintf("berth: no monotonic clock: %v", err)) // every Linux has one
	}
	return time.Duration(ts.Nano())
}

// run carries the run from launch to its last word.
func (s *shim) run() {
	if s.order.Jail.Rung == runtime.RungProcess {
		if err := jail.BecomeReaper(); err != nil {
			fmt.Fprintln(s.err, "adopt orphans:", err)
		}
	}
	if err := s.launch(); err != nil {
		s.end(runtime.CauseNode, err.Error())
		s.finish(nil)
		return
	}
	events := make(chan jail.Message)
	go func() {
		defer close(events)
		for {
			m, err := s.tree.Control.Receive()
			if err != nil {
				return
			}
			events <- m
		}
	}()
	gone := make(chan error, 1)
	go func() { gone <- s.tree.Wait() }()
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		io.Copy(s.log, s.tree.Log)
	}()
	go s.watchDisk()
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, unix.SIGTERM)
	open := events
	for over := false; !over; {
		select {
		case m, ok := <-open:
			if !ok {
				open = nil // the init is ending; its death follows
				continue
			}
			s.handle(m)
		case err := <-gone:
			if err != nil {
				fmt.Fprintln(s.err, "wait:", err)
			}
			over = true
		case f := <-s.wakes:
			f()
		case <-terminate:
			s.terminate(runtime.CauseStopped, "the node was shut down", endGrace)
		case <-s.paid.C:
			s.paidUp()
		case <-s.grace.C:
			s.kill()
		case <-s.second.C:
			s.report()
		}
	}
	// What the init said last may still be in the socket.
	if open != nil {
		for m := range open {
			s.handle(m)
		}
	}
	s.finish(logged)
}

// launch starts the tree and puts it under its limits.
func (s *shim) launch() error {
	host, err := cgroup.Detect()
	if err != nil {
		return err
	}
	spec := s.order.Spec
	s.group = host.Create(s.order.Group, cgroup.Limits{MilliCPU: spec.MilliCPU, MemoryMiB: spec.MemoryMiB, Pids: jail.MaxProcesses})
	conf := s.order.Jail.WithProcessLimits(spec, s.group.Holds(cgroup.Memory), s.group.Holds(cgroup.Pids))
	if s.tree, err = jail.Launch(conf); err != nil {
		return errors.Join(err, s.group.Remove())
	}
	if err := s.group.Add(s.tree.Init.Pid); err != nil {
		fmt.Fprintln(s.err, err)
	}
	stat, err := jail.ReadStat(s.tree.Init.Pid)
	if err != nil {
		fmt.Fprintln(s.err, "init:", err) // it is dead already; the loop will see
	}
	s.mu.Lock()
	s.st.InitPID, s.st.InitStart, s.st.Groups = s.tree.Init.Pid, stat.StartTicks, s.group.Dirs
	s.mu.Unlock()
	return s.persist()
}

// snapshot is the state with the meter's present reading.
func (s *shim) snapshot() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.st
	st.Seconds = s.meter.seconds(clock())
	return st
}

func (s *shim) persist() error { return WriteState(s.dir, s.report()) }

// note writes a change of phase down, then tells who watches.
func (s *shim) note() {
	if err := s.persist(); err != nil {
		fmt.Fprintln(s.err, "state:", err)
	}
	s.tell()
}

func (s *shim) tell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ch := range s.watchers {
		select {
		case ch <- struct{}{}:
		default: // it has one coming already
		}
	}
}

// report is the snapshot for others to see. Its seconds are kept first: what was
// once reported is not taken back, even if this process is killed.
func (s *shim) report() State {
	st := s.snapshot()
	if err := s.kept.keep(st.Seconds); err != nil {
		fmt.Fprintln(s.err, "seconds:", err)
	}
	return st
}

// finish writes the last word. Nothing of the tree runs any more.
func (s *shim) finish(logged <-chan struct{}) {
	oom := s.group != nil && s.group.OutOfMemory() > 0
	s.mu.Lock()
	killed := s.st.Cause == runtime.CauseExit && s.st.ExitCode != nil && *s.st.ExitCode == 128+int(unix.SIGKILL)
	cause := s.st.Cause
	s.mu.Unlock()
	outOfMemory := fmt.Sprintf("out of memory: its limit is %d MiB", s.order.Spec.MemoryMiB)
	switch {
	case oom && killed:
		s.mu.Lock()
		s.st.Cause, s.st.Reason = runtime.CauseMemory, outOfMemory
		s.mu.Unlock()
	case oom && cause == runtime.CauseNone:
		s.end(runtime.CauseMemory, outOfMemory)
	case cause == runtime.CauseNone:
		s.end(runtime.CauseNode, "the instance's first process was killed")
	}
	s.mu.Lock()
	s.load = runtime.LoadTarget{}
	sessions := s.sessions
	s.sessions = map[string]*session{}
	s.mu.Unlock()
	for _, t := range sessions {
		t.end()
	}
	if logged != nil {
		<-logged // every writer is dead, so this ends
	}
	s.log.close()
	if s.group != nil && s.tree != nil {
		if err := s.group.Remove(); err != nil {
			fmt.Fprintln(s.err, err)
		}
	}
	last := s.report()
	last.Phase, last.ExitedAt, last.Groups = runtime.Exited, time.Now().UTC(), nil
	// On disk before anyone can hear of it: the next run may start at the word. If
	// the disk is full, the driver finds this process gone and writes it later.
	if err := WriteState(s.dir, last); err != nil {
		fmt.Fprintln(s.err, "state:", err)
	}
	s.mu.Lock()
	s.st = last
	s.mu.Unlock()
	s.tell()
	close(s.done)
}
