package stripedouble

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Stripe gives an endpoint three days.
const giveUpAfter = 72 * time.Hour

// Run delivers webhooks, expires sessions and settles bank debits until ctx ends,
// then returns nil. Any other return is a state that cannot be written.
func (s *Server) Run(ctx context.Context) error {
	for {
		if err := s.round(ctx, false); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("deliver test payments' events: %w", err)
		}
		timer := time.NewTimer(s.untilNext())
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-s.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// FlushResult is what a Flush met.
type FlushResult struct {
	Delivered int `json:"delivered"` // events the endpoint took during the flush
	Pending   int `json:"pending"`   // events still not taken; zero when the endpoint is well
	Rounds    int `json:"rounds"`
}

// Flush delivers everything that is pending, without waiting for any back-off or
// delay, and returns when all of it was taken or after eight tries each. What a
// fault knob spoils is tried again, so with the knobs on a flush still ends with
// nothing pending. It works with and without Run.
func (s *Server) Flush(ctx context.Context) (FlushResult, error) {
	before, _ := s.progress()
	var out FlushResult
	for {
		if err := s.round(ctx, true); err != nil {
			return out, err
		}
		out.Rounds++
		now, pending := s.progress()
		out.Delivered, out.Pending = now-before, pending
		if pending == 0 || out.Rounds == 8 {
			return out, nil
		}
	}
}

func (s *Server) progress() (delivered, pending int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, _ := s.state.tallies.get(only)
	return t.Delivered, len(s.unsent)
}

// round tries every due event once; all pending ones when eager.
func (s *Server) round(ctx context.Context, eager bool) error {
	select {
	case s.deliver <- struct{}{}: // one round at a time: an event is never under way twice by accident
		defer func() { <-s.deliver }()
	case <-ctx.Done():
		return ctx.Err()
	}
	var due []event
	var url string
	err := s.update(func(x *tx) error { // update also runs the timers
		url = x.webhookURL
		f, _ := x.state.faults.get(only)
		due = x.due(eager, f.Reorder)
		return errNothing
	})
	if err != nil && !errors.Is(err, errNothing) {
		return err
	}
	if url == "" {
		return nil
	}
	for _, e := range due {
		if err := s.attempt(ctx, url, e); err != nil {
			return err
		}
	}
	return nil
}

func (x *tx) due(eager, reorder bool) []event {
	var out []event
	for _, id := range x.state.events.order {
		if !x.unsent[id] {
			continue
		}
		if e, _ := x.state.events.get(id); eager || !e.NextAt.After(x.now) {
			out = append(out, e)
		}
	}
	if reorder {
		slices.Reverse(out)
	}
	return out
}

// untilNext is how long nothing can become due. It is at most half a minute,
// because the clock may be one that jumps.
func (s *Server) untilNext() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.cfg.Clock()
	wait := 30 * time.Second
	if s.webhookURL != "" {
		for id := range s.unsent {
			wait = min(wait, s.state.events.rows[id].NextAt.Sub(now))
		}
	}
	for id := range s.waiting {
		ses := s.state.sessions.rows[id]
		at := ses.ExpiresAt
		if ses.Status != "open" {
			at = ses.Settle.At
		}
		if at > 0 {
			wait = min(wait, time.Unix(at, 0).Sub(now))
		}
	}
	return max(wait, time.Millisecond)
}

// attempt tries to deliver one event and records how it went.
func (s *Server) attempt(ctx context.Context, url string, e event) error {
	s.mu.Lock()
	f, _ := s.state.faults.get(only)
	t, _ := s.state.tallies.get(only)
	body := mustJSON((&tx{Server: s}).renderEvent(e))
	now := s.cfg.Clock()
	s.mu.Unlock()

	t.Attempts++
	nth := func(every int) bool { return every > 0 && t.Attempts%every == 0 }
	secret, stamp, spoilt := s.cfg.WebhookSecret, now, false
	met := ""
	switch {
	case nth(f.DropEvery):
		t.Dropped++
		met = "dropped by a fault knob"
	case nth(f.WrongSignatureEvery):
		t.WrongSignature++
		secret, spoilt = secret+"_not", true
	case nth(f.StaleTimestampEvery):
		t.StaleTimestamp++
		stamp, spoilt = now.Add(-10*time.Minute), true
	}
	taken := false
	if met == "" {
		copies := 1 + f.Duplicate
		taken, met = s.post(ctx, url, body, sign(secret, stamp, body), copies)
		t.Sent += copies
		if ctx.Err() != nil {
			return ctx.Err() // unknown how it went: it stays pending and comes again
		}
	}
	if spoilt && taken {
		t.SpoiltAccepted++
		met, taken = "the endpoint accepted a spoilt signature", false
	}
	if !taken {
		s.log.Warn("test payment event not delivered", "event", e.ID, "type", e.Type, "attempt", e.Attempts+1, "answer", met)
	}
	return s.update(func(x *tx) error {
		now, ok := x.state.events.get(e.ID)
		if !ok {
			return errNothing
		}
		now.Attempts, now.LastTry = now.Attempts+1, met
		if taken {
			now.Pending, now.Delivered = false, true
			t.Delivered++
		} else {
			now.NextAt = x.now.Add(s.backOff(now.Attempts))
			now.Pending = x.now.Sub(time.Unix(now.Created, 0)) < giveUpAfter
		}
		x.state.events.put(now.ID, now)
		x.state.tallies.put(only, t)
		return nil
	})
}

// backOff doubles from RetryMin up to RetryMax.
func (s *Server) backOff(attempts int) time.Duration {
	wait := s.cfg.RetryMin
	for i := 1; i < attempts && wait < s.cfg.RetryMax; i++ {
		wait *= 2
	}
	return min(wait, s.cfg.RetryMax)
}

// post sends the copies at the same moment. One 2xx is enough: the endpoint has
// the event.
func (s *Server) post(ctx context.Context, url string, body []byte, signature string, copies int) (taken bool, met string) {
	answers := make([]string, copies)
	took := make([]bool, copies)
	var all sync.WaitGroup
	for i := range copies {
		all.Go(func() { took[i], answers[i] = s.postOnce(ctx, url, body, signature) })
	}
	all.Wait()
	for i := range copies {
		if took[i] {
			return true, answers[i]
		}
	}
	return false, answers[0]
}

func (s *Server) postOnce(ctx context.Context, url string, body []byte, signature string) (taken bool, met string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return false, err.Error()
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("User-Agent", "Stripe/1.0 (Berth test payments)")
	req.Header.Set("Stripe-Signature", signature)
	res, err := s.send.Do(req)
	if err != nil {
		return false, err.Error()
	}
	defer res.Body.Close()
	io.Copy(io.Discard, io.LimitReader(res.Body, 1<<16)) // so that the connection can be used again
	return res.StatusCode >= 200 && res.StatusCode < 300, res.Status
}

// sign makes the Stripe-Signature header: HMAC-SHA256 over "t.body".
//
// Source: Stripe's documentation, "Verify webhook signatures manually".
func sign(secret string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%d.", at.Unix())
	mac.Write(body)
	return fmt.Sprintf("t=%d,v1=%s", at.Unix(), hex.EncodeToString(mac.Sum(nil)))
}
