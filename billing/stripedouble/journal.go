package stripedouble

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// A journal is an append-only file of transactions, one a line: a checksum, a
// space, and the rows the transaction wrote as a JSON array. A line is on disk
// before append returns, so only the last line can be torn, and a torn line is a
// transaction nobody was told about: opening cuts it off.
type journal struct {
	file *os.File
	lock *os.File
	size int64 // bytes of whole transactions
	rows int   // rows written, superseded ones included

	// broken is set when the file's tail is in an unknown condition. From then on
	// nothing is written: a good line behind a torn one would be lost at the next
	// opening.
	broken error
}

// row is one written value of one table.
type row struct {
	Table string          `json:"t"`
	ID    string          `json:"i"`
	Value json.RawMessage `json:"v"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// openJournal takes the directory for this process, reads every transaction into
// apply in the order written, and is then ready to append. It fails when another
// process holds the directory and when a line other than the last is damaged.
func openJournal(dir string, apply func(row) error) (*journal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the test payments' directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the test payments' lock: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("%s is in use by another process: stop it, or choose another directory: %w", dir, err)
	}
	j := &journal{lock: lock}
	if err := j.load(filepath.Join(dir, journalName), apply); err != nil {
		j.close()
		return nil, err
	}
	return j, nil
}

const journalName = "state.log"

func (j *journal) load(path string, apply func(row) error) error {
	var err error
	if j.file, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return fmt.Errorf("open the test payments' state: %w", err)
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return err
	}
	in := bufio.NewReaderSize(j.file, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return j.cut() // what is left of line never became whole
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		rows, ok := parseLine(line)
		if !ok {
			if _, err := in.Peek(1); errors.Is(err, io.EOF) {
				return j.cut()
			}
			return fmt.Errorf("%s is damaged at byte %d: move the file away to start with empty test payments", path, j.size)
		}
		for _, r := range rows {
			if err := apply(r); err != nil {
				return fmt.Errorf("%s at byte %d: %w", path, j.size, err)
			}
		}
		j.size += int64(len(line))
		j.rows += len(rows)
	}
}

// cut drops everything behind the last whole transaction.
func (j *journal) cut() error {
	if err := j.file.Truncate(j.size); err != nil {
		return fmt.Errorf("cut a torn record off the test payments' state: %w", err)
	}
	_, err := j.file.Seek(j.size, io.SeekStart)
	return err
}

// append writes one transaction and returns when it is on disk. On an error
// nothing of it remains.
func (j *journal) append(rows []row) error {
	if j.broken != nil {
		return j.broken
	}
	line, err := formatLine(rows)
	if err != nil {
		return err
	}
	_, err = j.file.Write(line)
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		if cutErr := j.cut(); cutErr != nil {
			j.broken = fmt.Errorf("the test payments' state cannot be written (%w): make room on the disk and start again", cutErr)
		}
		return fmt.Errorf("write the test payments' state: %w", err)
	}
	j.size += int64(len(line))
	j.rows += len(rows)
	return nil
}

// rewrite replaces the file by one that holds only the rows that dump gives. A
// crash leaves the old file or the new one, never a mixture.
func (j *journal) rewrite(dump func(emit func(row) error) error) error {
	path := j.file.Name()
	next, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(next, 1<<16)
	var size int64
	var count int
	err = dump(func(r row) error {
		line, err := formatLine([]row{r})
		if err != nil {
			return err
		}
		size, count = size+int64(len(line)), count+1
		_, err = out.Write(line)
		return err
	})
	err = errors.Join(err, out.Flush(), next.Sync())
	if err != nil {
		next.Close()
		return fmt.Errorf("compact the test payments' state: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		next.Close()
		return fmt.Errorf("compact the test payments' state: %w", err)
	}
	j.file.Close()
	// The descriptor goes on under the new name; reopening gives it the right one.
	next.Close()
	if j.file, err = os.OpenFile(path, os.O_RDWR, 0o600); err != nil {
		return err
	}
	if _, err := j.file.Seek(size, io.SeekStart); err != nil {
		return err
	}
	j.size, j.rows = size, count
	return syncDir(filepath.Dir(path))
}

func (j *journal) close() error {
	var err error
	if j.file != nil {
		err = j.file.Close()
	}
	return errors.Join(err, j.lock.Close()) // closing gives the lock back
}

func formatLine(rows []row) ([]byte, error) {
	body, err := json.Marshal(rows)
	if err != nil {
		return nil, err
	}
	var line bytes.Buffer
	fmt.Fprintf(&line, "%08x ", crc32.Checksum(body, castagnoli))
	line.Write(body)
	line.WriteByte('\n')
	return line.Bytes(), nil
}

func parseLine(line []byte) ([]row, bool) {
	sum, body, ok := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
	if !ok {
		return nil, false
	}
	want, err := strconv.ParseUint(string(sum), 16, 32)
	if err != nil || uint32(want) != crc32.Checksum(body, castagnoli) {
		return nil, false
	}
	var rows []row
	return rows, json.Unmarshal(body, &rows) == nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
