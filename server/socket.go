package server

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"berth/fleet"
	"berth/models"
	"berth/wire"
)

const (
	socketWrite = 10 * time.Second // a browser that takes longer for one message is gone
	socketPing  = 20 * time.Second // keeps proxies from closing an idle socket
	socketDead  = 60 * time.Second // without a pong
)

// sockets serves browsers' WebSockets.
type sockets struct {
	upgrader websocket.Upgrader
	rooms    rooms
	open     sync.WaitGroup // those of live

	lives, terminals atomic.Int64 // open now
}

func newSockets(f *fleet.Service) *sockets {
	return &sockets{
		// What is no upgrade, or comes from a foreign page, is a problem like any other.
		upgrader: websocket.Upgrader{Error: func(http.ResponseWriter, *http.Request, int, error) {}, HandshakeTimeout: 10 * time.Second, ReadBufferSize: 512, WriteBufferSize: 4 << 10, WriteBufferPool: &sync.Pool{}},
		rooms:    rooms{fleet: f, rooms: map[string]*room{}},
	}
}

// upgrade opens a browser's WebSocket. gorilla's own check refuses foreign
// origins; reads are limited to what a terminal types. The pool keeps 10,000
// idle sockets from holding a write buffer each.
func (s *sockets) upgrade(w http.ResponseWriter, r *http.Request) (*websocket.Conn, error) {
	ws, err := s.upgrader.Upgrade(w, r, nil)
	if err != nil {
		if strings.Contains(err.Error(), "origin") {
			return nil, &models.Problem{Code: codeForeign, What: "A page of another site asked for this.", Next: "Connect from a page of this portal, or without an Origin header."}
		}
		return nil, &models.Problem{Code: codeMalformed, What: "This address takes a WebSocket.", Next: "Connect with a WebSocket client: " + strings.TrimPrefix(err.Error(), "websocket: ") + "."}
	}
	ws.SetReadLimit(wire.MaxFrame)
	_ = ws.SetReadDeadline(time.Now().Add(socketDead))
	ws.SetPongHandler(func(string) error { return ws.SetReadDeadline(time.Now().Add(socketDead)) })
	return ws, nil
}

// closeSocket says goodbye with a code the page understands.
func closeSocket(ws *websocket.Conn, code int, why string) {
	_ = ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, why), time.Now().Add(time.Second))
	_ = ws.Close()
}

// goodbye is what a socket says once ctx is over: a page whose user was signed
// out must not come back, any other does.
func goodbye(ctx context.Context) (code int, why string) {
	if errors.Is(context.Cause(ctx), errSignedOut) {
		return websocket.ClosePolicyViolation, "You are signed out."
	}
	return websocket.CloseGoingAway, "over"
}

// live sends what is watched, one JSON message for each tick of a node, until the
// browser or ctx goes; then it calls done. Of one subject it sends the kept
// samples after a sequence number first. It returns at once, so that nothing of
// the request is held as long as the socket: one goroutine stays, which reads.
func (s *sockets) live(ctx context.Context, done func(), ws *websocket.Conn, what scene, after int64) {
	l := newLine(ws.NetConn(), socketWrite)
	ws.SetPingHandler(func(text string) error { l.send(frame(websocket.PongMessage, []byte(text))); return nil })
	ws.SetCloseHandler(func(code int, _ string) error {
		l.end(code, "")
		return nil
	})
	s.lives.Add(1)
	s.open.Go(func() {
		defer s.lives.Add(-1)
		defer done()
		over := context.AfterFunc(ctx, func() { l.end(goodbye(ctx)) })
		defer over()
		kept := s.rooms.enter(what, after, l)
		defer s.rooms.exit(what, l)
		go l.finish(kept)
		for { // reading answers pings and notices a closed tab
			if _, _, err := ws.NextReader(); err != nil {
				l.end(websocket.CloseGoingAway, "")
				return
			}
		}
	})
}

// terminal couples a browser's socket with a terminal inside an instance until
// either ends or ctx does. Binary messages are what is typed and shown; a text
// message is a resize.
func (s *sockets) terminal(ctx context.Context, ws *websocket.Conn, node io.ReadWriteCloser) {
	s.terminals.Add(1)
	defer s.terminals.Add(-1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { node.Close() })
	defer stop()
	go func() {
		defer cancel()
		_ = typed(ws, node)
	}()
	go func() {
		ping := time.NewTicker(socketPing)
		defer ping.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ping.C:
				// WriteControl is the one write gorilla allows beside another writer.
				if ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(socketWrite)) != nil {
					cancel()
					return
				}
			}
		}
	}()
	said, err := shown(ws, node)
	switch {
	case said != "":
		closeSocket(ws, websocket.CloseNormalClosure, said)
	case err != nil && !errors.Is(err, net.ErrClosed) && ctx.Err() == nil:
		closeSocket(ws, websocket.CloseTryAgainLater, "the node is away")
	default:
		code, why := goodbye(ctx)
		closeSocket(ws, code, why)
	}
	cancel()
}

// typed carries what the browser sends to the node.
func typed(ws *websocket.Conn, node io.Writer) error {
	for {
		kind, b, err := ws.ReadMessage()
		if err != nil {
			return err
		}
		switch kind {
		case websocket.BinaryMessage:
			err = writeFrame(node, wire.FrameData, b)
		case websocket.TextMessage:
			var m struct {
				Resize *wire.Resize `json:"resize"`
			}
			if json.Unmarshal(b, &m) != nil || m.Resize == nil {
				continue // a page from another version: what it says is not for us
			}
			size, marshalErr := json.Marshal(m.Resize)
			if marshalErr != nil {
				return marshalErr
			}
			err = writeFrame(node, wire.FrameResize, size)
		}
		if err != nil {
			return err
		}
	}
}

// shown carries what the node sends to the browser. It returns the sentence the
// node said when the shell ended.
func shown(ws *websocket.Conn, node io.Reader) (string, error) {
	for {
		kind, b, err := readFrame(node)
		if err != nil {
			return "", err
		}
		switch kind {
		case wire.FrameData:
			_ = ws.SetWriteDeadline(time.Now().Add(socketWrite))
			if err := ws.WriteMessage(websocket.BinaryMessage, b); err != nil {
				return "", err
			}
		case wire.FrameExit:
			return string(b), nil
		}
	}
}

// writeFrame writes one terminal frame as wire describes it, in one Write.
func writeFrame(w io.Writer, kind byte, payload []byte) error {
	frame := make([]byte, 5, 5+len(payload))
	frame[0] = kind
	binary.BigEndian.PutUint32(frame[1:], uint32(len(payload)))
	_, err := w.Write(append(frame, payload...))
	return err
}

// readFrame reads one terminal frame.
func readFrame(r io.Reader) (byte, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > wire.MaxFrame {
		return 0, nil, fmt.Errorf("a terminal frame of %d bytes; at most %d are sent", n, wire.MaxFrame)
	}
	payload := make([]byte, n)
	_, err := io.ReadFull(r, payload)
	return head[0], payload, err
}
