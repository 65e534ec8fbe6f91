package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/agent/runtime"
)

func TestStartupScript(t *testing.T) {
	onEachRung(t, func(t *testing.T, n *node) {
		n.start(runtime.Spec{Instance: "good", StartupScript: "echo first; touch made", Command: []string{"sh", "-c", "ls; echo second"}})
		if n.wait("good", runtime.Exited); n.log("good") != "first\nmade\nsecond\n" {
			t.Errorf("log %q", n.log("good"))
		}
		n.start(runtime.Spec{Instance: "bang", StartupScript: "#!/usr/bin/env -S sh -e\nfalse\n"})
		if o := n.wait("bang", runtime.Exited); o.Cause != runtime.CauseStartup || o.Reason != "startup script: exit 1" {
			t.Errorf("%+v", o)
		}
		n.start(runtime.Spec{Instance: "bad", StartupScript: "echo no >&2; exit 9", Command: []string{"touch", "never"}})
		o := n.wait("bad", runtime.Exited)
		if o.Cause != runtime.CauseStartup || o.Reason != "startup script: exit 9" || o.ReadyAt.IsZero() || o.ExitCode == nil || *o.ExitCode != 9 {
			t.Errorf("%+v", o)
		}
		if n.log("bad") != "no\n" {
			t.Errorf("log %q", n.log("bad"))
		}
		if _, err := os.Stat(filepath.Join(n.instanceDir("bad"), "disk", "never")); err == nil {
			t.Error("the command ran all the same")
		}
	})
}

// A start-up script is the renter's own use: it counts, a terminal opens beside
// it, and it may go on for as long as is paid.
func TestStartupScriptIsPaidTime(t *testing.T) {
	n := onBest(t)
	n.start(runtime.Spec{Instance: "a", StartupScript: "echo on; sleep 1000", Command: []string{"sleep", "1000"}})
	eventually(t, "the script runs", func() bool { return n.log("a") == "on\n" })
	eventually(t, "a second is counted", func() bool { o := n.observe("a"); return o.Phase == runtime.Running && o.Seconds >= 1 })
	term, err := n.Terminal(t.Context(), "a", runtime.TerminalRequest{})
	if err != nil {
		t.Fatalf("a terminal beside the script: %v", err)
	}
	term.Close()
	if err := n.Stop(t.Context(), "a", time.Minute); err != nil {
		t.Fatal(err)
	}
	if o := n.observe("a"); o.Cause != runtime.CauseStopped || o.Seconds < 1 {
		t.Errorf("%+v", o)
	}
	n.start(runtime.Spec{Instance: "b", StartupScript: "sleep 1000", PaidSeconds: 2})
	if o := n.wait("b", runtime.Exited); o.Cause != runtime.CausePaid || o.Seconds != 2 {
		t.Errorf("%+v", o)
	}
}

// Many files are held to the disk's size as one is. What is over at a start is not
// ended for that, so that its renter can make room; it may not grow.
func TestDiskFull(t *testing.T) {
	n := onBest(t)
	full := runtime.Spec{Instance: "a", DiskGiB: 1, Command: []string{"sh", "-c", "fallocate -l 700M one; fallocate -l 700M two; sleep 1000"}}
	n.start(full)
	o := n.wait("a", runtime.Exited)
	if o.Cause != runtime.CauseDisk || !strings.Contains(o.Reason, "1 GiB") || o.Seconds < 1 {
		t.Fatalf("%+v", o)
	}
	again := runtime.Spec{Instance: "a", Run: 2, DiskGiB: 1, Command: []string{"sh", "-c", "sleep 8; echo still here; fallocate -l 700M three; sleep 1000"}}
	n.start(again)
	if o := n.wait("a", runtime.Exited); o.Cause != runtime.CauseDisk || n.log("a") != "still here\n" {
		t.Errorf("%+v, said %q", o, n.log("a"))
	}
}

