package shim

import (
	"os"
	"sync"
	"time"
)

const (
	// replayed is how much of a terminal's past an attacher sees at once.
	replayed = 64 << 10
	// ringSize is how far an attacher may lag behind before the shell waits for him.
	ringSize = 256 << 10
	// patience is how long the shell waits for its slowest attacher before that one
	// is cut off: a stuck browser must not hold the renter's program up.
	patience = 2 * time.Second
)

// session is a terminal with its shell: one writer (the shell's output), any
// number of readers, each at its own place in the ring.
type session struct {
	master *os.File

	mu      sync.Mutex
	moved   *sync.Cond // output came, a reader moved or left, or it is over
	ring    []byte
	written int64 // bytes ever written; the ring holds the last ringSize of them
	over    bool
	readers map[*reader]bool
}

// reader is one attacher.
type reader struct {
	s   *session
	at  int64 // next byte to read
	cut bool  // too slow, or closed
}

func newSession(master *os.File) *session {
	s := &session{master: master, ring: make([]byte, ringSize), readers: map[*reader]bool{}}
	s.moved = sync.NewCond(&s.mu)
	return s
}

// pump copies the shell's output until the shell is gone.
func (s *session) pump() {
	buf := make([]byte, 32<<10)
	for {
		n, err := s.master.Read(buf)
		s.append(buf[:n])
		if err != nil { // EIO: the last process on the terminal ended
			break
		}
	}
	s.end()
}

// end lets readers finish what is in the ring, then they see the end.
func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.over = true
		s.master.Close()
		s.moved.Broadcast()
	}
}

func (s *session) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

func (s *session) append(b []byte) {
	if len(b) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waitForReaders(int64(len(b)))
	for len(b) > 0 {
		n := copy(s.ring[s.written%ringSize:], b)
		s.written += int64(n)
		b = b[n:]
	}
	s.moved.Broadcast()
}

// waitForReaders makes room for n bytes: every reader reads on, or is cut.
func (s *session) waitForReaders(n int64) {
	slow := func(r *reader) bool { return !r.cut && s.written+n-r.at > ringSize }
	anySlow := func() bool {
		for r := range s.readers {
			if slow(r) {
				return true
			}
		}
		return false
	}
	if !anySlow() {
		return
	}
	late := false
	timer := time.AfterFunc(patience, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		late = true
		s.moved.Broadcast()
	})
	defer timer.Stop()
	for anySlow() && !late {
		s.moved.Wait()
	}
	for r := range s.readers {
		if slow(r) {
			r.cut = true
		}
	}
	s.moved.Broadcast()
}

// attach adds a reader that starts with the recent past.
func (s *session) attach() *reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &reader{s: s, at: max(0, s.written-replayed)}
	s.readers[r] = true
	return r
}

// next copies the next output into buf; ok is false at the end.
func (r *reader) next(buf []byte) (n int, ok bool) {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for r.at == s.written && !s.over && !r.cut {
		s.moved.Wait()
	}
	if r.cut || r.at == s.written {
		return 0, false
	}
	start := r.at % ringSize
	n = copy(buf, s.ring[start:min(ringSize, start+s.written-r.at)])
	r.at += int64(n)
	s.moved.Broadcast()
	return n, true
}

// detach ends a reader, also one that waits.
func (r *reader) detach() {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.cut = true
	delete(r.s.readers, r)
	r.s.moved.Broadcast()
}
