package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"berth/models/store"
)

// What is left of a body that was too large is never taken for a request.
func TestRestOfALargeBodyIsNoRequest(t *testing.T) {
	w := newWorld(t)
	w.signUp("ada@example.org")
	user, account := w.who("ada@example.org")
	var token string
	if err := w.store.InTx(t.Context(), func(tx *store.Tx) (err error) {
		token, _, err = createToken(tx, user.ID, account.ID, "test", time.Now())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/api/v1/tokens", "/login", "/webhooks/stripe"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
		hidden := strings.Repeat("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 100_000)
		go fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, token, len(hidden), hidden)
		answers := bufio.NewReader(conn)
		first, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		_ = first.Body.Close()
		if second, err := http.ReadResponse(answers, nil); err == nil {
			t.Errorf("%s: %s, then the rest of the body was answered %s", path, first.Status, second.Status)
		}
	}
}

// Whoever sends half a body and waits is answered, and let go.
func TestBodyThatStopsComing(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.BodyPatience = 200 * time.Millisecond })
	for path, want := range map[string]string{"/nope": " 404 ", "/login": " 408 ", "/signup": " 408 ", "/webhooks/stripe": " 408 ", "/api/v1/tokens": " 401 ", "/logout": " 303 "} {
		for _, head := range []string{"Content-Length: 1000\r\n\r\nemail=", "Transfer-Encoding: chunked\r\n\r\n6\r\nemail=\r\n"} {
			conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
			w.must(err)
			defer conn.Close()
			w.must(conn.SetDeadline(time.Now().Add(patience)))
			_, err = io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: x\r\nAccept: text/html\r\nContent-Type: application/x-www-form-urlencoded\r\n"+head)
			w.must(err)
			line, err := bufio.NewReader(conn).ReadString('\n')
			if err != nil || !strings.Contains(line, want) {
				t.Errorf("%s, %.10s: %q, %v; want%s", path, head, line, err, want)
			}
		}
	}
}
