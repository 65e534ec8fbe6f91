package sandbox

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
	"strings"
	"sync"
	"testing"
	"time"

	"berth/agent/runtime"
	"berth/agent/runtime/jail"

	"go.uber.org/goleak"
)

// TestMain makes the test binary its own shim, init and helpers, as main does.
func TestMain(m *testing.M) {
	if ran, code := Reexec(os.Args); ran {
		os.Exit(code)
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // for the processes started from here
	if dir := os.Getenv("BERTH_TEST_AGENT"); dir != "" {
		os.Exit(agentMain(dir))
	}
	goleak.VerifyTestMain(m)
}

// agentMain is an agent that starts one instance and waits to be killed.
func agentMain(dir string) int {
	d, err := New(Config{Dir: dir, AllowUnisolated: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	d.rungs = []runtime.Rung{runtime.Rung(os.Getenv("BERTH_TEST_RUNG"))}
	if err := d.Start(context.Background(), runtime.Spec{Instance: "kept", Run: 1, Name: "kept"}); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("started")
	select {} // until killed
}

const patience30 = 30 * time.Second

// node is a driver in a folder of its own, checked for leftovers at the end.
type node struct {
	*Driver
	t   *testing.T
	dir string
}

func logger(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

func folder(t *testing.T) string {
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // MkdirTemp makes it 0700
		t.Fatal(err)
	}
	return dir
}

// newNode opens a node that uses only the given rung, or skips the test.
func newNode(t *testing.T, rung runtime.Rung) *node {
	n := openNode(t, folder(t), rung)
	info := n.Probe(t.Context())
	if !info.Usable() {
		t.Skipf("this machine refuses it: %s", info.Summary())
	}
	t.Cleanup(n.clean)
	return n
}

func openNode(t *testing.T, dir string, rung runtime.Rung) *node {
	d, err := New(Config{Dir: dir, AllowUnisolated: true, Log: logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	d.rungs = []runtime.Rung{rung}
	return &node{Driver: d, t: t, dir: dir}
}

// clean removes every instance and checks that nothing is left of any.
func (n *node) clean() {
	ctx := context.Background()
	ids, err := n.instances()
	if err != nil {
		n.t.Error(err)
	}
	for _, id := range ids {
		errs, _ := filepath.Glob(filepath.Join(n.instanceDir(id), "runs", "*", "shim.log"))
		for _, f := range errs {
			if text, err := os.ReadFile(f); err != nil || len(text) > 0 {
				n.t.Errorf("a shim of %s complains: %s (%v)", id, text, err)
			}
		}
		if err := n.Remove(ctx, id); err != nil {
			n.t.Errorf("remove %s: %v", id, err)
		}
	}
	if left, _ := os.ReadDir(filepath.Join(n.dir, "instances")); len(left) > 0 {
		n.t.Errorf("folders left: %v", left)
	}
	if err := n.Close(); err != nil {
		n.t.Error(err)
	}
	eventually(n.t, "processes of the node's users are gone", func() bool {
		for uid := n.uidBase; os.Getuid() == 0 && uid < n.uidBase+10; uid++ {
			if pids, err := jail.OfUser(uid); err != nil || len(pids) > 0 {
				return false
			}
		}
		return true
	})
	eventually(n.t, "processes in the node's folder are gone", func() bool { return len(inFolder(n.dir)) == 0 })
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || bytes.Contains(mounts, []byte(n.dir)) {
		n.t.Errorf("mounts left under %s (%v)", n.dir, err)
	}
	groups, _ := filepath.Glob("/sys/fs/cgroup/*/berth/" + strings.TrimSuffix(n.groupName("", 0), "--0") + "*")
	if len(groups) > 0 {
		n.t.Errorf("control groups left: %v", groups)
	}
}

// inFolder lists the processes that work in a folder or were started for it.
func inFolder(dir string) (out []string) {
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range procs {
		cwd, _ := os.Readlink(p + "/cwd")
		args, _ := os.ReadFile(p + "/cmdline")
		if p != fmt.Sprintf("/proc/%d", os.Getpid()) && (strings.HasPrefix(cwd, dir+"/instances") || bytes.Contains(args, []byte(dir+"/instances"))) {
			out = append(out, fmt.Sprintf("%s: %s in %s", p, args, cwd))
		}
	}
	return out
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience30); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patience30, what)
		}
	}
}

func (n *node) start(s runtime.Spec) {
	n.t.Helper()
	if s.Run == 0 {
		s.Run = 1
	}
	if s.Name == "" {
		s.Name = s.Instance
	}
	if err := n.Start(n.t.Context(), s); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) observe(id string) runtime.Observed {
	n.t.Helper()
	o, err := n.Observe(n.t.Context(), id, 0)
	if err != nil {
		n.t.Fatal(err)
	}
	return o
}

// wait returns when the instance is in the phase (or over).
func (n *node) wait(id string, p runtime.Phase) (o runtime.Observed) {
	n.t.Helper()
	eventually(n.t, fmt.Sprintf("%s is %s", id, p), func() bool {
		o = n.observe(id)
		return o.Phase == p || o.Phase.Over()
	})
	if o.Phase != p {
		n.t.Fatalf("%s is %s (%s %s), not %s; log:\n%s", id, o.Phase, o.Cause, o.Reason, p, n.log(id))
	}
	return o
}

func (n *node) log(id string) string {
	n.t.Helper()
	r, err := n.Logs(n.t.Context(), id, 0, -1, false)
	if err != nil {
		n.t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		n.t.Fatal(err)
	}
	return string(b)
}

// output runs a shell command as the instance and returns what it printed.
func (n *node) output(id, script string, more ...func(*runtime.Spec)) string {
	n.t.Helper()
	s := runtime.Spec{Instance: id, Run: 1, Name: id, Command: []string{"sh", "-c", script}}
	for _, f := range more {
		f(&s)
	}
	n.start(s)
	if o := n.wait(id, runtime.Exited); o.Cause != runtime.CauseExit {
		n.t.Fatalf("%s: %s (%s)", id, o.Reason, o.Cause)
	}
	return n.log(id)
}

// screenOf reads a terminal in the background and can wait for text on it.
type screenOf struct {
	t    *testing.T
	term runtime.Terminal
	mu   sync.Mutex
	text strings.Builder
	done chan struct{}
}

func (n *node) attach(id, session string) *screenOf {
	n.t.Helper()
	term, err := n.Terminal(n.t.Context(), id, runtime.TerminalRequest{Session: session, Cols: 100, Rows: 30})
	if err != nil {
		n.t.Fatal(err)
	}
	s := &screenOf{t: n.t, term: term, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		buf := make([]byte, 4096)
		for {
			k, err := term.Read(buf)
			s.mu.Lock()
			s.text.Write(buf[:k])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	n.t.Cleanup(s.close)
	return s
}

func (s *screenOf) close() {
	s.term.Close()
	<-s.done
}

func (s *screenOf) seen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *screenOf) typeLine(line string) {
	s.t.Helper()
	if _, err := s.term.Write([]byte(line + "\n")); err != nil {
		s.t.Fatal(err)
	}
}

func (s *screenOf) waitFor(text string) {
	s.t.Helper()
	for deadline := time.Now().Add(patience30); !strings.Contains(s.seen(), text); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("%q does not appear; the screen:\n%s", text, s.seen())
		}
	}
}

// startAgent runs an agent process that has started the instance "kept".
func startAgent(t *testing.T, dir string, rung runtime.Rung) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "BERTH_TEST_AGENT="+dir, "BERTH_TEST_RUNG="+string(rung))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 200)
	k, err := out.Read(buf)
	if line := strings.TrimSpace(string(buf[:k])); line != "started" {
		cmd.Process.Kill()
		cmd.Wait()
		t.Fatalf("the agent says %q (%v)", line, err)
	}
	return cmd
}

func isNotRunning(err error) bool { return errors.Is(err, runtime.ErrNotRunning) }
