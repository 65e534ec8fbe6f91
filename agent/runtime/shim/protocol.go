package shim

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"

	"berth/agent/runtime"
)

// The socket speaks one JSON line each way per connection. After that, "watch"
// goes on with a line per change, "logs" with plain bytes, and "attach" with plain
// bytes towards the client and frames (one letter, four bytes of length, payload)
// towards the shim.

const (
	opState  = "state"
	opWatch  = "watch"
	opStop   = "stop" // answered when nothing runs any more
	opPaid   = "paid"
	opUsage  = "usage"
	opAttach = "attach"
	opLogs   = "logs"
)

type request struct {
	Op      string `json:"op"`
	GraceMS int64  `json:"grace_ms,omitempty"`
	Seconds int64  `json:"seconds,omitempty"`
	Session string `json:"session,omitempty"`
	Cols    int    `json:"cols,omitempty"`
	Rows    int    `json:"rows,omitempty"`
	Term    string `json:"term,omitempty"`
	Tail    int64  `json:"tail,omitempty"`
	Follow  bool   `json:"follow,omitempty"`
}

type response struct {
	Error      string         `json:"error,omitempty"`
	NotRunning bool           `json:"not_running,omitempty"`
	State      *State         `json:"state,omitempty"`
	Usage      *runtime.Usage `json:"usage,omitempty"`
}

// maxLine bounds a request or an answer.
const maxLine = 256 << 10

func writeLine(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

func readLine(r *bufio.Reader, v any) error {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if err == nil {
			return json.Unmarshal(line, v)
		}
		if err != bufio.ErrBufferFull {
			return err
		}
		if len(line) > maxLine {
			return fmt.Errorf("a line of more than %d bytes", maxLine)
		}
	}
}

const (
	frameInput  = 'i'
	frameResize = 'r' // two 16-bit numbers: columns, rows
)

const maxFrame = 64 << 10

func writeFrame(w io.Writer, kind byte, b []byte) error {
	head := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(b)))
	_, err := w.Write(append(head, b...))
	return err
}

func readFrame(r io.Reader, buf []byte) (kind byte, b []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if int(n) > len(buf) {
		return 0, nil, fmt.Errorf("a frame of %d bytes", n)
	}
	_, err = io.ReadFull(r, buf[:n])
	return head[0], buf[:n], err
}

// attachment is the client's end of a terminal.
type attachment struct {
	conn net.Conn
	r    *bufio.Reader
	mu   sync.Mutex // one frame at a time
}

func (a *attachment) Read(b []byte) (int, error) {
	n, err := a.r.Read(b)
	if err != nil {
		err = io.EOF // however the other side went, the terminal is over
	}
	return n, err
}

func (a *attachment) Write(b []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for done := 0; done < len(b); {
		n := min(len(b)-done, maxFrame)
		if err := writeFrame(a.conn, frameInput, b[done:done+n]); err != nil {
			return done, err
		}
		done += n
	}
	return len(b), nil
}

func (a *attachment) Resize(cols, rows int) error {
	c, r := screen(cols, rows)
	a.mu.Lock()
	defer a.mu.Unlock()
	b := binary.BigEndian.AppendUint16(nil, uint16(c))
	return writeFrame(a.conn, frameResize, binary.BigEndian.AppendUint16(b, uint16(r)))
}

func (a *attachment) Close() error { return a.conn.Close() }

// screen brings a size into the range a terminal takes.
func screen(cols, rows int) (int, int) {
	if cols <= 0 {
		cols = 80
	}
	if rows <= 0 {
		rows = 24
	}
	return min(cols, 1000), min(rows, 1000)
}
