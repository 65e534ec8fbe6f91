package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"berth/agent/runtime"
	"berth/agent/runtime/cgroup"
	"berth/agent/runtime/jail"
	"berth/agent/runtime/shim"
)

const probeSubcommand = "sandbox-probe"

// probeTimeout bounds one rung's attempt.
const probeTimeout = 30 * time.Second

// Probe starts `true` on each rung, best first, until one works.
func (d *Driver) Probe(ctx context.Context) runtime.Info {
	d.probing.Lock()
	defer d.probing.Unlock()
	if d.info != nil {
		return *d.info
	}
	info := runtime.Info{Driver: "sandbox"}
	for _, rung := range d.rungs {
		found, err := d.try(ctx, rung)
		if err != nil {
			info.Tried = append(info.Tried, runtime.Attempt{Rung: rung, Problem: err.Error()})
			continue
		}
		info.Tried = append(info.Tried, runtime.Attempt{Rung: rung})
		info.Rung, info.Isolated, info.Limits = rung, rung != runtime.RungProcess, found.Limits
		break
	}
	if ctx.Err() == nil { // else the answer is about the caller's patience, not the host
		d.info = &info
	}
	return info
}

// try runs one rung in a process of its own: it needs a thread that stays, and
// becomes the parent of whatever is left over.
func (d *Driver) try(ctx context.Context, rung runtime.Rung) (found, error) {
	var f found
	switch {
	case rung == runtime.RungRoot && os.Getuid() != 0:
		return f, errors.New("needs root")
	case rung == runtime.RungProcess && !d.conf.AllowUnisolated:
		return f, errors.New("no isolation: must be allowed explicitly")
	}
	dir, err := os.MkdirTemp(filepath.Join(d.conf.Dir, "instances"), ".probe-")
	if err != nil {
		return f, err
	}
	defer os.RemoveAll(dir)
	uid := d.uidBase + uidsPerNode - 1 // the last one: never an instance's
	if err := layOut(dir, uid); err != nil {
		return f, err
	}
	spec := runtime.Spec{Instance: "probe", Run: 1, Command: []string{"true"}, Devices: []runtime.DeviceGrant{{UUID: "probe"}}, MilliCPU: 1000, MemoryMiB: 512}
	order := shim.Order{Spec: spec, Jail: d.jail(dir, uid, rung, spec), Group: d.groupName(filepath.Base(dir), 0)}
	in, err := json.Marshal(order)
	if err != nil {
		return f, err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, d.exe)
	cmd.Args = []string{"berth", probeSubcommand}
	cmd.Env = jail.ProcessEnv()
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return f, fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
	}
	if err := json.Unmarshal(stdout.Bytes(), &f); err != nil {
		return f, fmt.Errorf("answer of the probe: %w", err)
	}
	if f.Problem != "" {
		return f, errors.New(f.Problem)
	}
	return f, nil
}

// found is what the probing process answers.
type found struct {
	Problem string         `json:"problem,omitempty"`
	Limits  runtime.Limits `json:"limits"`
}

func probeMain(args []string) int {
	var o shim.Order
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		fmt.Fprintln(os.Stderr, "berth: this command is started by Berth itself")
		return 2
	}
	f, err := probeRung(o)
	if err != nil {
		f.Problem = err.Error()
	}
	if err := json.NewEncoder(os.Stdout).Encode(f); err != nil {
		return 1
	}
	return 0
}

func probeRung(o shim.Order) (f found, err error) {
	if err := jail.BecomeReaper(); err != nil {
		return f, err
	}
	host, err := cgroup.Detect()
	if err != nil {
		return f, err
	}
	group := host.Create(o.Group, cgroup.Limits{MilliCPU: o.Spec.MilliCPU, MemoryMiB: o.Spec.MemoryMiB, Pids: jail.MaxProcesses})
	defer group.Remove()
	f.Limits.Disk = runtime.Watched
	tree, err := jail.Launch(o.Jail.WithProcessLimits(o.Spec, group.Holds(cgroup.Memory), group.Holds(cgroup.Pids)))
	if err != nil {
		return f, err
	}
	defer tree.Close()
	placed := group.Add(tree.Init.Pid) == nil
	for c, l := range map[cgroup.Controller]*runtime.Enforcement{cgroup.CPU: &f.Limits.CPU, cgroup.Memory: &f.Limits.Memory, cgroup.Pids: &f.Limits.Pids} {
		*l = runtime.Advisory
		if placed && group.Holds(c) {
			*l = runtime.Enforced
		}
	}
	err = runTrue(tree.Control)
	if err != nil {
		tree.Kill()
	}
	return f, errors.Join(err, tree.Wait())
}

// runTrue takes a tree through its events until the command ends well.
func runTrue(ctl *jail.Control) error {
	for {
		m, err := ctl.Receive()
		if err != nil {
			return fmt.Errorf("the place ended before its command did: %w", err)
		}
		switch m.Kind {
		case jail.EvFault, jail.EvCommand:
			return errors.New(m.Text)
		case jail.EvProbed:
			if len(m.Visible) != 1 {
				return errors.New("a device that was shown is not visible inside")
			}
			if err := ctl.Send(jail.Message{Kind: jail.OpStart}); err != nil {
				return err
			}
		case jail.EvExit:
			if m.Code != 0 {
				return fmt.Errorf("`true` ended with %d", m.Code)
			}
			return nil
		}
	}
}
