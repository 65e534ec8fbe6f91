package server

import (
	"encoding/binary"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/gorilla/websocket"
)

// lineQueue is how many messages a slow browser may lag before it loses the
// oldest.
const lineQueue = 32

// line is the writing end of a browser's live socket. send never waits: what the
// kernel takes at once is written by the caller, without another goroutine to
// wake, and the rest by one that ends when it has caught up. A browser that stays
// behind loses its oldest messages, and one that takes nothing for the line's
// patience is gone.
//
// All that goes out goes through send, also pings and goodbyes, since gorilla
// does not know what is half written.
type line struct {
	conn     net.Conn
	raw      syscall.RawConn // nil: conn is not a plain socket, and is never written by the caller
	patience time.Duration

	mu      sync.Mutex
	busy    bool // a goroutine writes, and frames wait for it
	ended   bool // the goodbye was said, and nothing may follow it
	waiting net.Buffers
	ping    *time.Timer
}

// newLine makes a line on which frames wait until finish has run.
func newLine(conn net.Conn, patience time.Duration) *line {
	l := &line{conn: conn, patience: patience, busy: true}
	if c, ok := conn.(syscall.Conn); ok {
		l.raw, _ = c.SyscallConn() // fails only for a closed one, to which finish cannot write either
	}
	l.mu.Lock()
	l.ping = time.AfterFunc(socketPing, l.beat)
	l.mu.Unlock()
	return l
}

// send writes a whole frame, now or later or, on a slow line, never. The frame
// may be shared: nobody changes it.
func (l *line) send(frame []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(frame)
}

// put is send for who holds mu.
func (l *line) put(frame []byte) {
	if l.ended {
		return
	}
	if l.busy {
		if len(l.waiting) == lineQueue {
			l.waiting = l.waiting[:copy(l.waiting, l.waiting[1:])]
		}
		l.waiting = append(l.waiting, frame)
		return
	}
	if n := l.try(frame); n < len(frame) {
		l.busy = true
		go l.finish(net.Buffers{frame[n:]})
	}
}

// try writes what fits into the kernel's buffer. What is wrong with the
// connection, if anything, finish finds out.
func (l *line) try(frame []byte) (n int) {
	if l.raw == nil {
		return 0
	}
	_ = l.raw.Write(func(fd uintptr) bool {
		n, _ = syscall.Write(int(fd), frame)
		return true // do not wait until it is writable
	})
	return max(0, n)
}

// finish writes what is left over and all that waits, then lets the line be
// written directly again.
func (l *line) finish(rest net.Buffers) {
	for {
		_ = l.conn.SetWriteDeadline(time.Now().Add(l.patience))
		if _, err := rest.WriteTo(l.conn); err != nil {
			_ = l.conn.Close() // it stays busy: nothing may follow half a frame
			return
		}
		l.mu.Lock()
		if len(l.waiting) == 0 {
			l.busy = false
			_ = l.conn.SetWriteDeadline(time.Time{})
			l.mu.Unlock()
			return
		}
		rest, l.waiting = l.waiting, nil
		l.mu.Unlock()
	}
}

var pingFrame = frame(websocket.PingMessage, nil)

// beat keeps proxies from closing an idle socket, and finds dead ones.
func (l *line) beat() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.put(pingFrame); !l.ended {
		l.ping.Reset(socketPing)
	}
}

// end says goodbye, when the line is free to, and closes the connection. Only the
// first call does anything.
func (l *line) end(code int, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(frame(websocket.CloseMessage, websocket.FormatCloseMessage(code, why)))
	l.ended = true
	l.ping.Stop()
	_ = l.conn.Close()
}

// frame is a whole message of a server: RFC 6455, section 5.2, final and
// unmasked. Payloads are below 64 KiB.
func frame(opcode byte, payload []byte) []byte {
	b := make([]byte, 0, 4+len(payload))
	if b = append(b, 0x80|opcode); len(payload) < 126 {
		b = append(b, byte(len(payload)))
	} else {
		b = binary.BigEndian.AppendUint16(append(b, 126), uint16(len(payload)))
	}
	return append(b, payload...)
}
