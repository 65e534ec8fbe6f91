package agent

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// wsConn carries a byte stream in a WebSocket's binary messages, for yamux.
type wsConn struct {
	*websocket.Conn
	message io.Reader // what is left of the message being read

	writing sync.Mutex // gorilla allows one writer, yamux has two
}

func (c *wsConn) Read(p []byte) (int, error) {
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

func (c *wsConn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.WriteMessage(websocket.BinaryMessage, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// SetDeadline makes wsConn a net.Conn.
func (c *wsConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

var _ net.Conn = (*wsConn)(nil)
