package shim

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"berth/agent/runtime/jail"
)

// startTimeout is how long a new shim may take to say that it is there.
const startTimeout = 30 * time.Second

// Start writes the order into dir and starts its shim, which from then on is on
// its own. It returns the shim's pid for the parent to reap.
// Another living shim in dir is success with pid 0.
func Start(ctx context.Context, dir, exe string, o Order) (pid int, err error) {
	lock, free, err := TakeLock(dir)
	if err != nil || !free {
		return 0, err
	}
	defer lock.Close() // the shim's copy keeps it
	if err := WriteOrder(dir, o); err != nil {
		return 0, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	errs, err := os.OpenFile(filepath.Join(dir, errorFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	defer errs.Close()
	ready, readyWrite, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer ready.Close()
	proc, err := os.StartProcess(exe, []string{"berth", Subcommand, dir}, &os.ProcAttr{
		Dir: "/", Env: jail.ProcessEnv(),
		Files: []*os.File{null, errs, errs, lock, readyWrite},
		Sys:   &syscall.SysProcAttr{Setsid: true}, // a signal to the agent's group is not for it
	})
	readyWrite.Close()
	if err != nil {
		return 0, fmt.Errorf("start a shim: %w", err)
	}
	pid = proc.Pid
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { ready.SetReadDeadline(time.Unix(1, 0)) })()
	line, err := bufio.NewReader(ready).ReadString('\n')
	if line = strings.TrimSpace(line); line == "ok" {
		return pid, proc.Release()
	}
	proc.Kill()
	proc.Wait()
	switch {
	case ctx.Err() != nil:
		return 0, fmt.Errorf("start a shim: %w", ctx.Err())
	case line != "":
		return 0, fmt.Errorf("start a shim: %s", line)
	}
	return 0, errors.Join(fmt.Errorf("the shim ended before it was ready: see %s", errs.Name()), err)
}
