package agent

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"berth/agent/runtime"
	"berth/wire"
)

// exec attaches the portal to a named shell of an instance. The shell lives in
// the runtime: when this connection breaks it goes on, and the next attachment
// finds it with its recent output.
func (a *api) exec(w http.ResponseWriter, r *http.Request) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), wire.TerminalProtocol) {
		problem(w, http.StatusUpgradeRequired, "upgrade", fmt.Errorf("ask with Upgrade: %s", wire.TerminalProtocol))
		return
	}
	cols, ok := number(w, r, "cols", 0)
	if !ok {
		return
	}
	rows, ok := number(w, r, "rows", 0)
	if !ok {
		return
	}
	id := r.PathValue("id")
	terminal, err := a.supervisor.runtime.Terminal(r.Context(), id, runtime.TerminalRequest{Session: r.URL.Query().Get("session"), Cols: int(cols), Rows: int(rows)})
	switch {
	case errors.Is(err, runtime.ErrNotFound):
		problem(w, http.StatusNotFound, "not_found", err)
		return
	case errors.Is(err, runtime.ErrNotRunning):
		problem(w, http.StatusConflict, "not_running", err)
		return
	case err != nil:
		problem(w, http.StatusInternalServerError, "node", err)
		return
	}
	defer terminal.Close()
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		problem(w, http.StatusInternalServerError, "node", err)
		return
	}
	defer conn.Close()
	fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", wire.TerminalProtocol)

	// One side ends the other: a broken connection closes the terminal, a
	// terminal that ended closes the connection.
	left := make(chan struct{})
	go func() {
		defer close(left)
		defer terminal.Close()
		typed(buffered.Reader, terminal)
	}()
	if err := shown(terminal, conn); errors.Is(err, io.EOF) {
		writeFrame(conn, wire.FrameExit, []byte(a.whyEnded(r, id)))
	}
	conn.Close()
	<-left
}

// whyEnded is the sentence for a shell that is over.
func (a *api) whyEnded(r *http.Request, id string) string {
	seen, err := a.supervisor.runtime.Observe(r.Context(), id, 0)
	switch {
	case errors.Is(err, runtime.ErrNotFound):
		return "The instance is gone."
	case err == nil && seen.Phase.Over():
		return strings.TrimSpace("The instance ended. " + seen.Reason)
	}
	return "The shell ended."
}

// shown copies the terminal's output into frames until either end is over.
func shown(terminal io.Reader, conn io.Writer) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := terminal.Read(buf)
		if n > 0 {
			if err := writeFrame(conn, wire.FrameData, buf[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
}

// typed carries out the portal's frames until it is gone or breaks the protocol.
func typed(conn *bufio.Reader, terminal runtime.Terminal) {
	for {
		kind, payload, err := readFrame(conn)
		if err != nil {
			return
		}
		switch kind {
		case wire.FrameData:
			if _, err := terminal.Write(payload); err != nil {
				return
			}
		case wire.FrameResize:
			var size wire.Resize
			if json.Unmarshal(payload, &size) != nil || size.Cols < 1 || size.Rows < 1 {
				continue // a size that cannot be is no reason to lose the shell
			}
			if err := terminal.Resize(size.Cols, size.Rows); err != nil {
				return
			}
		}
	}
}

func writeFrame(w io.Writer, kind byte, payload []byte) error {
	frame := make([]byte, 5, 5+len(payload))
	frame[0] = kind
	binary.BigEndian.PutUint32(frame[1:], uint32(len(payload)))
	_, err := w.Write(append(frame, payload...))
	return err
}

func readFrame(r io.Reader) (kind byte, payload []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > wire.MaxFrame {
		return 0, nil, fmt.Errorf("a frame of %d bytes; at most %d", n, wire.MaxFrame)
	}
	payload = make([]byte, n)
	_, err = io.ReadFull(r, payload)
	return head[0], payload, err
}
