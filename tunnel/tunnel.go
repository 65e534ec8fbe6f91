// Package tunnel carries many byte streams over one WebSocket: what both ends of
// a link between portal and agent share. The agent dials, the portal opens the
// streams. It knows nothing of what is said on them.
package tunnel

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/hashicorp/yamux"
)

// Sizes of the WebSocket's buffers on both ends, in bytes. What is read in larger
// pieces goes past the buffer, and writers take theirs from WriteBuffers for as long
// as a write lasts, so that a portal can hold a thousand nodes.
const (
	ReadBuffer  = 4 << 10
	WriteBuffer = 64 << 10
)

// WriteBuffers are those not in use now.
var WriteBuffers sync.Pool

// Client is the end that opens streams, window bytes wide each.
func Client(ws *websocket.Conn, window uint32, log *slog.Logger) (*yamux.Session, error) {
	return yamux.Client(&conn{Conn: ws}, config(window, log))
}

// Server is the end that accepts streams.
func Server(ws *websocket.Conn, window uint32, log *slog.Logger) (*yamux.Session, error) {
	return yamux.Server(&conn{Conn: ws}, config(window, log))
}

// config holds the settings measured for this link: a dead peer is noticed
// within KeepAliveInterval + ConnectionWriteTimeout, 10 s.
func config(window uint32, log *slog.Logger) *yamux.Config {
	return &yamux.Config{
		AcceptBacklog:          256,
		EnableKeepAlive:        true,
		KeepAliveInterval:      5 * time.Second,
		ConnectionWriteTimeout: 5 * time.Second,
		MaxStreamWindowSize:    window,
		StreamOpenTimeout:      15 * time.Second,
		StreamCloseTimeout:     time.Minute,
		Logger:                 slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// conn carries a byte stream in a WebSocket's binary messages, for yamux.
type conn struct {
	*websocket.Conn
	message io.Reader // what is left of the message being read

	writing sync.Mutex // gorilla allows one writer, yamux has two
}

func (c *conn) Read(p []byte) (int, error) {
	for {
		if c.message == nil {
			kind, r, err := c.NextReader()
			if err != nil {
				return 0, err
			}
			if kind != websocket.BinaryMessage {
				return 0, errors.New("the link carries binary messages only")
			}
			c.message = r
		}
		n, err := c.message.Read(p)
		if errors.Is(err, io.EOF) { // the message's end, not the stream's
			c.message, err = nil, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

func (c *conn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.WriteMessage(websocket.BinaryMessage, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// SetDeadline makes conn a net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

var _ net.Conn = (*conn)(nil)
