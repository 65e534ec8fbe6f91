package shim

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"berth/agent/runtime"
	"berth/agent/runtime/jail"

	"golang.org/x/sys/unix"
)

// maxSessions bounds the named terminals of one instance.
const maxSessions = 32

// shellTimeout is how long an init may take to open a terminal.
const shellTimeout = 10 * time.Second

// socket serves a shim's connections.
type socket struct {
	s        *shim
	listener net.Listener
	serving  sync.WaitGroup
}

// listen opens the socket in the current folder, for this user only (umask).
func listen(s *shim) (*socket, error) {
	if err := os.Remove(socketFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", socketFile)
	if err != nil {
		return nil, err
	}
	k := &socket{s: s, listener: l}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			k.serving.Add(1)
			go func() {
				defer k.serving.Done()
				defer c.Close()
				k.serve(c)
			}()
		}
	}()
	return k, nil
}

// close lets those who wait for the end have their answer.
func (k *socket) close() {
	k.listener.Close()
	answered := make(chan struct{})
	go func() {
		k.serving.Wait()
		close(answered)
	}()
	select {
	case <-answered:
	case <-time.After(time.Second):
	}
}

func (k *socket) serve(c net.Conn) {
	r := bufio.NewReader(c)
	var q request
	c.SetDeadline(time.Now().Add(10 * time.Second))
	if err := readLine(r, &q); err != nil {
		return
	}
	c.SetDeadline(time.Time{})
	s := k.s
	switch q.Op {
	case opState:
		st := s.report()
		writeLine(c, response{State: &st})
	case opStop:
		s.wake(func() { s.terminate(runtime.CauseStopped, "stopped", time.Duration(q.GraceMS)*time.Millisecond) })
		<-s.done
		writeLine(c, response{})
	case opPaid:
		s.wake(func() { s.setPaid(q.Seconds) })
		writeLine(c, response{})
	case opUsage:
		u, err := s.usage()
		writeLine(c, answer(err, response{Usage: &u}))
	case opWatch:
		s.watch(c, r)
	case opAttach:
		s.attach(c, r, q)
	case opLogs:
		if writeLine(c, response{}) == nil {
			s.log.follow(c, q.Tail, hungUp(r))
		}
	default:
		writeLine(c, response{Error: fmt.Sprintf("this shim does not know %q: it was started by another version", q.Op)})
	}
}

func answer(err error, ok response) response {
	switch {
	case errors.Is(err, runtime.ErrNotRunning):
		return response{NotRunning: true}
	case err != nil:
		return response{Error: err.Error()}
	}
	return ok
}

// hungUp returns a channel that is closed when the client leaves. It may only be
// used on a connection from which nothing more is expected.
func hungUp(r *bufio.Reader) <-chan struct{} {
	ch := make(chan struct{})
	go func() {
		r.ReadByte()
		close(ch)
	}()
	return ch
}

// wake has the loop do something and waits for it; when the run is over it is left
// undone.
func (s *shim) wake(f func()) {
	did := make(chan struct{})
	select {
	case s.wakes <- func() { f(); close(did) }:
		select {
		case <-did:
		case <-s.done:
		}
	case <-s.done:
	}
}

// watch writes a line for each change until the client leaves or the run ends,
// when the closing connection is the last word.
func (s *shim) watch(c net.Conn, r *bufio.Reader) {
	ch := make(chan struct{}, 1)
	s.mu.Lock()
	s.watchers[ch] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, ch)
	}()
	if writeLine(c, response{}) != nil {
		return
	}
	gone := hungUp(r)
	for {
		select {
		case <-ch:
			if _, err := c.Write([]byte("\n")); err != nil {
				return
			}
		case <-gone:
			return
		case <-s.done:
			return
		}
	}
}

