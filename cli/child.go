package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// child is a part of `berth up` in a process of its own. It is started again
// when it dies, and ends with its parent.
type child struct {
	name string
	args []string
	env  []string
	out  io.Writer
	log  *os.File
	from int64 // where this run's log begins

	cmd      *exec.Cmd
	lifeline *os.File
	done     chan struct{} // closed when the process is gone
	err      error         // why, after done
}

// newChild prepares `berth args…`; its log goes to dir/log/name.log.
func newChild(dir, name string, out io.Writer, args, env []string) (*child, error) {
	if err := os.MkdirAll(filepath.Join(dir, "log"), 0o700); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(dir, "log", name+".log"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &child{name: name, args: args, env: env, out: out, log: log}, nil
}

func (c *child) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	c.from, err = c.log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	c.cmd = exec.Command(self, c.args...)
	c.cmd.Env = append(append(os.Environ(), c.env...), lifelineEnv+"=3")
	c.cmd.ExtraFiles = []*os.File{read}
	c.cmd.Stdout, c.cmd.Stderr = c.out, c.log
	c.lifeline, c.done = write, make(chan struct{})
	if err := c.cmd.Start(); err != nil {
		return errors.Join(err, write.Close())
	}
	go func() {
		c.err = c.cmd.Wait()
		close(c.done)
	}()
	return nil
}

// stop asks the process to end, and insists after grace.
func (c *child) stop(grace time.Duration) {
	if c.cmd == nil || c.cmd.Process == nil {
		return
	}
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	_ = c.lifeline.Close()
	select {
	case <-c.done:
	case <-time.After(grace):
		_ = c.cmd.Process.Kill()
		<-c.done
	}
}

// lastWords returns what the child logged in this run, at most 2 KiB of it.
func (c *child) lastWords() string {
	size, err := c.log.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	b := make([]byte, min(size-c.from, 2<<10))
	_, _ = c.log.ReadAt(b, size-int64(len(b)))
	return string(bytes.TrimSpace(b))
}

// keep starts the child again whenever it dies, until ctx ends.
func (c *child) keep(ctx context.Context, log *slog.Logger) {
	wait := time.Second
	for {
		began := time.Now()
		select {
		case <-ctx.Done():
			return
		case <-c.done:
		}
		if time.Since(began) > time.Minute {
			wait = time.Second
		}
		log.Error(c.name+" ended; starting it again", "why", fmt.Sprint(c.err), "in", wait)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = min(wait*2, 30*time.Second)
		if err := c.start(); err != nil {
			log.Error("start "+c.name, "error", err)
			return
		}
	}
}
