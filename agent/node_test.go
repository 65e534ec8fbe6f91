package agent

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"berth/agent/device"
	"berth/agent/device/simulator"
	"berth/agent/runtime/sandbox"
	"berth/gpu"
	"berth/wire"
)

// TestMain makes the test binary its own shim and, for tests that kill it, its
// own agent.
func TestMain(m *testing.M) {
	if ran, code := sandbox.Reexec(os.Args); ran {
		os.Exit(code)
	}
	if dir := os.Getenv("BERTH_TEST_AGENT"); dir != "" {
		os.Exit(childMain(dir))
	}
	goleak.VerifyTestMain(m)
}

// parts are an agent's real device driver and runtime in one folder.
type parts struct {
	sim *simulator.Simulator
	box *sandbox.Driver
}

var cards = []gpu.ModelID{"a100-80gb", "a100-80gb", "rtx4090"}

func openParts(dir string, log *slog.Logger) (parts, error) {
	sim, err := simulator.New(filepath.Join(dir, "simulator"), cards, 11, log)
	if err != nil {
		return parts{}, err
	}
	box, err := sandbox.New(sandbox.Config{Dir: filepath.Join(dir, "sandbox"), AllowUnisolated: true, Log: log})
	return parts{sim, box}, err
}

func (p parts) config(dir string, log *slog.Logger) Config {
	return Config{Dir: dir, Version: "test", Runtime: p.box, Devices: p.sim, StopGrace: time.Second, Log: log}
}

// childMain is an agent in a process of its own, to be killed.
func childMain(dir string) int {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	parts, err := openParts(dir, log)
	if err == nil {
		var a *Agent
		if a, err = New(parts.config(dir, log)); err == nil {
			err = a.Run(context.Background())
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// node is an agent's folder and the agent in it, if one runs.
type node struct {
	t      *testing.T
	dir    string
	portal *portal
	parts
	wrap func(*simulator.Simulator) device.Driver // nil: as it is
	end  func()                                   // of the running agent
}

// newNode joins a node to a portal of its own. Its instances end with the test.
func newNode(t *testing.T) *node {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // sandboxes of other users pass through it
		t.Fatal(err)
	}
	n := &node{t: t, dir: dir, portal: newPortal(t)}
	if _, err := Join(t.Context(), n.portal.server.URL, "once", "rack-1", dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.clean)
	return n
}

// begin starts the agent in this process.
func (n *node) begin() {
	n.t.Helper()
	log := slog.New(slog.NewTextHandler(n.t.Output(), nil))
	var err error
	if n.parts, err = openParts(n.dir, log); err != nil {
		n.t.Fatal(err)
	}
	if info := n.box.Probe(n.t.Context()); !info.Usable() {
		n.box.Close()
		n.t.Skipf("this machine runs no sandbox: %s", info.Summary())
	}
	config := n.config(n.dir, log)
	if n.wrap != nil {
		config.Devices = n.wrap(n.sim)
	}
	a, err := New(config)
	if err != nil {
		n.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	n.end = func() {
		cancel()
		if err := <-done; err != nil {
			n.t.Errorf("agent: %v", err)
		}
		n.box.Close()
		n.end = nil
	}
}

// beginChild starts the agent in a process of its own.
func (n *node) beginChild() *exec.Cmd {
	n.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "BERTH_TEST_AGENT="+n.dir)
	cmd.Stderr = n.t.Output()
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.end = func() {
		cmd.Process.Signal(syscall.SIGKILL)
		cmd.Wait()
		n.end = nil
	}
	return cmd
}

func (n *node) clean() {
	if n.end != nil {
		n.end()
	}
	ctx := context.Background()
	box, err := sandbox.New(sandbox.Config{Dir: filepath.Join(n.dir, "sandbox"), AllowUnisolated: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		n.t.Errorf("open the sandbox to clean up: %v", err)
		return
	}
	defer box.Close()
	left, err := box.List(ctx)
	if err != nil {
		n.t.Error(err)
	}
	for _, o := range left {
		if err := box.Remove(ctx, o.Instance); err != nil {
			n.t.Error(err)
		}
	}
}

// card is the UUID of the i-th card.
func (n *node) card(i int) string {
	n.t.Helper()
	s := n.portal.state()
	if len(s.Devices) <= i {
		n.t.Fatalf("the node reports %d devices", len(s.Devices))
	}
	return s.Devices[i].UUID
}

// slice names a place on a card.
func slice(t *testing.T, card string, profile string, start int) wire.Slice {
	t.Helper()
	m, err := gpu.Lookup("a100-80gb")
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.Profile(profile)
	if err != nil {
		t.Fatal(err)
	}
	return wire.Slice{DeviceUUID: card, Placement: p.At(start), MemoryMiB: p.MemoryMiB}
}

// want is a desired entry of the first run.
func want(id string, w wire.Want, slices ...wire.Slice) wire.DesiredInstance {
	return wire.DesiredInstance{ID: id, Run: 1, Want: w, Slices: slices, PaidSeconds: 3600,
		Spec: wire.Spec{Name: id, Image: HostSystem, DiskGiB: 1, MilliCPU: 1000, MemoryMiB: 512}}
}

func desired(generation int64, entries ...wire.DesiredInstance) wire.Desired {
	return wire.Desired{Generation: generation, Instances: entries}
}

// placements lists what is on a card now.
func placements(s wire.State, card string) []string {
	var out []string
	for _, d := range s.Devices {
		for _, p := range d.Slices {
			if d.UUID == card {
				out = append(out, p.String())
			}
		}
	}
	return out
}

func phasesOf(events []wire.Event, id string, run int) []wire.Phase {
	var out []wire.Phase
	for _, ev := range events {
		if ev.Instance == id && ev.Run == run {
			out = append(out, ev.Phase)
		}
	}
	return out
}

func wantPhases(t *testing.T, events []wire.Event, id string, run int, want ...wire.Phase) {
	t.Helper()
	if got := phasesOf(events, id, run); !slices.Equal(got, want) {
		t.Errorf("run %d of %s went through %v, want %v", run, id, got, want)
	}
}

func is(id string, phase wire.Phase) func(wire.Event) bool {
	return func(ev wire.Event) bool { return ev.Instance == id && ev.Phase == phase }
}
