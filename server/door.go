package server

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"berth/models"
	"berth/models/store"
)

// pass is what somebody is signed in with: the hash of a session's secret, or a
// token.
type pass struct {
	session string
	token   models.TokenID
}

func (id identity) pass() pass { return pass{session: id.Session, token: id.Token} }

// door knows what every open stream and socket was opened with, and ends those
// whose session or token is no more. Nothing else would look again.
type door struct {
	mu   sync.Mutex
	held map[pass]map[*context.CancelCauseFunc]struct{}
}

var errSignedOut = errors.New("signed out")

// hold returns a context that ends with parent, and with the cause errSignedOut
// when the pass stops being good. Call done.
func (d *door) hold(parent context.Context, p pass) (ctx context.Context, done func()) {
	ctx, end := context.WithCancelCause(parent)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held == nil {
		d.held = map[pass]map[*context.CancelCauseFunc]struct{}{}
	}
	if d.held[p] == nil {
		d.held[p] = map[*context.CancelCauseFunc]struct{}{}
	}
	d.held[p][&end] = struct{}{}
	return ctx, func() {
		end(nil)
		d.mu.Lock()
		defer d.mu.Unlock()
		if delete(d.held[p], &end); len(d.held[p]) == 0 {
			delete(d.held, p)
		}
	}
}

func (d *door) passes() []pass {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.held))
}

// signOut ends all that was opened with a pass.
func (d *door) signOut(p pass) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for end := range d.held[p] {
		(*end)(errSignedOut)
	}
}

// keepDoor looks whether those inside may stay, until the portal closes: at once
// when anybody was signed out here, and at each heartbeat for those that another
// portal process signed out, or whose session has expired.
func (s *Server) keepDoor() {
	watch := s.store.Watch(store.SignOuts)
	defer watch.Close()
	again := time.NewTicker(s.cfg.Heartbeat)
	defer again.Stop()
	for {
		select {
		case <-s.closing.Done():
			return
		case <-watch.C():
		case <-again.C:
		}
		if err := s.checkPasses(); err != nil && s.closing.Err() == nil {
			s.log.Warn("look again who holds streams", "error", err)
		}
	}
}

func (s *Server) checkPasses() error {
	for some := range slices.Chunk(s.door.passes(), 500) {
		var sessions []string
		var tokens []models.TokenID
		for _, p := range some {
			if p.token != "" {
				tokens = append(tokens, p.token)
			} else {
				sessions = append(sessions, p.session)
			}
		}
		good := map[pass]bool{}
		err := s.store.View(s.closing, func(tx *store.Tx) error {
			goodSessions, err := tx.GoodSessions(sessions, models.At(s.now()))
			if err != nil {
				return err
			}
			goodTokens, err := tx.GoodTokens(tokens)
			for _, hash := range goodSessions {
				good[pass{session: hash}] = true
			}
			for _, id := range goodTokens {
				good[pass{token: id}] = true
			}
			return err
		})
		if err != nil {
			return err
		}
		for _, p := range some {
			if !good[p] {
				s.door.signOut(p)
			}
		}
	}
	return nil
}

// whileSignedIn returns a context that ends with the request, at shutdown, and
// when what the caller signed in with is no more; its cause then is errSignedOut.
// Call cancel.
func (s *Server) whileSignedIn(c echo.Context) (ctx context.Context, cancel func()) {
	ctx, done := s.door.hold(c.Request().Context(), identityOf(c).pass())
	ctx, end := context.WithCancel(ctx)
	closing := context.AfterFunc(s.closing, end)
	return ctx, func() {
		closing()
		end()
		done()
	}
}
