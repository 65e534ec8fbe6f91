package jail

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"berth/agent/runtime"

	"golang.org/x/sys/unix"
)

// Ops that the shim sends to the init.
const (
	OpStart = "start" // go on: start-up script, then the command
	OpShell = "shell" // open a terminal with a shell; answered by EvShell with its master
	OpTerm  = "term"  // tell every process to end, and end when they have
)

// Events that the init sends to the shim.
const (
	EvFault   = "fault"   // the place could not be built; Text says why
	EvProbed  = "probed"  // Visible lists the devices seen from inside
	EvStartup = "startup" // the start-up script ended with Code; sent only if there is one
	EvStarted = "started" // the command runs (or there is none): usable from now on
	EvCommand = "command" // the command could not be started; Text says why
	EvExit    = "exit"    // the command ended with Code
	EvShell   = "shell"   // answer to OpShell with the same ID
	EvLoad    = "load"    // what berth-load asks for changed
)

// Message is one packet on the control socket, either way.
type Message struct {
	Kind    string              `json:"kind"`
	ID      int                 `json:"id,omitempty"`
	Text    string              `json:"text,omitempty"`
	Code    int                 `json:"code,omitempty"` // 128+n for signal n
	Visible []string            `json:"visible,omitempty"`
	Cols    int                 `json:"cols,omitempty"`
	Rows    int                 `json:"rows,omitempty"`
	Term    string              `json:"term,omitempty"`
	Load    *runtime.LoadTarget `json:"load,omitempty"`

	File *os.File `json:"-"` // a descriptor that travels along; the receiver closes it
}

// maxPacket bounds a message; the longest is a list of device ids.
const maxPacket = 64 << 10

// Control is one end of the packet socket between shim and init.
type Control struct{ conn *net.UnixConn }

func newControl(f *os.File) (*Control, error) {
	defer f.Close() // FileConn works on a duplicate
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	return &Control{conn: c.(*net.UnixConn)}, nil
}

// controlPair returns the two ends as files; both are closed at exec.
func controlPair() (shim, init *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("control socket: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "control"), os.NewFile(uintptr(fds[1]), "control"), nil
}

// Send writes one message. It may be called from several goroutines.
func (c *Control) Send(m Message) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(b) > maxPacket {
		return fmt.Errorf("control message of %d bytes is longer than %d", len(b), maxPacket)
	}
	var oob []byte
	if m.File != nil {
		oob = unix.UnixRights(int(m.File.Fd()))
	}
	_, _, err = c.conn.WriteMsgUnix(b, oob, nil)
	return err
}

// Receive waits for the next message; io.EOF when the other side is gone.
func (c *Control) Receive() (m Message, err error) {
	b, oob := make([]byte, maxPacket), make([]byte, unix.CmsgSpace(4))
	n, on, _, _, err := c.conn.ReadMsgUnix(b, oob)
	switch {
	case errors.Is(err, unix.ECONNRESET), err == nil && n == 0:
		return m, io.EOF
	case err != nil:
		return m, err
	}
	if on > 0 {
		msgs, err := unix.ParseSocketControlMessage(oob[:on])
		if err != nil {
			return m, fmt.Errorf("control message: %w", err)
		}
		for _, cm := range msgs {
			fds, err := unix.ParseUnixRights(&cm)
			if err != nil {
				return m, fmt.Errorf("control message: %w", err)
			}
			for _, fd := range fds {
				unix.CloseOnExec(fd)
				unix.SetNonblock(fd, true) // so that Close ends a waiting Read
				m.File = os.NewFile(uintptr(fd), "pty")
			}
		}
	}
	f := m.File
	if err := json.Unmarshal(b[:n], &m); err != nil {
		if f != nil {
			f.Close()
		}
		return m, fmt.Errorf("control message: %w", err)
	}
	return m, nil
}

// Close ends both directions.
func (c *Control) Close() error { return c.conn.Close() }
