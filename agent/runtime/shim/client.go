package shim

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"berth/agent/runtime"

	"golang.org/x/sys/unix"
)

// ErrGone is returned when no shim answers in a run's folder.
var ErrGone = errors.New("the run's shim is gone")

// Client speaks to the shim of the run in Dir.
type Client struct{ Dir string }

// State asks for the run's state now. ErrGone if the shim is no more.
func (c Client) State(ctx context.Context) (State, error) {
	a, err := c.ask(ctx, request{Op: opState})
	if err != nil {
		return State{}, err
	}
	return *a.State, nil
}

// Stop ends the run and returns when nothing of it is left.
func (c Client) Stop(ctx context.Context, grace time.Duration) error {
	_, err := c.ask(ctx, request{Op: opStop, GraceMS: grace.Milliseconds()})
	return err
}

// SetPaid sets the limit of paid seconds.
func (c Client) SetPaid(ctx context.Context, seconds int64) error {
	_, err := c.ask(ctx, request{Op: opPaid, Seconds: seconds})
	return err
}

// Usage asks what the run uses now; runtime.ErrNotRunning once it ended.
func (c Client) Usage(ctx context.Context) (runtime.Usage, error) {
	a, err := c.ask(ctx, request{Op: opUsage})
	if err != nil {
		return runtime.Usage{}, err
	}
	return *a.Usage, nil
}

// Watch calls changed once it listens, and for every change of state from then on,
// until the shim or ctx ends.
func (c Client) Watch(ctx context.Context, changed func()) error {
	conn, r, _, err := c.open(ctx, request{Op: opWatch})
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	changed() // what came before nobody heard
	for {
		if _, err := r.ReadByte(); err != nil {
			return ctx.Err()
		}
		changed()
	}
}

// Attach joins a terminal.
func (c Client) Attach(ctx context.Context, q runtime.TerminalRequest) (runtime.Terminal, error) {
	cols, rows := screen(q.Cols, q.Rows)
	conn, r, _, err := c.open(ctx, request{Op: opAttach, Session: q.Session, Cols: cols, Rows: rows, Term: q.Term})
	if err != nil {
		return nil, err
	}
	return &attachment{conn: conn, r: r}, nil
}

// Logs streams the run's output until it ends.
func (c Client) Logs(ctx context.Context, tail int64) (io.ReadCloser, error) {
	conn, r, _, err := c.open(ctx, request{Op: opLogs, Tail: tail, Follow: true})
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{r, conn}, nil
}

func (c Client) ask(ctx context.Context, q request) (response, error) {
	conn, _, a, err := c.open(ctx, q)
	if err != nil {
		return a, err
	}
	return a, conn.Close()
}

// open sends a request and reads its answer line; the connection stays open, and
// outlives ctx.
func (c Client) open(ctx context.Context, q request) (net.Conn, *bufio.Reader, response, error) {
	var a response
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, nil, a, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	r := bufio.NewReader(conn)
	err = writeLine(conn, q)
	if err == nil {
		err = readLine(r, &a)
	}
	switch {
	case !stop():
		err = ctx.Err()
	case err != nil:
		err = ErrGone // it ended between dial and answer
	case a.NotRunning:
		err = runtime.ErrNotRunning
	case a.Error != "":
		err = errors.New(a.Error)
	}
	if err != nil {
		conn.Close()
		return nil, nil, a, err
	}
	return conn, r, a, nil
}

// dial reaches the socket through the folder's descriptor: a socket's path may
// only have 107 bytes, a data folder's has no limit.
func (c Client) dial(ctx context.Context) (net.Conn, error) {
	fd, err := unix.Open(c.Dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, ErrGone
	}
	defer unix.Close(fd)
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", filepath.Join(fmt.Sprintf("/proc/self/fd/%d", fd), socketFile))
	switch {
	case err == nil:
		return conn, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ECONNREFUSED):
		return nil, ErrGone
	}
	return nil, err
}
