package agent

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/hashicorp/yamux"

	"berth/tunnel"
	"berth/wire"
)

// patience bounds every wait; it only matters when a test fails.
const patience = 60 * time.Second

// portal is the other end of the link: it admits one node and keeps what it says.
type portal struct {
	t      *testing.T
	server *httptest.Server

	mu         sync.Mutex
	key        ed25519.PublicKey
	token      string
	challenges map[string]bool
	sessions   map[wire.Channel]*yamux.Session
	dials      int
	unknown    bool // answer 401, as after the node was removed
	linked     chan struct{}
}

func newPortal(t *testing.T) *portal {
	p := &portal{t: t, token: "once", challenges: map[string]bool{}, sessions: map[wire.Channel]*yamux.Session{}, linked: make(chan struct{}, 100)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+wire.JoinPath, p.join)
	mux.HandleFunc("GET "+wire.ChallengePath, p.challenge)
	mux.HandleFunc("GET "+wire.LinkPath, p.link)
	p.server = httptest.NewServer(mux)
	t.Cleanup(func() {
		p.drop()
		p.server.Close()
	})
	return p
}

func (p *portal) join(w http.ResponseWriter, r *http.Request) {
	var ask wire.JoinRequest
	json.NewDecoder(r.Body).Decode(&ask)
	p.mu.Lock()
	defer p.mu.Unlock()
	if ask.Token != p.token || p.token == "" {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"detail": "This token was used or has expired.", "next": "Make a new one."}`)
		return
	}
	p.token, p.key = "", ask.PublicKey
	w.WriteHeader(http.StatusCreated)
	json.NewEncoder(w).Encode(wire.JoinResponse{NodeID: "n1", Name: ask.Name})
}

func (p *portal) challenge(w http.ResponseWriter, r *http.Request) {
	c := rand.Text()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dials++
	p.challenges[c] = true
	json.NewEncoder(w).Encode(wire.ChallengeResponse{Challenge: c})
}

func (p *portal) link(w http.ResponseWriter, r *http.Request) {
	challenge, channel := r.Header.Get(wire.ChallengeHeader), wire.Channel(r.URL.Query().Get("channel"))
	signature, _ := base64.StdEncoding.DecodeString(r.Header.Get(wire.SignatureHeader))
	p.mu.Lock()
	good := !p.unknown && p.challenges[challenge] && r.Header.Get(wire.NodeHeader) == "n1" && ed25519.Verify(p.key, []byte(challenge+"\n"+string(channel)), signature)
	delete(p.challenges, challenge)
	p.mu.Unlock()
	if !good {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"detail": "No node of that name and key."}`)
		return
	}
	up := websocket.Upgrader{}
	ws, err := up.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	session, err := tunnel.Client(ws, channel.Window(), slog.New(slog.DiscardHandler))
	if err != nil {
		ws.Close()
		return
	}
	p.mu.Lock()
	p.sessions[channel] = session
	p.mu.Unlock()
	p.linked <- struct{}{}
}

// drop breaks all connections, as a portal that is killed does.
func (p *portal) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sessions {
		s.Close()
	}
	p.server.CloseClientConnections()
	clear(p.sessions)
}

// session waits for a living connection of the channel.
func (p *portal) session(channel wire.Channel) *yamux.Session {
	p.t.Helper()
	deadline := time.After(patience)
	for {
		p.mu.Lock()
		s := p.sessions[channel]
		p.mu.Unlock()
		if s != nil && !s.IsClosed() {
			return s
		}
		select {
		case <-p.linked:
		case <-time.After(50 * time.Millisecond):
		case <-deadline:
			p.t.Fatalf("no link on channel %s", channel)
		}
	}
}

// client makes HTTP requests inside the link. The connections end with ctx.
func (p *portal) client(channel wire.Channel) *http.Client {
	session := p.session(channel)
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return session.Open() }}
	return &http.Client{Transport: transport}
}

// call makes one request on control and reads the answer, dialling again as the
// portal would when the link broke meanwhile.
func (p *portal) call(method, path string, body, into any) int {
	p.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	for began := time.Now(); time.Since(began) < patience; {
		req, err := http.NewRequestWithContext(p.t.Context(), method, "http://node"+path, bytes.NewReader(raw))
		if err != nil {
			p.t.Fatal(err)
		}
		resp, err := p.client(wire.Control).Do(req)
		if err != nil {
			p.mu.Lock()
			delete(p.sessions, wire.Control)
			p.mu.Unlock()
			continue
		}
		answer, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			continue
		}
		if into != nil && resp.StatusCode == http.StatusOK {
			if err := json.Unmarshal(answer, into); err != nil {
				p.t.Fatalf("%s %s answered %q: %v", method, path, answer, err)
			}
		}
		return resp.StatusCode
	}
	p.t.Fatalf("%s %s: no answer", method, path)
	return 0
}

func (p *portal) state() (s wire.State) {
	p.t.Helper()
	if status := p.call(http.MethodGet, "/v1/state", nil, &s); status != http.StatusOK {
		p.t.Fatalf("GET state: %d", status)
	}
	return s
}

func (p *portal) put(d wire.Desired) (s wire.State) {
	p.t.Helper()
	if status := p.call(http.MethodPut, "/v1/desired", d, &s); status != http.StatusOK {
		p.t.Fatalf("PUT desired generation %d: %d", d.Generation, status)
	}
	return s
}

// until polls the state until it is as wanted.
func (p *portal) until(what string, ok func(wire.State) bool) wire.State {
	p.t.Helper()
	var s wire.State
	for began := time.Now(); time.Since(began) < patience; time.Sleep(50 * time.Millisecond) {
		if s = p.state(); ok(s) {
			return s
		}
	}
	text, _ := json.MarshalIndent(s, "", " ")
	p.t.Fatalf("not reached: %s; state %s", what, text)
	return s
}

// untilPhase waits for an instance's phase.
func (p *portal) untilPhase(id string, phase wire.Phase) wire.Observed {
	p.t.Helper()
	s := p.until(fmt.Sprintf("%s %s", id, phase), func(s wire.State) bool {
		o, ok := instanceOf(s, id)
		return ok && o.Phase == phase
	})
	o, _ := instanceOf(s, id)
	return o
}

func instanceOf(s wire.State, id string) (wire.Observed, bool) {
	for _, o := range s.Instances {
		if o.ID == id {
			return o, true
		}
	}
	return wire.Observed{}, false
}

// events reads the journalled events after n until one satisfies enough.
func (p *portal) events(after int64, enough func(wire.Event) bool) (all []wire.Event) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://node/v1/events?after=%d", after), nil)
		if err != nil {
			p.t.Fatal(err)
		}
		resp, err := p.client(wire.Control).Do(req)
		if err != nil {
			continue
		}
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() {
			var ev wire.Event
			if err := json.Unmarshal(lines.Bytes(), &ev); err != nil {
				p.t.Fatalf("event line %q: %v", lines.Text(), err)
			}
			if ev.Seq <= after {
				p.t.Fatalf("event %d after %d", ev.Seq, after)
			}
			after = ev.Seq
			all = append(all, ev)
			if enough(ev) {
				resp.Body.Close()
				return all
			}
		}
		resp.Body.Close()
	}
	p.t.Fatalf("the event did not come; there were %+v", all)
	return nil
}