func TestDevices(t *testing.T) {
	onEachRung(t, func(t *testing.T, n *node) {
		gone := filepath.Join(t.TempDir(), "nvidia1")
		there := filepath.Join(t.TempDir(), "nvidia0")
		if err := os.WriteFile(there, []byte("stand-in"), 0o644); err != nil {
			t.Fatal(err)
		}
		two := []runtime.DeviceGrant{
			{UUID: "MIG-1", ParentUUID: "GPU-1", Name: "NVIDIA A100 80GB PCIe", Profile: "1g.10gb", MemoryMiB: 9728},
			{UUID: "GPU-2", MemoryMiB: 81920, Node: there},
		}
		got := n.output("a", "echo $NVIDIA_VISIBLE_DEVICES; berth-smi; berth-load --help >/dev/null; echo $?", func(s *runtime.Spec) { s.Devices = two })
		for _, want := range []string{"MIG-1,GPU-2\n", "Simulated devices", "1g.10gb", "9728 MiB", "\n0\n"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is missing in:\n%s", want, got)
			}
		}
		if o := n.observe("a"); !slices.Equal(o.VisibleDevices, []string{"MIG-1", "GPU-2"}) {
			t.Errorf("visible %v", o.VisibleDevices)
		}
		two[1].Nodes = []string{deviceNode(t)}
		got = n.output("c", "berth-smi; echo $CUDA_VISIBLE_DEVICES; cat "+two[1].Nodes[0], func(s *runtime.Spec) { s.Devices = two })
		if strings.Contains(got, "Simulated") || !strings.HasSuffix(got, "MIG-1,GPU-2\na node") {
			t.Errorf("with a device node:\n%s", got)
		}
		two[1].Node = gone
		n.start(runtime.Spec{Instance: "b", Devices: two, Command: []string{"echo", "ran"}, StartupScript: "echo ran"})
		o := n.wait("b", runtime.Exited)
		if o.Cause != runtime.CauseDevices || o.Reason != "1 of 2 devices visible" || o.Seconds != 0 || !slices.Equal(o.VisibleDevices, []string{"MIG-1"}) {
			t.Errorf("%+v", o)
		}
		if n.log("b") != "" {
			t.Errorf("something ran: %q", n.log("b"))
		}
	})
}

// deviceNode is a file below /dev, like the nodes of the kernel's driver.
func deviceNode(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev", "berth-test-")
	if err != nil {
		t.Skip("the rest needs to make a file below /dev: ", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	node := filepath.Join(dir, "nvidia-cap1")
	if err := os.WriteFile(node, []byte("a node"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return node
}

// B17: what says which GPUs a process sees is the node's to set, whatever was asked.
func TestEnvironment(t *testing.T) {
	onEachRung(t, func(t *testing.T, n *node) {
		got := n.output("a", "env; whoami 2>/dev/null; hostname; pwd", func(s *runtime.Spec) {
			s.Name = "My First: run!"
			s.Env = map[string]string{
				"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "all", "CUDA_VISIBLE_DEVICES": "0",
				"BERTH_INSTANCE": "other", "TOKEN": "multi\nline", "LANG": "de_DE.UTF-8",
			}
		})
		for _, want := range []string{"NVIDIA_VISIBLE_DEVICES=void\n", "BERTH_INSTANCE=a\n", "TOKEN=multi\nline\n", "LANG=de_DE.UTF-8\n", "USER=renter\n"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is missing in:\n%s", want, got)
			}
		}
		for _, bad := range []string{"NVIDIA_DRIVER", "CUDA_", "=all", "=other"} {
			if strings.Contains(got, bad) {
				t.Errorf("%q in:\n%s", bad, got)
			}
		}
		if n.info.Isolated && !strings.HasSuffix(got, "renter\nmy-first--run\n/workspace\n") {
			t.Errorf("who and where:\n%s", got)
		}
	})
}
