package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"berth/wire"
)

// journal keeps the facts that cost money on disk until the portal has
// acknowledged them. One line is eight hex digits of CRC-32C, a space and one
// JSON record: an event, or an acknowledgement. An event is on the disk
// (fsync) when append returns, so whoever appended may act further.
//
// Sequence numbers only grow, also over kill -9, a torn last line and a
// compaction: the compacted file begins with the newest acknowledged number.
// The newest event of each instance that is not gone outlives its
// acknowledgement, so that a restarted agent knows what it said last.
type journal struct {
	path string
	log  *slog.Logger

	mu      sync.Mutex
	file    *os.File
	size    int64 // bytes known to be whole records
	last    int64
	acked   int64
	pending []wire.Event          // not acknowledged, oldest first
	newest  map[string]wire.Event // by instance, unless gone
	grown   chan struct{}         // closed and replaced at each append
}

// journalRecord is one line: exactly one field is set.
type journalRecord struct {
	Event *wire.Event `json:"event,omitempty"`
	Ack   int64       `json:"ack,omitempty"`
}

// compactAbove is the file size, in bytes, from which a fully acknowledged
// journal is rewritten.
const compactAbove = 256 << 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// openJournal reads the journal at path, creating it if absent. A torn last
// line, as a crash in the middle of a write leaves, is cut off; a damaged line
// elsewhere is passed over and logged, since the events after it still count.
func openJournal(path string, log *slog.Logger) (*journal, error) {
	_, absent := os.Stat(path)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j := &journal{path: path, log: log, file: file, newest: map[string]wire.Event{}, grown: make(chan struct{})}
	if err := j.replay(); err != nil {
		file.Close()
		return nil, fmt.Errorf("read journal %s: %w", path, err)
	}
	if absent != nil {
		if err := syncDir(filepath.Dir(path)); err != nil {
			file.Close()
			return nil, err
		}
	}
	return j, nil
}

func (j *journal) replay() error {
	data, err := io.ReadAll(j.file)
	if err != nil {
		return err
	}
	for number := 1; ; number++ {
		end := bytes.IndexByte(data[j.size:], '\n')
		if end < 0 {
			break
		}
		line := data[j.size : j.size+int64(end)]
		j.size += int64(end) + 1
		rec, err := parseRecord(line)
		if err != nil {
			j.log.Error("journal line is damaged and was passed over", "line", number, "error", err)
			continue
		}
		j.apply(rec)
	}
	if torn := int64(len(data)) - j.size; torn > 0 {
		j.log.Warn("journal's torn last line was cut off", "bytes", torn)
		if err := j.file.Truncate(j.size); err != nil {
			return err
		}
	}
	_, err = j.file.Seek(j.size, io.SeekStart)
	return err
}

func parseRecord(line []byte) (journalRecord, error) {
	var rec journalRecord
	sum, body, found := bytes.Cut(line, []byte{' '})
	if !found {
		return rec, errors.New("no checksum")
	}
	if want := fmt.Sprintf("%08x", crc32.Checksum(body, castagnoli)); want != string(sum) {
		return rec, fmt.Errorf("checksum is %q, want %s", sum, want)
	}
	err := json.Unmarshal(body, &rec)
	return rec, err
}

func formatRecord(rec journalRecord) ([]byte, error) {
	body, err := json.Marshal(rec)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%08x %s\n", crc32.Checksum(body, castagnoli), body), nil
}

// apply brings the record into memory. The caller holds mu or is alone.
func (j *journal) apply(rec journalRecord) {
	if rec.Event != nil {
		ev := *rec.Event
		j.last = max(j.last, ev.Seq)
		if ev.Seq > j.acked {
			j.pending = append(j.pending, ev)
		}
		if ev.Phase == wire.PhaseGone {
			delete(j.newest, ev.Instance)
		} else {
			j.newest[ev.Instance] = ev
		}
		return
	}
	j.acked = max(j.acked, rec.Ack)
	j.last = max(j.last, j.acked)
	j.pending = slices.DeleteFunc(j.pending, func(ev wire.Event) bool { return ev.Seq <= j.acked })
}

// append gives the event the next sequence number and returns it once it is on
// disk. On error nothing was recorded and the caller must not act on the event.
func (j *journal) append(ev wire.Event) (wire.Event, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	ev.Seq = j.last + 1
	rec := journalRecord{Event: &ev}
	if err := j.write(rec, true); err != nil {
		return wire.Event{}, fmt.Errorf("journal event of instance %s: %w", ev.Instance, err)
	}
	j.apply(rec)
	close(j.grown)
	j.grown = make(chan struct{})
	return ev, nil
}

// write adds one line. A failed write is cut off again, so that a later one
// does not land behind half a line.
func (j *journal) write(rec journalRecord, sync bool) error {
	line, err := formatRecord(rec)
	if err != nil {
		return err
	}
	_, err = j.file.WriteAt(line, j.size)
	if err == nil && sync {
		err = j.file.Sync()
	}
	if err != nil {
		return errors.Join(err, j.file.Truncate(j.size))
	}
	j.size += int64(len(line))
	return nil
}

// acknowledge forgets events up to n. It is not synced: a lost acknowledgement
// only makes the portal see events twice. A number above the newest one means
// this journal was lost or restored: later events then count on from n, since
// the portal would take lower ones for known.
func (j *journal) acknowledge(n int64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if n <= j.acked {
		return nil
	}
	if n > j.last {
		j.log.Error("the portal knows later events than this journal holds; counting on from there", "portal", n, "journal", j.last)
	}
	rec := journalRecord{Ack: n}
	if err := j.write(rec, n > j.last); err != nil {
		return fmt.Errorf("journal acknowledgement: %w", err)
	}
	j.apply(rec)
	if len(j.pending) == 0 && j.size > compactAbove {
		return j.compact()
	}
	return nil
}

// compact rewrites the file with what still matters. A crash leaves the old
// file or the new one.
func (j *journal) compact() error {
	var buf bytes.Buffer
	recs := []journalRecord{{Ack: j.acked}}
	for _, ev := range j.newest {
		recs = append(recs, journalRecord{Event: &ev})
	}
	for _, rec := range recs {
		line, err := formatRecord(rec)
		if err != nil {
			return err
		}
		buf.Write(line)
	}
	if err := writeFile(j.path, buf.Bytes()); err != nil {
		return fmt.Errorf("compact journal: %w", err)
	}
	file, err := os.OpenFile(j.path, os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("compact journal: %w", err)
	}
	j.file.Close()
	j.file, j.size = file, int64(buf.Len())
	return nil
}

// after returns the unacknowledged events above n, oldest first, and a channel
// that is closed when there are more.
func (j *journal) after(n int64) ([]wire.Event, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := len(j.pending)
	for i > 0 && j.pending[i-1].Seq > n {
		i--
	}
	return slices.Clone(j.pending[i:]), j.grown
}

// newestOf returns the last event journalled of an instance that is not gone.
func (j *journal) newestOf(instance string) (wire.Event, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	ev, ok := j.newest[instance]
	return ev, ok
}

// instances names those the journal last knew as not gone.
func (j *journal) instances() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	ids := make([]string, 0, len(j.newest))
	for id := range j.newest {
		ids = append(ids, id)
	}
	return ids
}

func (j *journal) lastSeq() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last
}

func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.file.Close()
}
