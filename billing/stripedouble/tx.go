package stripedouble

import (
	"errors"
	"fmt"
	"time"
)

// tx is one change of the state: all of it reaches the disk, its events
// included, or nothing does.
type tx struct {
	*Server
	now     time.Time
	request string // the API request's id, for the events it causes
	key     string // and its idempotency key
}

var errClosed = errors.New("the test payments are closed")

// errNothing ends a change that turned out to have nothing to write.
var errNothing = errors.New("nothing to change")

// update runs fn alone. When fn fails, nothing it wrote remains, unless the
// failure is a declined payment: a decline is a fact, with its own objects and
// events, and is kept.
func (s *Server) update(fn func(*tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if err := s.commit(&tx{Server: s, now: s.cfg.Clock().UTC()}, (*tx).runTimers); err != nil && !errors.Is(err, errNothing) {
		return err
	}
	return s.commit(&tx{Server: s, now: s.cfg.Clock().UTC()}, fn)
}

func (s *Server) commit(x *tx, fn func(*tx) error) error {
	tables := s.state.all()
	defer func() { // also when fn panics: half a change must not meet the next one
		for _, t := range tables {
			t.drop()
		}
	}()
	err := fn(x)
	var declined *apiError
	if err != nil && !(errors.As(err, &declined) && declined.status == 402) {
		return err
	}
	var rows []row
	for _, t := range tables {
		staged, err := t.stagedRows()
		if err != nil {
			return err
		}
		rows = append(rows, staged...)
	}
	if len(rows) == 0 {
		return err
	}
	if err := s.journal.append(rows); err != nil {
		return err
	}
	for id, ses := range s.state.sessions.staged {
		s.noteSession(id, ses)
	}
	for id, e := range s.state.events.staged {
		s.noteEvent(id, e)
	}
	for _, t := range tables {
		t.merge()
	}
	s.nudge()
	return err
}

func (s *Server) noteSession(id string, ses session) {
	if ses.Status == "open" || ses.Settle != nil {
		s.waiting[id] = true
	} else {
		delete(s.waiting, id)
	}
}

func (s *Server) noteEvent(id string, e event) {
	if e.Pending {
		s.unsent[id] = true
	} else {
		delete(s.unsent, id)
	}
}

// nudge lets Run look again for what is due.
func (s *Server) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// runTimers expires sessions and settles bank debits whose time has come.
func (x *tx) runTimers() error {
	acted := false
	for id := range x.waiting {
		ses, _ := x.state.sessions.get(id)
		switch {
		case ses.Settle != nil && ses.Settle.At > 0 && ses.Settle.At <= x.now.Unix():
			if err := x.settle(ses, ses.Settle.Succeed); err != nil {
				return fmt.Errorf("settle %s: %w", id, err)
			}
			acted = true
		case ses.Status == "open" && ses.ExpiresAt <= x.now.Unix():
			x.expire(ses)
			acted = true
		}
	}
	if !acted {
		return errNothing
	}
	return nil
}
