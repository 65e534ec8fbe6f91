package server

import (
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// A page comes back after any other end of its socket; signed out, it must not.
func TestSocketSaysThatTheUserWasSignedOut(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Heartbeat = time.Hour }) // so that only the revocation can end it
	b := w.signUp("ada@example.org")
	_, a := w.who("ada@example.org")
	dialer := websocket.Dialer{Jar: b.http.Jar, HandshakeTimeout: patience}
	ws, res, err := dialer.Dial("ws"+strings.TrimPrefix(b.url, "http")+"/instances/"+string(w.instanceOf(a.ID))+"/live", nil)
	if err != nil {
		t.Fatalf("%v %v", err, res)
	}
	defer ws.Close()
	b.post("/logout").leadsTo(t, "/login")
	_ = ws.SetReadDeadline(time.Now().Add(patience))
	for err == nil {
		_, _, err = ws.ReadMessage()
	}
	if !websocket.IsCloseError(err, websocket.ClosePolicyViolation) {
		t.Errorf("it ended with %v, want close code %d", err, websocket.ClosePolicyViolation)
	}
}