// attach joins a client to a terminal until either leaves.
func (s *shim) attach(c net.Conn, r *bufio.Reader, q request) {
	t, err := s.session(q)
	if err := writeLine(c, answer(err, response{})); err != nil || t == nil {
		return
	}
	reader := t.attach()
	t.resize(q.Cols, q.Rows)
	go func() {
		defer reader.detach()
		buf := make([]byte, maxFrame)
		for {
			kind, b, err := readFrame(r, buf)
			if err != nil {
				return
			}
			switch {
			case kind == frameInput:
				t.input(b)
			case kind == frameResize && len(b) == 4:
				t.resize(int(binary.BigEndian.Uint16(b)), int(binary.BigEndian.Uint16(b[2:])))
			}
		}
	}()
	defer reader.detach()
	buf := make([]byte, 32<<10)
	for {
		n, ok := reader.next(buf)
		if !ok {
			return
		}
		if _, err := c.Write(buf[:n]); err != nil {
			return
		}
	}
}

// session returns the named terminal, with a new shell if it has none.
func (s *shim) session(q request) (*session, error) {
	name := q.Session
	if name == "" {
		name = "main"
	}
	s.opening.Lock()
	defer s.opening.Unlock()
	s.mu.Lock()
	running := s.st.Phase == runtime.Running
	for n, t := range s.sessions {
		if t.isOver() {
			delete(s.sessions, n)
		}
	}
	t, count := s.sessions[name], len(s.sessions)
	s.mu.Unlock()
	switch {
	case !running:
		return nil, runtime.ErrNotRunning
	case t != nil:
		return t, nil
	case count >= maxSessions:
		return nil, fmt.Errorf("this instance has %d terminals open: close one first", count)
	}
	master, err := s.openShell(q)
	if err != nil {
		return nil, err
	}
	t = newSession(master)
	s.mu.Lock()
	s.sessions[name] = t
	s.mu.Unlock()
	go t.pump()
	return t, nil
}

// openShell asks the init for a terminal with a shell on it.
func (s *shim) openShell(q request) (*os.File, error) {
	term := q.Term
	if term == "" {
		term = "xterm-256color"
	}
	got := make(chan jail.Message, 1)
	s.mu.Lock()
	s.lastAsk++
	id := s.lastAsk
	s.asked[id] = got
	s.mu.Unlock()
	forget := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.asked, id)
	}
	if err := s.tree.Control.Send(jail.Message{Kind: jail.OpShell, ID: id, Cols: q.Cols, Rows: q.Rows, Term: term}); err != nil {
		forget()
		return nil, runtime.ErrNotRunning
	}
	select {
	case m := <-got:
		if m.File == nil {
			return nil, errors.New(m.Text)
		}
		return m.File, nil
	case <-s.done:
		return nil, runtime.ErrNotRunning
	case <-time.After(shellTimeout):
		forget()
		return nil, fmt.Errorf("the instance did not open a terminal within %s: it may be out of processes or memory", shellTimeout)
	}
}

// resize tells the terminal, and by it the program on it, its size.
func (t *session) resize(cols, rows int) {
	cols, rows = screen(cols, rows)
	raw, err := t.master.SyscallConn() // unlike Fd it leaves the file non-blocking
	if err != nil {
		return
	}
	raw.Control(func(fd uintptr) {
		unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(cols), Row: uint16(rows)})
	})
}

// input types into the terminal. A program that reads nothing fills the kernel's
// buffer; what does not fit then is dropped, as a full terminal does.
func (t *session) input(b []byte) {
	t.master.SetWriteDeadline(time.Now().Add(5 * time.Second))
	t.master.Write(b)
}

// usage adds up the tree from outside, so that nothing inside can lie about it.
func (s *shim) usage() (runtime.Usage, error) {
	s.mu.Lock()
	over, init, load := s.st.Cause != runtime.CauseNone, s.st.InitPID, s.load
	s.mu.Unlock()
	if over || init == 0 {
		return runtime.Usage{}, runtime.ErrNotRunning
	}
	tree, err := jail.Descendants(os.Getpid())
	if err != nil {
		return runtime.Usage{}, err
	}
	u := runtime.Usage{Load: load}
	var cpu time.Duration
	for _, p := range tree {
		cpu += p.CPU
		if p.PID != init && p.State != 'Z' {
			u.Processes++
			u.MemoryBytes += p.AnonBytes
		}
	}
	if held, ok := s.group.CPUTime(); ok {
		cpu = held
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// Without a control group the time of a dead process shows up a moment later in
	// its parent's: never fall meanwhile.
	s.cpu = max(s.cpu, cpu.Seconds())
	u.CPUSeconds = s.cpu
	return u, nil
}
