package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Files in a data directory that commands share.
const (
	operatorTokenFile = "operator.token" // an API token of the operator, mode 0600
	addressFile       = "portal.address" // where the portal listens now
	agentDir          = "agent"          // the agent's own directory under up
)

// makeDataDir makes dir, for its owner only, and returns its absolute path.
func makeDataDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return "", hint(err, "choose another directory with --data DIR")
	}
	return abs, nil
}

// lock holds name in dir for this process until release. The file names the
// holder, so that another process can say who has it, or end it.
func lock(dir, name string) (release func(), err error) {
	path := filepath.Join(dir, name+".lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := io.ReadAll(f)
		return nil, errors.Join(
			hint(fmt.Errorf("%s is in use by another berth (process %s)", dir, strings.TrimSpace(string(holder))),
				"stop that one (kill %s), or choose another directory with --data DIR", strings.TrimSpace(string(holder))),
			f.Close())
	}
	if err := errors.Join(f.Truncate(0), writeAt(f, strconv.Itoa(os.Getpid())+"\n")); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
}

func writeAt(f *os.File, s string) error {
	_, err := f.WriteAt([]byte(s), 0)
	return err
}

// holder returns the process that holds name in dir, or 0.
func holder(dir, name string) int {
	f, err := os.Open(filepath.Join(dir, name+".lock"))
	if err != nil {
		return 0
	}
	defer f.Close()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		return 0
	}
	b, _ := io.ReadAll(f)
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return pid
}

// writeFile replaces path whole: a reader sees the old bytes or the new ones.
func writeFile(path string, data []byte, mode os.FileMode) error {
	tmp := path + ".new"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close(), os.Rename(tmp, path))
}

// withLifeline ends ctx when the process that started this one is gone, however
// it went: it holds the other end of a pipe.
func withLifeline(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	fd, err := strconv.Atoi(os.Getenv(lifelineEnv))
	if err != nil {
		return ctx, cancel
	}
	syscall.CloseOnExec(fd)
	go func() {
		_, _ = io.ReadAll(os.NewFile(uintptr(fd), "lifeline"))
		cancel()
	}()
	return ctx, cancel
}

const lifelineEnv = "BERTH_LIFELINE_FD"
