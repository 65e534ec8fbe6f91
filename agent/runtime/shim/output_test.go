package shim

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLogTurnsAndKeepsTheNewest(t *testing.T) {
	dir := t.TempDir()
	w, err := openLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	pr, pw := io.Pipe()
	followed := make(chan error, 1)
	go func() {
		err := w.follow(pw, 0, make(chan struct{}))
		pw.Close()
		followed <- err
	}()
	var all bytes.Buffer
	got := make(chan []byte, 1)
	go func() {
		b, _ := io.ReadAll(pr)
		got <- b
	}()
	line := strings.Repeat("x", 1<<16)
	for i := range 3 * maxLog / len(line) {
		fmt.Fprintf(io.MultiWriter(w, &all), "%d %s\n", i, line)
	}
	// All but at most what two turns took away is there, up to the last byte.
	var kept bytes.Buffer
	if err := ReadLog(dir, &kept, -1); err != nil {
		t.Fatal(err)
	}
	if kept.Len() < maxLog || kept.Len() > 2*maxLog || !bytes.HasSuffix(all.Bytes(), kept.Bytes()) {
		t.Errorf("kept %d of %d bytes", kept.Len(), all.Len())
	}
	for _, tail := range []int64{0, 1, 1000, maxLog + 5} {
		var b bytes.Buffer
		if err := ReadLog(dir, &b, tail); err != nil {
			t.Fatal(err)
		}
		if int64(b.Len()) != tail || !bytes.HasSuffix(all.Bytes(), b.Bytes()) {
			t.Errorf("a tail of %d has %d bytes", tail, b.Len())
		}
	}
	w.close()
	if err := <-followed; err != nil {
		t.Error(err)
	}
	if b := <-got; !bytes.HasSuffix(all.Bytes(), b[len(b)-1000:]) {
		t.Error("a follower did not see the end")
	}
	if _, err := w.Write([]byte("x")); err == nil {
		t.Error("a closed log takes more")
	}
}

func TestFollowerLeaves(t *testing.T) {
	w, err := openLog(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	gone := make(chan struct{})
	done := make(chan error, 1)
	go func() { done <- w.follow(io.Discard, -1, gone) }()
	close(gone)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestSessionReplaysThePast(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(r)
	pumped := make(chan struct{})
	go func() { s.pump(); close(pumped) }()
	var all []byte
	first := s.attach()
	buf := make([]byte, 8<<10)
	for i := range 20_000 { // several times round the ring
		line := fmt.Appendf(nil, "line %d\n", i)
		all = append(all, line...)
		if _, err := w.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	read := func(r *reader) (out []byte) {
		for {
			n, ok := r.next(buf)
			if !ok {
				return out
			}
			out = append(out, buf[:n]...)
		}
	}
	if got := read(first); !bytes.Equal(got, all) {
		t.Errorf("an attacher who reads gets %d of %d bytes", len(got), len(all))
	}
	<-pumped
	if got := read(s.attach()); len(got) != replayed || !bytes.HasSuffix(all, got) {
		t.Errorf("one who comes later sees %d bytes", len(got))
	}
	if !s.isOver() {
		t.Error("the session is not over")
	}
}

func TestFrames(t *testing.T) {
	var b bytes.Buffer
	if err := writeFrame(&b, frameInput, []byte("abc")); err != nil {
		t.Fatal(err)
	}
	kind, got, err := readFrame(bytes.NewReader(b.Bytes()), make([]byte, 3))
	if err != nil || kind != frameInput || string(got) != "abc" {
		t.Errorf("%c %q %v", kind, got, err)
	}
	if _, _, err := readFrame(bytes.NewReader(b.Bytes()), make([]byte, 2)); err == nil {
		t.Error("a frame longer than allowed is taken")
	}
}

func TestStateSurvives(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadState(dir); !os.IsNotExist(err) {
		t.Errorf("no state: %v", err)
	}
	lock, ok, err := TakeLock(dir)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if _, ok, err := TakeLock(dir); err != nil || ok {
		t.Errorf("taken twice: %v %v", ok, err)
	}
	if alive, err := Alive(dir); err != nil || !alive {
		t.Errorf("%v %v", alive, err)
	}
	lock.Close()
	if alive, err := Alive(dir); err != nil || alive {
		t.Errorf("%v %v", alive, err)
	}
	f, err := os.Create(dir + "/" + secondsFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	k := secondsKeeper{f: f}
	var st State
	st.Phase, st.Seconds = "running", 3
	for _, n := range []int64{41, 42, 7} { // 7 comes late and is not taken
		if err := k.keep(n); err != nil {
			t.Fatal(err)
		}
	}
	if err := WriteState(dir, st); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadState(dir); err != nil || got.Seconds != 42 {
		t.Errorf("%+v %v", got, err)
	}
	st.Phase = "exited" // the last word is the state's
	if err := WriteState(dir, st); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadState(dir); err != nil || got.Seconds != 3 {
		t.Errorf("%+v %v", got, err)
	}
}
