package stripedouble

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v76"
	"pgregory.net/rapid"
)

// childEnv tells the test binary to be a double of its own, to be killed.
const childEnv = "STRIPEDOUBLE_TEST_CHILD"

func childDir() string { return os.Getenv(childEnv) }

func runChild(dir string) {
	web := httptest.NewUnstartedServer(nil)
	s, err := New(Config{Dir: dir, SecretKey: testKey, WebhookSecret: testSecret, PublicURL: "http://" + web.Listener.Addr().String()})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	web.Config.Handler = s
	web.Start()
	fmt.Println(web.URL)
	select {}
}

func TestKilledProcessLosesNothing(t *testing.T) {
	b := newBench(t)
	b.stop() // the child has the directory
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childEnv+"="+b.dir)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	kill := func() {
		if !ended {
			ended = true
			child.Process.Kill()
			child.Wait()
		}
	}
	defer kill()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "http") {
		t.Fatalf("child said %q, %v", line, err)
	}
	b.api = newClient(strings.TrimSpace(line), 0)
	s := b.session(5000)
	b.pay(s, "4242424242424242")
	pi := b.reload(s.ID).PaymentIntent.ID
	r := &stripe.RefundParams{PaymentIntent: stripe.String(pi), Amount: stripe.Int64(500)}
	r.SetIdempotencyKey("refund:1")
	first, err := b.api.Refunds.New(r)
	if err != nil {
		t.Fatal(err)
	}
	kill()

	b.start()
	if after := b.reload(s.ID); after.PaymentStatus != "paid" || after.PaymentIntent.ID != pi {
		t.Fatalf("after the kill: %+v", after)
	}
	if again, err := b.api.Refunds.New(r); err != nil || again.ID != first.ID {
		t.Fatalf("the refund's key after the kill: %+v, %v", again, err)
	}
	b.flush()
	if n := distinct(b.hook.got()); n != 6 {
		t.Fatalf("%d events after the kill, want 6: %v", n, b.hook.types())
	}
}

func TestRestartKeepsDeliveriesAndKnobs(t *testing.T) {
	b := newBench(t)
	b.hook.answers(func(int) int { return 500 })
	b.pay(b.session(5000), "delayed_success")
	b.faults(Faults{Duplicate: 1, DeclineNext: 3})
	if _, err := b.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := b.readState()
	b.stop()
	b.hook.answers(func(int) int { return 200 })
	b.start()
	after := b.readState()
	if fmt.Sprint(before) != fmt.Sprint(after) {
		t.Fatalf("before %+v\nafter %+v", before, after)
	}
	if b.Faults() != (Faults{Duplicate: 1, DeclineNext: 3}) {
		t.Fatalf("knobs: %+v", b.Faults())
	}
	b.flush()
	if n := distinct(b.hook.got()); n != len(before.Pending) {
		t.Fatalf("%d events delivered, %d were pending", n, len(before.Pending))
	}
}

// A file cut anywhere opens with a whole number of its transactions, and takes
// new ones behind them.
func TestJournalCutAnywhere(t *testing.T) {
	var whole bytes.Buffer
	var ends []int
	for i := range 6 {
		line, err := formatLine([]row{{"customer", fmt.Sprint("cus_", i), json.RawMessage(`{"ID":"x"}`)}, {"charge", fmt.Sprint("ch_", i), json.RawMessage(`{}`)}})
		if err != nil {
			t.Fatal(err)
		}
		whole.Write(line)
		ends = append(ends, whole.Len())
	}
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		cut := rapid.IntRange(0, whole.Len()).Draw(t, "cut")
		want := 0
		for _, end := range ends {
			if end <= cut {
				want += 2
			}
		}
		if err := os.WriteFile(filepath.Join(dir, journalName), whole.Bytes()[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second opening meets what the first one appended
			got := 0
			j, err := openJournal(dir, func(row) error { got++; return nil })
			if err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Fatalf("cut at %d: %d rows, want %d", cut, got, want)
			}
			if err := j.append([]row{{"customer", "cus_new", json.RawMessage(`{}`)}}); err != nil {
				t.Fatal(err)
			}
			want++
			if err := j.close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestDamagedJournalIsNotGuessedAt(t *testing.T) {
	b := newBench(t)
	b.session(5000)
	b.session(6000)
	b.stop()
	path := filepath.Join(b.dir, journalName)
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	body[20] ^= 1
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := Config{Dir: b.dir, SecretKey: testKey, WebhookSecret: testSecret, PublicURL: "http://127.0.0.1:1"}
	if s, err := New(cfg); err == nil || !strings.Contains(err.Error(), "damaged at byte 0") {
		if err == nil {
			s.Close()
		}
		t.Fatalf("a damaged file: %v", err)
	}
	line, _ := formatLine([]row{{"subscription", "sub_1", json.RawMessage(`{}`)}})
	if err := os.WriteFile(path, line, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := New(cfg); err == nil || !strings.Contains(err.Error(), "newer version") {
		if err == nil {
			s.Close()
		}
		t.Fatalf("a newer file: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	b.start()
}

func TestCompactionKeepsWhatCounts(t *testing.T) {
	now := newClock()
	with := func(c *Config) { c.Clock = now.now }
	b := newBench(t, with)
	s := b.session(5000)
	b.pay(s, "4242424242424242")
	b.flush()
	for i := range 1100 { // superseded rows
		if err := b.SetFaults(Faults{DelayMS: i}); err != nil {
			t.Fatal(err)
		}
	}
	before := b.readState()
	size := b.journal.size
	b.stop()
	b.start(with)
	if b.journal.size*4 > size {
		t.Fatalf("not compacted: %d of %d bytes", b.journal.size, size)
	}
	if after := b.readState(); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Fatalf("before %+v\nafter %+v", before, after)
	}
	b.session(700) // and goes on behind the compacted rows
	b.stop()
	b.start(with)
	if got := b.readState().Objects["session"]; got != 2 {
		t.Fatalf("%d sessions", got)
	}
	for i := range 1100 {
		if err := b.SetFaults(Faults{DelayMS: i}); err != nil {
			t.Fatal(err)
		}
	}
	now.add(31 * 24 * time.Hour)
	b.stop()
	b.start(with)
	if s := b.readState(); s.Objects["event"] != 1 || s.Objects["session"] != 2 { // the expiry of the second session
		t.Fatalf("after a month: %+v", s)
	}
}
