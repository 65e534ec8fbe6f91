package sandbox

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"berth/agent/runtime"
)

func TestIsolation(t *testing.T) {
	for name, rung := range map[string]runtime.Rung{"root": runtime.RungRoot, "userns": runtime.RungUserNS} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, rung)
			n.start(runtime.Spec{Instance: "other", Command: []string{"sleep", "12345"}})
			n.wait("other", runtime.Running)
			for what, script := range map[string]string{
				"shadow":             "cat /etc/shadow",
				"passwords by link":  "cat /proc/1/root/etc/shadow",
				"the agent's folder": "ls " + n.dir,
				"another's disk":     "ls " + n.instanceDir("other"),
				"root's home":        "ls /root/* /root/.[a-z]*",
				"the host's home":    "ls /home | grep -v '^renter$'",
				"the host's /run":    "ls /run | grep -v '^berth$'",
				"writing to /usr":    "touch /usr/x || touch /usr/local/bin/x",
				"writing to /":       "touch /x",
				"writing to /etc":    "touch /etc/x",
				"writing to a mount": "touch /.berth/bin/berth",
				"other processes":    "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep 12345 | grep -v grep | grep -v tr",
				"a mount":            "mount -t tmpfs none /tmp",
				"a device":           "mknod /tmp/x b 8 0",
				"init's descriptors": "ls /proc/1/fd",
				"init's memory":      "cat /proc/1/environ",
				"the first init":     "kill -9 1; sleep 0.2; false",
				"sysctl":             "echo 1 >/proc/sys/kernel/domainname",
				"network":            "grep -v -e lo: -e face -e '|' /proc/net/dev",
				"kernel memory":      "test -s /proc/kcore && head -c1 /proc/kcore | grep -q .",
			} {
				id := strings.ToLower(strings.Map(func(r rune) rune {
					if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
						return r
					}
					return '-'
				}, what)) + "-x"
				n.start(runtime.Spec{Instance: id, Command: []string{"sh", "-c", "(" + script + ") && echo LEAK; exit 0"}})
				n.wait(id, runtime.Exited)
				if got := n.log(id); strings.Contains(got, "LEAK") {
					t.Errorf("%s: %s", what, got)
				}
			}
			got := n.output("caps", "grep -e ^Cap -e NoNewPrivs -e ^Uid /proc/self/status; echo $$; ls /proc | grep -c '^[0-9]'; tty; cat /etc/passwd; ls -la /dev /; which berth-load")
			for _, want := range []string{"CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "CapPrm:\t0000000000000000", "NoNewPrivs:\t1", "/.berth/bin/berth-load"} {
				if !strings.Contains(got, want) {
					t.Errorf("%q is missing in:\n%s", want, got)
				}
			}
		})
	}
}

// A renter must be nobody on the host, whatever he is shown inside: host id 0
// underneath would read root's files.
func TestHostUserIsUnprivileged(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root gives instances a user id of their own")
	}
	onEachRung(t, func(t *testing.T, n *node) {
		n.start(runtime.Spec{Instance: "a", Command: []string{"sh", "-c", "touch mine; sleep 1000"}})
		n.wait("a", runtime.Running)
		file := filepath.Join(n.instanceDir("a"), "disk", "mine")
		eventually(t, "the file is there", func() bool { _, err := os.Stat(file); return err == nil })
		st, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if uid := int(st.Sys().(*syscall.Stat_t).Uid); uid != n.uidBase {
			t.Errorf("files belong to %d on the host, not %d", uid, n.uidBase)
		}
	})
}

