package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// viewers are the clients: one socket each, a goroutine each, the same library
// for both servers.
type viewers struct {
	sockets   []*websocket.Conn
	seen      []atomic.Bool // of each: it has had a message
	count     atomic.Int64
	measuring atomic.Bool
	mu        sync.Mutex
	latencies []time.Duration
}

func connect(r ready, l load) (*viewers, error) {
	v := &viewers{sockets: make([]*websocket.Conn, l.Viewers), seen: make([]atomic.Bool, l.Viewers)}
	const atOnce = 50
	errs := make(chan error, atOnce)
	for worker := range atOnce {
		go func() {
			dialer := websocket.Dialer{HandshakeTimeout: time.Minute, ReadBufferSize: 512, WriteBufferSize: 512}
			for i := worker; i < l.Viewers; i += atOnce {
				if err := v.open(dialer, r, l, i); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range atOnce {
		if err := <-errs; err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (v *viewers) open(dialer websocket.Dialer, r ready, l load, i int) error {
	group := i % len(r.URLs)
	head := http.Header{}
	if len(r.Cookies) > 0 {
		head.Set("Cookie", r.Cookies[i])
	}
	ws, res, err := dialer.Dial(r.URLs[group], head)
	if err != nil {
		return fmt.Errorf("dial %s: %w (%v)", r.URLs[group], err, res)
	}
	v.sockets[i] = ws
	if r.Kind == "centrifuge" {
		commands := []string{`{"id":1,"connect":{}}`}
		for n := range l.Watch {
			commands = append(commands, fmt.Sprintf(`{"id":%d,"subscribe":{"channel":"%s"}}`, n+2, channel(group*l.Watch+n)))
		}
		for _, command := range commands {
			if err := ws.WriteMessage(websocket.TextMessage, []byte(command)); err != nil {
				return err
			}
		}
		go v.read(i, centrifugeMessages)
		return nil
	}
	go v.read(i, berthMessages)
	return nil
}

// berthMessages are the samples in one frame: an object, or a list of them.
func berthMessages(_ *websocket.Conn, b []byte) (out [][]byte) {
	for part := range bytes.SplitSeq(b, []byte(`"seq":`)) {
		out = append(out, part)
	}
	return out[1:]
}

// centrifugeMessages are the publications in one frame: replies and pushes come
// a line each, and an empty object is a ping that wants the same back.
func centrifugeMessages(ws *websocket.Conn, b []byte) (out [][]byte) {
	for line := range bytes.SplitSeq(b, []byte("\n")) {
		switch {
		case bytes.Equal(line, []byte("{}")):
			_ = ws.WriteMessage(websocket.TextMessage, line)
		case bytes.HasPrefix(line, []byte(`{"push":`)):
			out = append(out, line)
		}
	}
	return out
}

func (v *viewers) read(i int, messages func(*websocket.Conn, []byte) [][]byte) {
	for n := 0; ; {
		_, b, err := v.sockets[i].ReadMessage()
		if err != nil {
			return
		}
		for _, m := range messages(v.sockets[i], b) {
			v.seen[i].Store(true)
			if !v.measuring.Load() {
				continue
			}
			v.count.Add(1)
			if n++; n%10 == 1 { // parsing each would be most of the clients' work
				v.took(m)
			}
		}
	}
}

// took notes how old a message is.
func (v *viewers) took(b []byte) {
	_, b, ok := bytes.Cut(b, []byte(`"at":`))
	if !ok {
		return
	}
	var at time.Time
	if json.NewDecoder(bytes.NewReader(b)).Decode(&at) != nil {
		return
	}
	d := time.Since(at)
	v.mu.Lock()
	v.latencies = append(v.latencies, d)
	v.mu.Unlock()
}

// all waits until every viewer has had a message.
func (v *viewers) all(patience time.Duration) error {
	missing := 0
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		missing = 0
		for i := range v.seen {
			if !v.seen[i].Load() {
				missing++
			}
		}
		if missing == 0 {
			return nil
		}
	}
	return fmt.Errorf("%d of %d viewers had no message in %v", missing, len(v.seen), patience)
}

func (v *viewers) begin() { v.measuring.Store(true) }

func (v *viewers) end() (messages int64, latencies []time.Duration) {
	v.measuring.Store(false)
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.count.Load(), v.latencies
}

func (v *viewers) close() {
	for _, ws := range v.sockets {
		_ = ws.Close()
	}
}
