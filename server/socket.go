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
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"berth/api"
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
	mu       sync.Mutex
	encoded  map[models.InstanceID]encoded
}

// encoded is the newest sample of an instance as it goes on the line: made once,
// however many watch.
type encoded struct {
	seq     int64
	message *websocket.PreparedMessage
}

func newSockets() *sockets {
	return &sockets{
		upgrader: websocket.Upgrader{HandshakeTimeout: 10 * time.Second, ReadBufferSize: 512, WriteBufferSize: 4 << 10, WriteBufferPool: &sync.Pool{}},
		encoded:  map[models.InstanceID]encoded{},
	}
}

// prepare encodes a sample, or finds it encoded.
func (s *sockets) prepare(id models.InstanceID, sample fleet.Sample) (*websocket.PreparedMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.encoded[id]; e.seq == sample.Seq && e.message != nil {
		return e.message, nil
	}
	b, err := json.Marshal(sampleJSON(sample))
	if err != nil {
		return nil, err
	}
	message, err := websocket.NewPreparedMessage(websocket.TextMessage, b)
	if err == nil {
		s.encoded[id] = encoded{seq: sample.Seq, message: message}
	}
	return message, err
}

// upgrade opens a browser's WebSocket. gorilla's own check refuses foreign
// origins; reads are limited to what a terminal types. The pool keeps 10,000
// idle sockets from holding a write buffer each.
func (s *sockets) upgrade(w http.ResponseWriter, r *http.Request) (*websocket.Conn, error) {
	ws, err := s.upgrader.Upgrade(w, r, nil)
	if err != nil {
		return nil, err
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

// closeOver says goodbye once ctx is over: a page whose user was signed out must
// not come back, any other does.
func closeOver(ctx context.Context, ws *websocket.Conn) {
	if errors.Is(context.Cause(ctx), errSignedOut) {
		closeSocket(ws, websocket.ClosePolicyViolation, "You are signed out.")
		return
	}
	closeSocket(ws, websocket.CloseGoingAway, "over")
}

// live sends an instance's samples after a sequence number, one JSON message a
// second, until the browser or ctx goes. One goroutine writes; a browser that is
// slow misses samples and holds nobody up.
func (s *sockets) live(ctx context.Context, ws *websocket.Conn, f *fleet.Service, id models.InstanceID, after int64) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // reading answers pings and notices a closed tab
		defer cancel()
		for {
			if _, _, err := ws.NextReader(); err != nil {
				return
			}
		}
	}()
	kept, feed := f.Subscribe(id, after)
	defer feed.Close()
	ping := time.NewTicker(socketPing)
	defer ping.Stop()
	send := func(sample fleet.Sample) bool {
		message, err := s.prepare(id, sample)
		if err != nil {
			return false
		}
		_ = ws.SetWriteDeadline(time.Now().Add(socketWrite))
		return ws.WritePreparedMessage(message) == nil
	}
	for _, sample := range kept {
		if !send(sample) {
			return
		}
	}
	for {
		select {
		case <-ctx.Done():
			closeOver(ctx, ws)
			return
		case sample := <-feed.C():
			if !send(sample) {
				return
			}
		case <-ping.C:
			if ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(socketWrite)) != nil {
				return
			}
		}
	}
}

func sampleJSON(s fleet.Sample) api.Sample {
	return api.Sample{Seq: s.Seq, At: s.At.Time(), UtilizationPercent: s.UtilizationPercent, MemoryMiB: s.MemoryMiB, TemperatureC: s.TemperatureC, PowerW: s.PowerW}
}

// terminal couples a browser's socket with a terminal inside an instance until
// either ends or ctx does. Binary messages are what is typed and shown; a text
// message is a resize.
func (s *sockets) terminal(ctx context.Context, ws *websocket.Conn, node io.ReadWriteCloser) {
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
		closeOver(ctx, ws)
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
