package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/wire"
)

func TestJoin(t *testing.T) {
	p := newPortal(t)
	dir := filepath.Join(t.TempDir(), "agent")
	if _, err := Join(t.Context(), "portal.example", "once", "rack-1", dir); err == nil || !strings.Contains(err.Error(), "not of the form") {
		t.Errorf("an address without scheme: %v", err)
	}
	if _, err := Join(t.Context(), p.server.URL, "wrong", "rack-1", dir); err == nil || !strings.Contains(err.Error(), "This token was used or has expired. Make a new one.") {
		t.Errorf("a wrong token: %v", err)
	}
	id, err := Join(t.Context(), p.server.URL+"/", "once", "rack-1", dir) // with the key made at the first try
	if err != nil {
		t.Fatal(err)
	}
	if id != (Identity{NodeID: "n1", Name: "rack-1", PortalURL: p.server.URL}) {
		t.Errorf("identity %+v", id)
	}
	info, err := os.Stat(filepath.Join(dir, keyFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key file: %v %v", info.Mode(), err)
	}
	if again, err := Join(t.Context(), p.server.URL, "unused", "other", dir); err != nil || again != id {
		t.Errorf("joining the same portal again: %+v %v", again, err)
	}
	if _, err := Join(t.Context(), "https://elsewhere.example", "t", "rack-1", dir); err == nil || !strings.Contains(err.Error(), "is node rack-1 of") {
		t.Errorf("joining another portal: %v", err)
	}
}

// A host that leaves one portal for another stays who it is until the other has
// said yes, and then has another key.
func TestRejoin(t *testing.T) {
	old, portal := newPortal(t), newPortal(t)
	dir := t.TempDir()
	was, err := Join(t.Context(), old.server.URL, "once", "rack-1", dir)
	if err != nil {
		t.Fatal(err)
	}
	key := func() string {
		b, err := os.ReadFile(filepath.Join(dir, keyFile))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	first := key()
	if _, err := Rejoin(t.Context(), portal.server.URL, "wrong", "rack-1", dir); !errors.Is(err, ErrRefused) || strings.Contains(err.Error(), "does not know this node") {
		t.Errorf("a wrong token: %v", err)
	}
	if id, joined, err := LoadIdentity(dir); err != nil || !joined || id != was || key() != first {
		t.Errorf("after a refusal it is %+v, %v", id, err)
	}
	tried, err := os.ReadFile(filepath.Join(dir, nextKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	id, err := Rejoin(t.Context(), portal.server.URL, "once", "rack-1", dir)
	if err != nil || id.PortalURL != portal.server.URL {
		t.Fatalf("%+v %v", id, err)
	}
	if kept, _, err := LoadIdentity(dir); err != nil || kept != id || key() == first || key() != string(tried) {
		t.Errorf("it is %+v, %v", kept, err)
	}
	if _, err := os.Stat(filepath.Join(dir, nextKeyFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the key to come is still there: %v", err)
	}
}

func TestRunRefusals(t *testing.T) {
	n := newNode(t)
	n.begin()
	n.portal.state()
	second, err := New(n.config(n.dir, slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "another agent already runs on") {
		t.Errorf("a second agent: %v", err)
	}
	stranger, err := New(n.config(t.TempDir(), slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	if err := stranger.Run(t.Context()); !errors.Is(err, ErrNotJoined) {
		t.Errorf("a folder that has not joined: %v", err)
	}
}

// Both channels carry requests; when one breaks the other goes on and the broken
// one comes back.
func TestChannelsAreIndependent(t *testing.T) {
	n := newNode(t)
	n.begin()
	p := n.portal
	control, bulk := p.session(wire.Control), p.session(wire.Bulk)
	control.Close()
	if resp, err := p.client(wire.Bulk).Get("http://node/v1/state"); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("bulk after control broke: %v", err)
	} else {
		resp.Body.Close()
	}
	if s := p.session(wire.Control); s == control {
		t.Error("control is the broken session")
	}
	if bulk.IsClosed() {
		t.Error("bulk ended with control")
	}
}

// A node that was removed is told so in the log and goes on asking.
func TestUnknownNode(t *testing.T) {
	n := newNode(t)
	n.portal.unknown = true
	said := make(chan string, 1)
	key, err := loadKey(filepath.Join(n.dir, keyFile))
	if err != nil {
		t.Fatal(err)
	}
	l := &link{portal: n.portal.server.URL, nodeID: "n1", key: key, handler: http.NotFoundHandler(), opened: func(wire.Channel) {},
		log: slog.New(slog.NewTextHandler(writerFunc(func(b []byte) (int, error) {
			if strings.Contains(string(b), "level=ERROR") {
				select {
				case said <- string(b):
				default:
				}
			}
			return len(b), nil
		}), nil))}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.run(ctx, wire.Control)
	}()
	select {
	case line := <-said:
		if !strings.Contains(line, "does not know this node") || !strings.Contains(line, "No node of that name and key.") {
			t.Errorf("said %q", line)
		}
	case <-time.After(patience):
		t.Error("nothing was said")
	}
	cancel()
	<-done
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// A stream that is not read holds up no other on the same link.
func TestSlowReader(t *testing.T) {
	n := newNode(t)
	n.begin()
	p := n.portal
	slow, err := p.client(wire.Control).Get("http://node/v1/samples")
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Body.Close()
	var last int64
	for tick := range ticks(t, p, 4) {
		if tick.Seq <= last {
			t.Errorf("tick %d after %d", tick.Seq, last)
		}
		last = tick.Seq
	}
}

// ticks yields n samples of a stream of its own.
func ticks(t *testing.T, p *portal, n int) func(func(wire.Tick) bool) {
	return func(yield func(wire.Tick) bool) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://node/v1/samples", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := p.client(wire.Control).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		for range n {
			if !lines.Scan() {
				t.Fatalf("samples ended: %v", lines.Err())
			}
			var tick wire.Tick
			if err := json.Unmarshal(lines.Bytes(), &tick); err != nil {
				t.Fatal(err)
			}
			if !yield(tick) {
				return
			}
		}
	}
}

// Events come again until they are acknowledged, and not after, also over a
// restart of the agent.
func TestAcknowledge(t *testing.T) {
	n := newNode(t)
	n.begin()
	p := n.portal
	p.put(desired(1, want("i1", wire.WantRunning, slice(t, n.card(0), "1g.10gb", 0))))
	first := p.events(0, is("i1", wire.PhaseRunning))
	if again := p.events(0, is("i1", wire.PhaseRunning)); len(again) != len(first) {
		t.Errorf("unacknowledged events came as %d, then %d", len(first), len(again))
	}
	last := first[len(first)-1].Seq
	p.put(desired(2, want("i1", wire.WantGone)))
	p.events(last, is("i1", wire.PhaseGone)) // acknowledges the first
	n.end()
	n.begin()
	rest := p.events(0, is("i1", wire.PhaseGone))
	if rest[0].Seq != last+1 {
		t.Errorf("after acknowledging %d the agent tells %d", last, rest[0].Seq)
	}
}

// The logs and the terminal reach the instance; the shell outlives a broken link
// with all it knows.
func TestLogsAndTerminal(t *testing.T) {
	n := newNode(t)
	n.begin()
	p := n.portal
	entry := want("i1", wire.WantRunning, slice(t, n.card(0), "1g.10gb", 0))
	entry.Spec.StartupScript = "echo prepared"
	p.put(desired(1, entry))
	p.untilPhase("i1", wire.PhaseRunning)

	resp, err := p.client(wire.Bulk).Get("http://node/v1/instances/i1/logs?run=1")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if !strings.Contains(string(text), "prepared") {
		t.Errorf("logs: %q", text)
	}

	terminal := openTerminal(t, p, "i1")
	terminal.say("stty size; marker=four$((6*7))\n")
	terminal.see("30 100")
	size, _ := json.Marshal(wire.Resize{Cols: 132, Rows: 50})
	if err := writeFrame(terminal, wire.FrameResize, size); err != nil {
		t.Fatal(err)
	}
	terminal.say("stty size\n")
	terminal.see("50 132")
	p.drop()
	if _, err := io.Copy(io.Discard, terminal); err == nil {
		t.Log("the dropped connection ended with EOF")
	}

	terminal = openTerminal(t, p, "i1")
	terminal.say("echo $marker\n")
	terminal.see("four42")
	terminal.say("exit\n")
	terminal.ends("The shell ended.")

	for path, status := range map[string]int{
		"/v1/instances/none/logs":         http.StatusNotFound,
		"/v1/instances/i1/logs?run=x":     http.StatusBadRequest,
		"/v1/instances/i1/logs?tail=-5":   http.StatusBadRequest,
		"/v1/events?after=-1":             http.StatusBadRequest,
		"/v1/instances/i1/exec":           http.StatusMethodNotAllowed,
		"/v1/nothing":                     http.StatusNotFound,
		"/v1/instances/i1/logs?run=99999": http.StatusNotFound,
	} {
		if got := p.call(http.MethodGet, path, nil, nil); got != status {
			t.Errorf("GET %s: %d, want %d", path, got, status)
		}
	}
	if got := p.call(http.MethodPost, "/v1/instances/i1/exec", nil, nil); got != http.StatusUpgradeRequired {
		t.Errorf("exec without Upgrade: %d", got)
	}
	if got := p.call(http.MethodPut, "/v1/desired", "no desired state", nil); got != http.StatusBadRequest {
		t.Errorf("a malformed desired state: %d", got)
	}
}

// terminalEnd is the portal's end of a terminal.
type terminalEnd struct {
	io.ReadWriteCloser
	t    *testing.T
	seen strings.Builder
}

func openTerminal(t *testing.T, p *portal, id string) *terminalEnd {
	t.Helper()
	for began := time.Now(); time.Since(began) < patience; {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://node/v1/instances/"+id+"/exec?session=main&cols=100&rows=30", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", wire.TerminalProtocol)
		resp, err := p.client(wire.Control).Do(req)
		if err != nil {
			continue
		}
		conn, ok := resp.Body.(io.ReadWriteCloser)
		if resp.StatusCode != http.StatusSwitchingProtocols || !ok {
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			t.Fatalf("exec answered %d %s", resp.StatusCode, text)
		}
		t.Cleanup(func() { conn.Close() })
		return &terminalEnd{ReadWriteCloser: conn, t: t}
	}
	t.Fatal("no terminal")
	return nil
}

func (e *terminalEnd) say(text string) {
	e.t.Helper()
	if err := writeFrame(e, wire.FrameData, []byte(text)); err != nil {
		e.t.Fatal(err)
	}
}

// see reads until the text has come.
func (e *terminalEnd) see(text string) {
	e.t.Helper()
	stop := time.AfterFunc(patience, func() { e.Close() })
	defer stop.Stop()
	for !strings.Contains(e.seen.String(), text) {
		kind, payload, err := readFrame(e)
		if err != nil || kind != wire.FrameData {
			e.t.Fatalf("waiting for %q: frame %q %q, %v; seen %q", text, kind, payload, err, e.seen.String())
		}
		e.seen.Write(payload)
	}
}

// ends reads until the shell's end is told.
func (e *terminalEnd) ends(why string) {
	e.t.Helper()
	stop := time.AfterFunc(patience, func() { e.Close() })
	defer stop.Stop()
	for {
		kind, payload, err := readFrame(e)
		if err != nil {
			e.t.Fatalf("waiting for the end: %v", err)
		}
		if kind == wire.FrameExit {
			if string(payload) != why {
				e.t.Errorf("ended with %q, want %q", payload, why)
			}
			return
		}
	}
}