func TestTerminal(t *testing.T) {
	onEachRung(t, func(t *testing.T, n *node) {
		n.start(runtime.Spec{Instance: "a"})
		n.wait("a", runtime.Running)
		s := n.attach("a", "")
		s.typeLine("echo $((6*7)); stty size; tty; X=kept")
		s.waitFor("42\r\n")
		s.waitFor("30 100\r\n")
		s.waitFor("/dev/pts/")
		if err := s.term.Resize(70, 20); err != nil {
			t.Fatal(err)
		}
		s.typeLine("stty size")
		s.waitFor("20 70\r\n")
		twin := n.attach("a", "main") // the same shell, a second pair of eyes
		s.typeLine("echo both $X")
		s.waitFor("both kept\r\n")
		twin.waitFor("both kept\r\n")
		other := n.attach("a", "other")
		other.typeLine("echo [$X]")
		other.waitFor("[]\r\n")
		s.close()
		twin.typeLine("exit")
		<-twin.done
		again := n.attach("a", "main")
		again.typeLine("echo new=[$X]")
		again.waitFor("new=[]\r\n")
	})
}

// A terminal that nobody reads must not hold up the program on it for ever, nor
// other readers.
func TestTerminalWithAStuckReader(t *testing.T) {
	n := onBest(t)
	n.start(runtime.Spec{Instance: "a"})
	n.wait("a", runtime.Running)
	stuck, err := n.Terminal(t.Context(), "a", runtime.TerminalRequest{})
	if err != nil {
		t.Fatal(err)
	}
	defer stuck.Close()
	s := n.attach("a", "")
	s.typeLine("seq 1 400000 | tail -c 3000000; echo the-end $((6*7))")
	s.waitFor("the-end 42")
	rest, err := io.ReadAll(stuck)
	if err != nil || strings.Contains(string(rest), "the-end 42") {
		t.Errorf("the stuck reader was not cut off (%d bytes, %v)", len(rest), err)
	}
}

