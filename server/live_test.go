package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/models"
	"berth/models/store"
)

// stream is an open /live, read line by line.
type stream struct {
	*world
	lines chan string // closed at the end
}

func (b *browser) live() *stream {
	b.Helper()
	req, err := http.NewRequest(http.MethodGet, b.url+"/live", nil)
	b.must(err)
	req.Header.Set("Accept", "text/event-stream")
	client := &http.Client{Jar: b.http.Jar, Transport: &http.Transport{}}
	for k, v := range b.head {
		if k != "Accept" {
			req.Header[k] = v
		}
	}
	res, err := client.Do(req)
	b.must(err)
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" || res.Header.Get("Content-Encoding") != "" {
		b.Fatalf("live: %d %v", res.StatusCode, res.Header)
	}
	s := &stream{world: b.world, lines: make(chan string, 1000)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(s.lines)
		for r := bufio.NewScanner(res.Body); r.Scan(); {
			s.lines <- r.Text()
		}
	}()
	b.Cleanup(func() { res.Body.Close(); <-done; client.CloseIdleConnections() })
	s.waitFor(": open")
	return s
}

func (s *stream) waitFor(line string) {
	s.Helper()
	timeout := time.After(patience)
	var seen []string
	for {
		select {
		case got, ok := <-s.lines:
			if !ok {
				s.Fatalf("the stream ended before %q; it had %q", line, seen)
			}
			if got == line {
				return
			}
			seen = append(seen, got)
		case <-timeout:
			s.Fatalf("no %q; it had %q", line, seen)
		}
	}
}

func (s *stream) waitForEnd() time.Duration {
	s.Helper()
	began, timeout := time.Now(), time.After(patience)
	for {
		select {
		case _, ok := <-s.lines:
			if !ok {
				return time.Since(began)
			}
		case <-timeout:
			s.Fatal("the stream did not end")
		}
	}
}

func (w *world) changed(topics ...string) {
	w.Helper()
	w.must(w.store.InTx(context.Background(), func(tx *store.Tx) error {
		for _, t := range topics {
			tx.Changed(t)
		}
		return nil
	}))
}

func TestLiveNamesWhatChangedForThisAccountOnly(t *testing.T) {
	w := newWorld(t)
	b := w.signUp("ada@example.org")
	_, a := w.who("ada@example.org")
	w.signUp("eve@example.org")
	_, other := w.who("eve@example.org")
	s := b.live()
	w.changed("account:"+string(other.ID), "instances:"+string(other.ID), "instance:ins_other")
	w.changed("account:" + string(a.ID))
	if line := <-s.lines; line != "" { // the end of the opening comment
		t.Errorf("began with %q", line)
	}
	if first := <-s.lines; first != "event: change" {
		t.Errorf("then %q", first)
	}
	s.waitFor("data: wallet")
	id := w.instanceOf(a.ID)
	w.changed("instances:" + string(a.ID)) // the stream now follows it by itself
	s.waitFor("data: instances")
	w.within("the new instance to be followed", func() bool {
		w.store.Notify("instance:" + string(id))
		select {
		case line := <-s.lines:
			return line == "data: instance:"+string(id)
		case <-time.After(20 * time.Millisecond):
			return false
		}
	})
	w.changed("fleet")
	s.waitFor("data: fleet")
}

func TestLiveEndsWithTheSessionAndTheToken(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Heartbeat = time.Hour }) // so that only the revocation can end it
	b := w.signUp("ada@example.org")
	u, a := w.who("ada@example.org")
	s := b.live()
	b.post("/logout").leadsTo(t, "/login")
	if took := s.waitForEnd(); took > 5*time.Second {
		t.Errorf("it went on for %v", took)
	}
	var secret string
	var token models.Token
	w.must(w.store.InTx(context.Background(), func(tx *store.Tx) (err error) {
		secret, token, err = createToken(tx, u.ID, a.ID, "script", time.Now())
		return err
	}))
	script := w.browser()
	script.head = http.Header{"Authorization": {"Bearer " + secret}}
	s = script.live()
	w.must(w.store.InTx(context.Background(), func(tx *store.Tx) error { return tx.RevokeToken(a.ID, u.ID, token.ID) }))
	s.waitForEnd()
	b.do(http.MethodGet, "/live", nil, http.Header{"Accept": {"text/event-stream"}}).wants(t, http.StatusUnauthorized)
}

func TestLiveEndsWhenAnotherPortalRevokes(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Heartbeat = 50 * time.Millisecond })
	b := w.signUp("ada@example.org")
	u, _ := w.who("ada@example.org")
	s := b.live()
	s.waitFor(": alive")
	// Another process's topics wake nobody here: the row is simply gone.
	w.must(w.store.InTx(context.Background(), func(tx *store.Tx) error {
		return tx.DropExpiredSessions(models.At(time.Now().Add(2 * sessionLife)))
	}))
	s.waitForEnd()
	if list, err := sessionsOf(w, u.ID); err != nil || len(list) != 0 {
		t.Errorf("left %v, %v", list, err)
	}
}

func sessionsOf(w *world, u models.UserID) (list []models.Session, err error) {
	return list, w.store.View(context.Background(), func(tx *store.Tx) (err error) {
		list, err = tx.Sessions(u, models.At(time.Now()))
		return err
	})
}

func TestShutdownEndsStreamsAndFinishesRequests(t *testing.T) {
	w := newWorld(t)
	other, err := New(w.server.cfg)
	w.must(err)
	l := w.listen()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- other.Serve(ctx, l) }()
	here := *w
	here.url = "http://" + l.Addr().String()
	b := here.browser()
	b.post("/signup", "name", "Ada", "email", "ada@example.org", "password", password).leadsTo(t, "/")
	s := b.live()
	// A request whose body is still on its way when the end begins. The portal has
	// it once it asks for the body.
	conn, err := net.Dial("tcp", l.Addr().String())
	w.must(err)
	defer conn.Close()
	body := url.Values{"email": {"ada@example.org"}, "password": {password}}.Encode()
	_, err = fmt.Fprintf(conn, "POST /login HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n", len(body))
	w.must(err)
	answers := bufio.NewReader(conn)
	if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("%q, %v", line, err)
	}
	_, err = answers.ReadString('\n')
	w.must(err)
	cancel()
	s.waitForEnd()
	_, err = io.WriteString(conn, body)
	w.must(err)
	res, err := http.ReadResponse(answers, nil)
	w.must(err)
	defer res.Body.Close()
	if res.StatusCode != http.StatusSeeOther {
		t.Errorf("the request under way got %d", res.StatusCode)
	}
	if err := <-ended; err != nil {
		t.Errorf("serve: %v", err)
	}
}

func TestPageTopics(t *testing.T) {
	got := pageTopics([]string{"prices", "fleet", "account:a", "instance:i", "instances:a", "session:x", "node:n"})
	if want := []string{"fleet", "instance:i", "instances", "wallet"}; !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}
