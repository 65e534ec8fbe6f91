package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/agent/runtime"
	"berth/agent/runtime/jail"
	"berth/agent/runtime/shim"

	"golang.org/x/sys/unix"
)

// onEachRung runs a test on every rung this machine allows.
func onEachRung(t *testing.T, f func(t *testing.T, n *node)) {
	for name, rung := range map[string]runtime.Rung{"root": runtime.RungRoot, "userns": runtime.RungUserNS, "process": runtime.RungProcess} {
		t.Run(name, func(t *testing.T) { f(t, newNode(t, rung)) })
	}
}

// onBest runs on the best rung only, where the rung makes no difference.
func onBest(t *testing.T) *node {
	n := newNode(t, runtime.RungProcess) // to find out whether anything runs at all
	n.info, n.rungs = nil, []runtime.Rung{runtime.RungRoot, runtime.RungUserNS, runtime.RungProcess}
	return n
}

func TestStartsRunsAndEnds(t *testing.T) {
	onEachRung(t, func(t *testing.T, n *node) {
		ctx := t.Context()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		changes := n.Watch(ctx)
		n.start(runtime.Spec{Instance: "a", Command: []string{"sh", "-c", "echo hello; exit 7"}})
		var o runtime.Observed
		for o = n.observe("a"); !o.Phase.Over(); o = n.observe("a") {
			select {
			case id := <-changes:
				if id != "a" {
					t.Fatalf("a change of %q", id)
				}
			case <-time.After(patience30):
				t.Fatalf("no change is reported; the run is %s", o.Phase)
			}
		}
		if o.Cause != runtime.CauseExit || o.ExitCode == nil || *o.ExitCode != 7 || o.Reason != "exit 7" {
			t.Errorf("ended as %+v", o)
		}
		if o.ReadyAt.IsZero() || o.ExitedAt.Before(o.ReadyAt) || o.BootID == "" || o.Rung != n.info.Rung {
			t.Errorf("observed %+v", o)
		}
		if got := n.log("a"); got != "hello\n" {
			t.Errorf("log %q", got)
		}
		n.start(runtime.Spec{Instance: "a", Command: []string{"false"}}) // the same run: nothing happens
		if again := n.observe("a"); *again.ExitCode != 7 {
			t.Errorf("run 1 ran twice: %+v", again)
		}
		n.start(runtime.Spec{Instance: "a", Run: 2, Command: []string{"sh", "-c", "kill -9 $$"}})
		if o := n.wait("a", runtime.Exited); o.Run != 2 || *o.ExitCode != 137 || o.Reason != "ended by SIGKILL" {
			t.Errorf("ended as %+v", o)
		}
		if o, err := n.Observe(ctx, "a", 1); err != nil || *o.ExitCode != 7 {
			t.Errorf("run 1 is forgotten: %+v %v", o, err)
		}
		if err := n.Start(ctx, runtime.Spec{Instance: "a", Run: 1}); err == nil {
			t.Error("a run of the past can be started")
		}
	})
}

func TestStartIsRefusedWhileAnEarlierRunLives(t *testing.T) {
	n := onBest(t)
	n.start(runtime.Spec{Instance: "a"})
	n.wait("a", runtime.Running)
	if err := n.Start(t.Context(), runtime.Spec{Instance: "a", Run: 2}); !errors.Is(err, runtime.ErrBusy) {
		t.Errorf("err = %v", err)
	}
	if err := n.Stop(t.Context(), "a", time.Minute); err != nil {
		t.Fatal(err)
	}
	n.start(runtime.Spec{Instance: "a", Run: 2}) // at once, the old shim still on its way out
	if o := n.wait("a", runtime.Running); o.Run != 2 {
		t.Errorf("%+v", o)
	}
}