func TestLoadAndUsage(t *testing.T) {
	onEachRung(t, func(t *testing.T, n *node) {
		n.start(runtime.Spec{Instance: "a", Devices: []runtime.DeviceGrant{{UUID: "MIG-1", MemoryMiB: 9728}}})
		n.wait("a", runtime.Running)
		load := func() runtime.LoadTarget {
			u, err := n.Usage(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			return u.Load
		}
		if l := load(); l.Active {
			t.Errorf("load before anyone asked: %+v", l)
		}
		s := n.attach("a", "")
		s.typeLine("berth-load 80 --memory 4096")
		eventually(t, "the load is asked for", func() bool {
			return load() == runtime.LoadTarget{Active: true, UtilizationPercent: 80, MemoryMiB: 4096}
		})
		two := n.attach("a", "two")
		two.typeLine("berth-load --memory 100 & berth-load 50 & wait")
		eventually(t, "loads add up", func() bool {
			return load() == runtime.LoadTarget{Active: true, UtilizationPercent: 100, MemoryMiB: 4196}
		})
		s.term.Write([]byte{3}) // Ctrl-C
		eventually(t, "one ended", func() bool { return load() == runtime.LoadTarget{Active: true, UtilizationPercent: 50, MemoryMiB: 100} })
		s.typeLine("berth-load off")
		eventually(t, "all ended", func() bool { return !load().Active })
		s.typeLine("berth-load 101; echo rc=$?")
		s.waitFor("rc=2")
		s.typeLine("berth-load 30 & sleep 0.1; kill -9 %1")
		s.typeLine("timeout 1 sh -c 'while :; do :; done'; echo burnt $((6*7))")
		s.waitFor("burnt 42")
		eventually(t, "a killed wish is gone", func() bool { return !load().Active })
		u, err := n.Usage(t.Context(), "a")
		if err != nil || u.CPUSeconds < 0.2 || u.Processes != 2 || u.MemoryBytes <= 0 {
			t.Errorf("usage %+v %v", u, err)
		}
	})
}

func TestLogsFollow(t *testing.T) {
	n := onBest(t)
	n.start(runtime.Spec{Instance: "a", Command: []string{"sh", "-c", "echo one; while [ ! -e go ]; do sleep 0.05; done; echo two"}})
	n.wait("a", runtime.Running)
	eventually(t, "one", func() bool { return n.log("a") == "one\n" })
	r, err := n.Logs(t.Context(), "a", 1, 2, true)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := os.WriteFile(filepath.Join(n.instanceDir("a"), "disk", "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r) // ends with the run
	if err != nil || string(got) != "e\ntwo\n" {
		t.Errorf("%q %v", got, err)
	}
	if r, err := n.Logs(t.Context(), "a", 0, 3, true); err != nil {
		t.Error(err)
	} else if got, _ := io.ReadAll(r); string(got) != "wo\n" {
		t.Errorf("%q", got)
	}
}

func TestMemoryLimit(t *testing.T) {
	n := onBest(t)
	if l := n.Probe(t.Context()).Limits.Memory; l != runtime.Enforced {
		t.Skipf("memory limits are %s on this machine", l)
	}
	n.start(runtime.Spec{Instance: "a", MemoryMiB: 64, MilliCPU: 1000, Command: []string{"sh", "-c", "exec tail /dev/zero"}})
	o := n.wait("a", runtime.Exited)
	if o.Cause != runtime.CauseMemory || o.Reason != "out of memory: its limit is 64 MiB" {
		t.Errorf("%+v", o)
	}
}

func TestPidsLimit(t *testing.T) {
	n := onBest(t)
	if l := n.Probe(t.Context()).Limits.Pids; l != runtime.Enforced {
		t.Skipf("process limits are %s on this machine", l)
	}
	got := n.output("a", "cat /proc/self/cgroup; i=0; while [ $i -lt 20 ]; do sleep 1000 & i=$((i+1)); done; echo forked")
	if !strings.Contains(got, "pids:") || !strings.Contains(got, "/berth/") {
		t.Errorf("not in a group of its own:\n%s", got)
	}
}

func TestUnisolatedMustBeAllowed(t *testing.T) {
	d, err := New(Config{Dir: folder(t), Log: logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	d.rungs = []runtime.Rung{runtime.RungProcess}
	info := d.Probe(t.Context())
	if info.Usable() || len(info.Tried) != 1 || !strings.Contains(info.Summary(), "must be allowed") {
		t.Errorf("%+v", info)
	}
	if err := d.Start(t.Context(), runtime.Spec{Instance: "a", Run: 1}); err == nil {
		t.Error("it starts all the same")
	}
}

func TestMaskHidesFolders(t *testing.T) {
	if _, err := os.Stat("/usr/share"); err != nil {
		t.Skip("this machine has no /usr/share")
	}
	n := newNode(t, runtime.RungRoot)
	n.conf.Mask = []string{"/usr/share"}
	if got := n.output("a", "ls /usr | grep share; ls /usr/share; echo end"); got != "share\nend\n" {
		t.Errorf("%q", got)
	}
}

func TestSharedNet(t *testing.T) {
	n := newNode(t, runtime.RungRoot)
	host, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	show := "readlink /proc/self/ns/net"
	if got := n.output("own", show); got == host+"\n" {
		t.Error("it has the host's network unasked")
	}
	if got := n.output("shared", show, func(s *runtime.Spec) { s.SharedNet = true }); got != host+"\n" {
		t.Errorf("its network is %q, the host's %q", got, host)
	}
}

// The whole again as an ordinary user: the rungs without root.
func TestAsOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the other tests run as one already")
	}
	dir := folder(t)
	exe := filepath.Join(dir, "test")
	b, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(exe, b, 0o755); err != nil {
		t.Fatal(err)
	}
	tmp := filepath.Join(dir, "tmp")
	if err := os.Mkdir(tmp, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(tmp, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=TestStartsRunsAndEnds|TestTerminal$|TestKilledShim|TestRemoveErases|TestIsolation|TestStopEnds", "-test.v")
	cmd.Dir = tmp
	cmd.Env = []string{"TMPDIR=" + tmp, "HOME=" + tmp, "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}
