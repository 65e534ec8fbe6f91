package shim

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// maxLog is the size at which a log file makes room for a new one. One old file is
// kept, so an instance that prints for ever holds twice this.
const maxLog = 8 << 20

const (
	logFile    = "log"
	oldLogFile = "log.1"
)

// logWriter is a run's output on disk.
type logWriter struct {
	dir string

	mu     sync.Mutex
	grown  *sync.Cond // broadcast at every write, rotation and close
	f      *os.File
	size   int64
	turns  int // rotations so far
	closed bool
}

func openLog(dir string) (*logWriter, error) {
	f, err := os.OpenFile(filepath.Join(dir, logFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	w := &logWriter{dir: dir, f: f}
	w.grown = sync.NewCond(&w.mu)
	return w, nil
}

// Write appends. On a full disk the output is lost rather than the instance held up.
func (w *logWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return 0, os.ErrClosed
	}
	if w.size+int64(len(b)) > maxLog && w.size > 0 {
		if err := w.rotate(); err != nil {
			return len(b), nil
		}
	}
	n, _ := w.f.Write(b)
	w.size += int64(n)
	w.grown.Broadcast()
	return len(b), nil
}

func (w *logWriter) rotate() error {
	now := filepath.Join(w.dir, logFile)
	if err := os.Rename(now, filepath.Join(w.dir, oldLogFile)); err != nil {
		return err
	}
	f, err := os.OpenFile(now, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	w.f.Close()
	w.f, w.size = f, 0
	w.turns++
	return nil
}

func (w *logWriter) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.closed = true
		w.f.Close()
		w.grown.Broadcast()
	}
}

// follow copies the log from its last tail bytes (all if negative) to out, and
// what is added until it is closed. A slow out loses nothing unless the log turns
// twice meanwhile.
func (w *logWriter) follow(out io.Writer, tail int64, gone <-chan struct{}) error {
	stop := make(chan struct{})
	defer close(stop)
	go func() { // a condition cannot be selected on: wake it when the reader leaves
		select {
		case <-gone:
			w.mu.Lock()
			w.grown.Broadcast()
			w.mu.Unlock()
		case <-stop:
		}
	}()
	w.mu.Lock()
	turns, size := w.turns, w.size
	f, err := os.Open(filepath.Join(w.dir, logFile))
	w.mu.Unlock()
	if err != nil {
		return err
	}
	defer func() { f.Close() }()
	if err := copyOld(w.dir, out, f, size, tail); err != nil {
		return err
	}
	for {
		if _, err := io.Copy(out, f); err != nil {
			return err
		}
		at, err := f.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		w.mu.Lock()
		for !w.closed && w.turns == turns && w.size <= at && !isClosed(gone) {
			w.grown.Wait()
		}
		over, turned := w.closed && (w.turns == turns && w.size <= at), w.turns != turns
		var next *os.File
		if turned {
			turns = w.turns
			next, err = os.Open(filepath.Join(w.dir, logFile))
		}
		w.mu.Unlock()
		switch {
		case err != nil:
			return err
		case isClosed(gone), over:
			return nil
		case turned: // first the rest of the old file, then the new one
			if _, err := io.Copy(out, f); err != nil {
				next.Close()
				return err
			}
			f.Close()
			f = next
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// copyOld positions f, the newest file of the given size, for the last tail bytes,
// and copies what of them is in the older file.
func copyOld(dir string, out io.Writer, f *os.File, size, tail int64) error {
	if tail >= 0 && size >= tail {
		_, err := f.Seek(size-tail, io.SeekStart)
		return err
	}
	old, err := os.Open(filepath.Join(dir, oldLogFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer old.Close()
	if tail >= 0 {
		st, err := old.Stat()
		if err != nil {
			return err
		}
		if _, err := old.Seek(max(0, st.Size()-(tail-size)), io.SeekStart); err != nil {
			return err
		}
	}
	_, err = io.Copy(out, old)
	return err
}

// ReadLog copies what is kept of an ended run's output: the last tail bytes, or
// all if negative.
func ReadLog(dir string, out io.Writer, tail int64) error {
	f, err := os.Open(filepath.Join(dir, logFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil // it ended before it could say anything
	} else if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if err := copyOld(dir, out, f, st.Size(), tail); err != nil {
		return err
	}
	_, err = io.Copy(out, f)
	return err
}