func TestBadOrders(t *testing.T) {
	n := onBest(t)
	for name, s := range map[string]runtime.Spec{
		"path in the id":  {Instance: "../a", Run: 1},
		"hidden id":       {Instance: ".a", Run: 1},
		"no run":          {Instance: "a"},
		"NUL in env":      {Instance: "a", Run: 1, Env: map[string]string{"A": "\x00"}},
		"device twice":    {Instance: "a", Run: 1, Devices: []runtime.DeviceGrant{{UUID: "x"}, {UUID: "x"}}},
		"path as device":  {Instance: "a", Run: 1, Devices: []runtime.DeviceGrant{{UUID: "../x"}}},
		"node elsewhere":  {Instance: "a", Run: 1, Devices: []runtime.DeviceGrant{{UUID: "x", Nodes: []string{"/dev/../etc/shadow"}}}},
		"node not rooted": {Instance: "a", Run: 1, Devices: []runtime.DeviceGrant{{UUID: "x", Node: "dev"}}},
	} {
		if err := n.Start(t.Context(), s); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, id := range []string{"absent", "../etc", ""} {
		if _, err := n.Observe(t.Context(), id, 0); !errors.Is(err, runtime.ErrNotFound) {
			t.Errorf("observe %q: %v", id, err)
		}
		if err := errors.Join(n.Stop(t.Context(), id, 0), n.Remove(t.Context(), id)); err != nil {
			t.Errorf("nothing to end is success, but %q: %v", id, err)
		}
	}
}

func TestCommandNotFound(t *testing.T) {
	n := onBest(t)
	n.start(runtime.Spec{Instance: "a", Command: []string{"no-such-program"}})
	if o := n.wait("a", runtime.Exited); o.Cause != runtime.CauseCommand || o.Reason != "no-such-program: command not found" || o.Seconds != 0 || !o.ReadyAt.IsZero() {
		t.Errorf("%+v", o)
	}
}

func TestStopGivesGraceThenKills(t *testing.T) {
	onEachRung(t, func(t *testing.T, n *node) {
		n.start(runtime.Spec{Instance: "kind", Command: []string{"sh", "-c", "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.1; done"}})
		n.start(runtime.Spec{Instance: "deaf", Command: []string{"sh", "-c", "trap '' TERM; (trap '' TERM; sleep 1000) & echo up; while :; do sleep 0.1; done"}})
		for _, id := range []string{"kind", "deaf"} {
			n.wait(id, runtime.Running)
			eventually(t, id+" is up", func() bool { return strings.Contains(n.log(id), "up") })
		}
		began := time.Now()
		if err := n.Stop(t.Context(), "kind", time.Hour); err != nil {
			t.Fatal(err)
		}
		if o := n.observe("kind"); !o.Phase.Over() || o.Cause != runtime.CauseStopped || o.Reason != "stopped" || o.ExitCode == nil || *o.ExitCode != 3 {
			t.Errorf("kind: %+v", o)
		}
		if got := n.log("kind"); !strings.HasSuffix(got, "bye\n") {
			t.Errorf("kind's log %q", got)
		}
		if err := n.Stop(t.Context(), "deaf", 300*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if o := n.observe("deaf"); !o.Phase.Over() || o.Cause != runtime.CauseStopped {
			t.Errorf("deaf: %+v", o)
		}
		if time.Since(began) > patience30 {
			t.Errorf("stopping took %s", time.Since(began))
		}
		if err := n.Stop(t.Context(), "deaf", 0); err != nil {
			t.Errorf("stopping twice: %v", err)
		}
	})
}

func TestStopEndsShellsAndBackgroundJobs(t *testing.T) {
	onEachRung(t, func(t *testing.T, n *node) {
		n.start(runtime.Spec{Instance: "a"})
		n.wait("a", runtime.Running)
		s := n.attach("a", "")
		s.typeLine("sleep 1000 & nohup sleep 1001 >/dev/null & setsid sleep 1002 & echo $((6*7))")
		s.waitFor("42")
		eventually(t, "all run", func() bool {
			u, err := n.Usage(t.Context(), "a")
			return err == nil && u.Processes >= 4
		})
		if err := n.Stop(t.Context(), "a", time.Minute); err != nil { // a minute would show as a timeout
			t.Fatal(err)
		}
		<-s.done // the terminal ended with it
		if _, err := n.Terminal(t.Context(), "a", runtime.TerminalRequest{}); !isNotRunning(err) {
			t.Errorf("a terminal on a stopped instance: %v", err)
		}
		if _, err := n.Usage(t.Context(), "a"); !isNotRunning(err) {
			t.Errorf("usage of a stopped instance: %v", err)
		}
	})
}

func TestPaidSecondsEndARunExactly(t *testing.T) {
	onEachRung(t, func(t *testing.T, n *node) {
		n.start(runtime.Spec{Instance: "a", PaidSeconds: 2, Command: []string{"sleep", "1000"}})
		n.start(runtime.Spec{Instance: "b"})
		n.wait("b", runtime.Running)
		if err := n.SetPaidSeconds(t.Context(), "b", 1, 0); err != nil { // changes nothing
			t.Fatal(err)
		}
		if o := n.observe("b"); o.PaidSeconds != 0 || o.Phase != runtime.Running {
			t.Errorf("%+v", o)
		}
		if err := n.SetPaidSeconds(t.Context(), "b", 1, 1); err != nil {
			t.Fatal(err)
		}
		for id, want := range map[string]int64{"a": 2, "b": 1} {
			o := n.wait(id, runtime.Exited)
			if o.Cause != runtime.CausePaid || o.Reason != runtime.ReasonPaid {
				t.Errorf("%s: %+v", id, o)
			}
			// b's limit came when it had run for a moment already.
			if o.Seconds != want && !(id == "b" && o.Seconds == want+1) {
				t.Errorf("%s: %d seconds, want %d", id, o.Seconds, want)
			}
			if ran := o.ExitedAt.Sub(o.ReadyAt); ran < time.Duration(want)*time.Second-50*time.Millisecond {
				t.Errorf("%s was ended after %s", id, ran)
			}
		}
		if err := n.SetPaidSeconds(t.Context(), "b", 1, 100); err != nil {
			t.Errorf("a run that ended: %v", err)
		}
		if err := n.SetPaidSeconds(t.Context(), "b", 2, 100); !errors.Is(err, runtime.ErrNotFound) {
			t.Errorf("a run that never was: %v", err)
		}
	})
}

func TestKilledShim(t *testing.T) {
	onEachRung(t, func(t *testing.T, n *node) {
		n.start(runtime.Spec{Instance: "a", Command: []string{"sh", "-c", "sleep 1000 & sleep 1001"}})
		eventually(t, "a second has passed", func() bool { return n.observe("a").Seconds >= 1 })
		st, err := shim.ReadState(n.runDir("a", 1))
		if err != nil {
			t.Fatal(err)
		}
		changes := n.Watch(t.Context())
		if err := unix.Kill(st.ShimPID, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the loss is seen", func() bool { return n.observe("a").Phase.Over() })
		select {
		case <-changes:
		case <-time.After(patience30):
			t.Error("nobody was told")
		}
		list, err := n.List(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatalf("%v %v", list, err)
		}
		o := list[0]
		if o.Cause != runtime.CauseLost || o.Reason != "shim lost" || o.Seconds < 1 || o.Seconds > 1+int64(time.Since(o.ReadyAt)/time.Second) || !o.Cause.NodeFault() {
			t.Errorf("%+v", o)
		}
		if s, err := jail.ReadStat(st.InitPID); err == nil && s.StartTicks == st.InitStart && s.State != 'Z' {
			t.Errorf("the init lives: %+v", s)
		}
	})
}

func TestHostRestarted(t *testing.T) {
	n := onBest(t)
	n.start(runtime.Spec{Instance: "a"})
	n.wait("a", runtime.Running)
	dir := n.runDir("a", 1)
	st, err := shim.ReadState(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Stop(t.Context(), "a", 0); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the shim is gone", func() bool { alive, err := shim.Alive(dir); return err == nil && !alive })
	// The disk as a power cut leaves it: running, of a boot that is over.
	st.BootID, st.Seconds = "00000000-0000-0000-0000-000000000000", 5
	if err := shim.WriteState(dir, st); err != nil {
		t.Fatal(err)
	}
	if o := n.observe("a"); o.Cause != runtime.CauseReboot || o.Reason != "the node restarted" || o.Seconds < 5 {
		t.Errorf("%+v", o)
	}
}

func TestAgentIsKilledAndAnotherAdopts(t *testing.T) {
	for name, rung := range map[string]runtime.Rung{"root": runtime.RungRoot, "userns": runtime.RungUserNS, "process": runtime.RungProcess} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, rung)
			if err := n.Close(); err != nil {
				t.Fatal(err)
			}
			agent := startAgent(t, n.dir, rung)
			if _, err := New(Config{Dir: n.dir, Log: logger(t)}); err == nil || !strings.Contains(err.Error(), "another agent") {
				t.Errorf("a second agent in the same folder: %v", err)
			}
			if err := agent.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			agent.Wait()
			n.Driver = openNode(t, n.dir, rung).Driver
			n.wait("kept", runtime.Running)
			first := n.attach("kept", "")
			first.typeLine("A=4; B=2; echo $A$B")
			first.waitFor("42")
			first.close()
			if err := n.Close(); err != nil {
				t.Fatal(err)
			}

			n.Driver = openNode(t, n.dir, rung).Driver
			second := n.attach("kept", "")
			second.waitFor("42") // of the past
			second.typeLine("echo again $A$B")
			second.waitFor("again 42\r\n")
			n.start(runtime.Spec{Instance: "kept"}) // known: nothing happens
			changes := n.Watch(t.Context())
			if err := n.Stop(t.Context(), "kept", time.Minute); err != nil {
				t.Fatal(err)
			}
			select {
			case id := <-changes:
				if id != "kept" {
					t.Errorf("a change of %q", id)
				}
			case <-time.After(patience30):
				t.Error("an adopted instance's end is not reported")
			}
		})
	}
}

func TestRemoveErases(t *testing.T) {
	onEachRung(t, func(t *testing.T, n *node) {
		n.output("a", "mkdir -p deep/er; echo secret >deep/er/file; chmod 0 deep/er deep")
		n.start(runtime.Spec{Instance: "b", Command: []string{"sleep", "1000"}})
		for _, id := range []string{"a", "b"} {
			if err := n.Remove(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(n.instanceDir(id)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: %v", id, err)
			}
		}
		if list, err := n.List(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("%v %v", list, err)
		}
		if left, _ := os.ReadDir(filepath.Join(n.dir, "trash")); len(left) > 0 {
			t.Errorf("trash: %v", left)
		}
	})
}

func TestDiskOutlivesARun(t *testing.T) {
	n := onBest(t)
	n.output("a", "echo kept >file")
	if got := n.output("a", "cat file", func(s *runtime.Spec) { s.Run = 2 }); got != "kept\n" {
		t.Errorf("%q", got)
	}
}
