package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"berth/gpu"
)

// boot starts the agent on a host that has just started: the kernel's boot id is
// another, and nothing of before runs.
func (p *berth) boot(id int) {
	p.t.Helper()
	p.agent = onAnotherHost(p.t, filepath.Join(p.dir, "boot_id"), id, binary(p.t), "agent", "--data", filepath.Join(p.dir, "agent"), "--simulate", "a100-80gb:1")
}

// onAnotherHost runs a command that sees another boot id of the kernel, kept in file.
func onAnotherHost(t testing.TB, file string, id int, command ...string) *process {
	t.Helper()
	if err := os.WriteFile(file, fmt.Appendf(nil, "00000000-0000-4000-8000-%012d\n", id), 0o444); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-m", "sh", "-ec", `mount --bind "$0" /proc/sys/kernel/random/boot_id; exec "$@"`, file}, command...)
	return startCommand(t, nil, "agent", exec.Command("unshare", args...))
}

// cutPower ends everything on the node at once.
func (p *berth) cutPower() {
	p.t.Helper()
	p.agent.kill()
	for _, pid := range shims(p.t, p.dir) {
		n, err := strconv.Atoi(pid)
		if err != nil {
			p.t.Fatal(err)
		}
		_ = syscall.Kill(n, syscall.SIGKILL)
	}
	until(p.t, "all of the node to be dead", func() bool { return len(shims(p.t, p.dir)) == 0 })
}

// uuids are what the simulated card calls its slices, by place.
func (p *berth) uuids() map[string]string {
	p.t.Helper()
	raw, err := os.ReadFile(filepath.Join(p.dir, "agent", "simulator.json"))
	if err != nil {
		p.t.Fatal(err)
	}
	var kept struct {
		Cards []struct {
			Slices []struct {
				UUID      string
				Placement gpu.Placement
			}
		}
	}
	if err := json.Unmarshal(raw, &kept); err != nil {
		p.t.Fatal(err)
	}
	out := map[string]string{}
	for _, c := range kept.Cards {
		for _, s := range c.Slices {
			out[s.Placement.String()] = s.UUID
		}
	}
	return out
}

// A host restarts with three leases on one card: the slices come back under new
// UUIDs in the same places, the instances return as promised, and nobody can rent
// their places in between.
func TestNodeRestartsUnderThreeLeases(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: the restart is a mount over the kernel's boot id")
	}
	if out, err := exec.Command("unshare", "-m", "true").CombinedOutput(); err != nil {
		t.Skipf("needs a mount namespace: %v %s", err, out)
	}
	t.Parallel()
	p := apart(t)
	p.cutPower()
	p.boot(1)
	p.untilOnline()
	ada := p.signUp("ada@example.org")
	ada.topUp(25_000_000, "4242424242424242")
	var all []instance
	for _, sku := range []string{"a100-80gb.3g.40gb", "a100-80gb.2g.20gb", "a100-80gb.1g.10gb"} {
		all = append(all, ada.launch(sku))
	}
	until(t, "a second to be charged", func() bool { return ada.get(all[2].ID).Seconds > 0 })
	before := p.uuids()
	p.cutPower()
	if status, text := ada.call(http.MethodPost, "/api/v1/instances", map[string]any{"sku": "a100-80gb.3g.40gb", "disk_gib": 1}, nil); status != http.StatusConflict {
		t.Errorf("a place was sold twice: %d %s", status, text)
	}
	p.boot(2)
	for _, in := range all {
		until(t, in.Name+" to be back", func() bool {
			_, history := ada.call(http.MethodGet, "/api/v1/instances/"+in.ID+"/events", nil, nil)
			return strings.Contains(history, "node_rebooted") && ada.get(in.ID).State == "running"
		})
		if o := ada.get(in.ID); len(o.Slices) != 1 || o.Slices[0] != in.Slices[0] {
			t.Errorf("%s holds %v, held %v", in.Name, o.Slices, in.Slices)
		}
	}
	after := p.uuids()
	for place, uuid := range before {
		if now, ok := after[place]; !ok || now == uuid {
			t.Errorf("%s is %q now, was %q", place, now, uuid)
		}
	}
	if len(before) != 3 || len(after) != 3 {
		t.Errorf("%v, then %v", before, after)
	}
}
