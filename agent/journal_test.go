package agent

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"berth/wire"
)

func openTestJournal(t testing.TB, path string) *journal {
	t.Helper()
	j, err := openJournal(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.close() })
	return j
}

func seqs(events []wire.Event) (out []int64) {
	for _, ev := range events {
		out = append(out, ev.Seq)
	}
	return out
}

// Whatever is appended, acknowledged, cut off and reopened: numbers never go
// back, and what is not acknowledged is all there, in order.
func TestJournalNeverForgets(t *testing.T) {
	root := t.TempDir()
	rounds := 0
	rapid.Check(t, func(rt *rapid.T) {
		rounds++
		path := filepath.Join(root, "journal"+strings.Repeat("x", rounds%50)+string(rune('a'+rounds%26)))
		os.Remove(path)
		j := openTestJournal(t, path)
		defer func() { j.close() }()
		last, acked := int64(0), int64(0)
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"append", "append", "ack", "reopen", "torn", "compact"}).Draw(rt, "step") {
			case "append":
				ev, err := j.append(wire.Event{Instance: rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "id"), Phase: wire.PhaseRunning})
				if err != nil {
					rt.Fatal(err)
				}
				if ev.Seq != last+1 {
					rt.Fatalf("event %d after %d", ev.Seq, last)
				}
				last = ev.Seq
			case "ack":
				acked = rapid.Int64Range(acked, last).Draw(rt, "acked")
				if err := j.acknowledge(acked); err != nil {
					rt.Fatal(err)
				}
			case "torn":
				j.close()
				file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
				if err != nil {
					rt.Fatal(err)
				}
				file.WriteString("0badc0de {\"event\":{\"seq\":9")
				file.Close()
				j = openTestJournal(t, path)
			case "reopen":
				j.close()
				j = openTestJournal(t, path)
			case "compact":
				if last == acked && last > 0 {
					j.mu.Lock()
					err := j.compact()
					j.mu.Unlock()
					if err != nil {
						rt.Fatal(err)
					}
				}
			}
			events, _ := j.after(acked)
			if len(events) != int(last-acked) {
				rt.Fatalf("acknowledged %d of %d, pending %v", acked, last, seqs(events))
			}
			for i, ev := range events {
				if ev.Seq != acked+int64(i)+1 {
					rt.Fatalf("pending %v", seqs(events))
				}
			}
			if j.lastSeq() != last {
				rt.Fatalf("last %d, want %d", j.lastSeq(), last)
			}
		}
	})
}

func TestJournalPassesOverDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := openTestJournal(t, path)
	for range 3 {
		if _, err := j.append(wire.Event{Instance: "a", Phase: wire.PhaseRunning}); err != nil {
			t.Fatal(err)
		}
	}
	j.close()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	lines[1] = strings.Replace(lines[1], `"seq":2`, `"seq":7`, 1)
	if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	j = openTestJournal(t, path)
	events, _ := j.after(0)
	if got := seqs(events); len(got) != 2 || got[0] != 1 || got[1] != 3 || j.lastSeq() != 3 {
		t.Errorf("after damage to the second: %v, last %d", got, j.lastSeq())
	}
}

func TestJournalCompacts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := openTestJournal(t, path)
	detail := strings.Repeat("x", 4096)
	for i := range 100 {
		phase := wire.PhaseRunning
		if i == 99 {
			phase = wire.PhaseGone
		}
		id := "stays"
		if i >= 50 {
			id = "goes"
		}
		if _, err := j.append(wire.Event{Instance: id, Phase: phase, Detail: detail, Run: i}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.acknowledge(100); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 2*4096 {
		t.Errorf("the compacted journal has %d bytes, %v", info.Size(), err)
	}
	for range 2 {
		if ev, err := j.append(wire.Event{Instance: "more", Phase: wire.PhaseRunning}); err != nil || ev.Seq <= 100 {
			t.Errorf("after compaction: event %d, %v", ev.Seq, err)
		}
		if ev, said := j.newestOf("stays"); !said || ev.Run != 49 {
			t.Errorf("of an instance that is not gone the journal knows %v, run %d", said, ev.Run)
		}
		if _, said := j.newestOf("goes"); said {
			t.Error("of an instance that is gone the journal still speaks")
		}
		j.close()
		j = openTestJournal(t, path)
	}
}

// A portal that knows more than this journal is believed: lower numbers would be
// taken for known.
func TestJournalBehindThePortal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := openTestJournal(t, path)
	if err := j.acknowledge(500); err != nil {
		t.Fatal(err)
	}
	j.close()
	j = openTestJournal(t, path)
	if ev, err := j.append(wire.Event{Instance: "a"}); err != nil || ev.Seq != 501 {
		t.Errorf("event %d, %v; want 501", ev.Seq, err)
	}
}
