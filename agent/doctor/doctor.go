// Package doctor looks whether a host can be a node, and says what to do where it
// cannot. It changes nothing.
package doctor

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"berth/agent/runtime"
)

// State is how a check came out.
type State string

// The three states. Only a Problem keeps a host from being a node.
const (
	OK      State = "ok"
	Warning State = "warning"
	Problem State = "problem"
)

// Check is one thing that was looked at.
type Check struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	Seen  string `json:"seen"`           // what was found
	Next  string `json:"next,omitempty"` // what to do about it
}

// Config says what the node would be like.
type Config struct {
	Dir       string // the agent's; need not exist yet
	Portal    string // its address; empty: the portal is not looked at
	Simulated bool   // its cards are
	Drives    bool   // this program can drive real ones
	Metrics   string // where Prometheus would read; empty: nowhere
	Root      string // of the file system; empty: /
	Now       func() time.Time
}

// Run makes all checks, in the order in which a person would mend them. rt is what
// the runtime's probe found by really starting something.
func Run(ctx context.Context, c Config, rt runtime.Info) []Check {
	if c.Now == nil {
		c.Now = time.Now
	}
	out := []Check{driver(c)}
	out = append(out, isolation(rt)...)
	out = append(out, disk(c), service(c))
	if c.Metrics != "" {
		out = append(out, port(c))
	}
	if c.Portal != "" {
		out = append(out, portal(ctx, c)...)
	}
	return out
}

// Healthy tells whether nothing is a Problem.
func Healthy(checks []Check) bool {
	for _, c := range checks {
		if c.State == Problem {
			return false
		}
	}
	return true
}

func driver(c Config) Check {
	k := Check{Name: "GPU driver"}
	if c.Simulated {
		k.State, k.Seen = OK, "simulated cards: no driver is needed"
		return k
	}
	version, err := os.ReadFile(filepath.Join(c.Root, "/proc/driver/nvidia/version"))
	if err != nil {
		k.State, k.Seen = Problem, "NVIDIA's kernel driver is not loaded"
		k.Next = "Install it (Debian: nvidia-driver, from non-free) and restart the host; or try Berth with --simulate a100-80gb:1."
		return k
	}
	if !c.Drives {
		k.State, k.Seen = Problem, "the driver is loaded, but this berth was built without NVML"
		k.Next = "Build it so (CGO_ENABLED=1 go build -tags nvml), and put it in place of this one."
		return k
	}
	line, _, _ := strings.Cut(string(version), "\n")
	nodes, _ := filepath.Glob(filepath.Join(c.Root, "/dev/nvidia[0-9]*"))
	if _, err := os.Stat(filepath.Join(c.Root, "/dev/nvidiactl")); err != nil || len(nodes) == 0 {
		k.State, k.Seen = Problem, strings.TrimSpace(line)+"; its device files are missing"
		k.Next = "Run nvidia-smi once as root, and enable nvidia-persistenced so that they are there after each start."
		return k
	}
	if _, err := os.Stat(filepath.Join(c.Root, "/dev/nvidia-uvm")); err != nil {
		k.State, k.Seen = Problem, "/dev/nvidia-uvm is missing, without which CUDA does not work"
		k.Next = "Run nvidia-modprobe -u -c=0 as root, and load nvidia_uvm at each start: echo nvidia_uvm > /etc/modules-load.d/nvidia-uvm.conf"
		return k
	}
	k.State, k.Seen = OK, fmt.Sprintf("%s; %d card(s)", strings.TrimSpace(line), len(nodes))
	return k
}

func isolation(rt runtime.Info) []Check {
	k := Check{Name: "isolation", State: OK, Seen: string(rt.Rung)}
	var tried []string
	for _, a := range rt.Tried {
		if a.Problem != "" {
			tried = append(tried, fmt.Sprintf("%s: %s", a.Rung, a.Problem))
		}
	}
	switch {
	case !rt.Usable():
		k.State, k.Seen = Problem, "instances cannot be started: "+strings.Join(tried, "; ")
		k.Next = "Run the agent as root, or allow user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone)."
		return []Check{k}
	case !rt.Isolated:
		k.State, k.Seen = Warning, "plain processes, no isolation ("+strings.Join(tried, "; ")+")"
		k.Next = "Run the agent as root. Until then let only people you trust in."
	case len(tried) > 0:
		k.State, k.Seen = Warning, string(rt.Rung)+" ("+strings.Join(tried, "; ")+")"
		k.Next = "It works; as root instances also get user ids of their own."
	}
	l := Check{Name: "limits", State: OK, Seen: fmt.Sprintf("cpu %s, memory %s, processes %s, disk %s", rt.Limits.CPU, rt.Limits.Memory, rt.Limits.Pids, rt.Limits.Disk)}
	if rt.Limits.CPU != runtime.Enforced || rt.Limits.Memory != runtime.Enforced {
		l.State, l.Next = Warning, "Run the agent as root under systemd (Delegate=yes), or as root on a host with control groups, so that one instance cannot take what others rent."
	}
	return []Check{k, l}
}

const gib = 1 << 30

func disk(c Config) Check {
	k := Check{Name: "disk", State: OK}
	dir := c.Dir
	for {
		if _, err := os.Stat(dir); err == nil || dir == "/" || dir == "." {
			break
		}
		dir = filepath.Dir(dir)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return Check{Name: "disk", State: Problem, Seen: fmt.Sprintf("%s cannot be looked at: %v", dir, err), Next: "Choose another directory with --data."}
	}
	free := int64(st.Bavail) * st.Bsize
	k.Seen = fmt.Sprintf("%d GiB free where %s is", free/gib, c.Dir)
	switch {
	case free < 5*gib:
		k.State, k.Next = Problem, "Make room, or choose a larger disk with --data: instances have their files there."
	case free < 50*gib:
		k.State, k.Next = Warning, "That is little for instances' disks; choose a larger one with --data."
	}
	return k
}

func service(c Config) Check {
	if _, err := os.Stat(filepath.Join(c.Root, "/run/systemd/system")); err != nil {
		return Check{Name: "service manager", State: Warning, Seen: "systemd does not run here", Next: "Have something start `berth agent --data DIR` after each start of the host, and again when it ends."}
	}
	return Check{Name: "service manager", State: OK, Seen: "systemd"}
}

func port(c Config) Check {
	k := Check{Name: "metrics port", State: OK, Seen: c.Metrics + " is free"}
	l, err := net.Listen("tcp", c.Metrics)
	if err != nil {
		return Check{Name: k.Name, State: Problem, Seen: fmt.Sprintf("%s cannot be listened on: %v", c.Metrics, err), Next: "Choose another with --metrics-listen; 9400 is also dcgm-exporter's."}
	}
	_ = l.Close()
	return k
}

// Differences of clocks. Nothing is billed by a node's clock; certificates and logs
// suffer.
const (
	clockOff  = 2 * time.Second
	clockLost = time.Minute
)

func portal(ctx context.Context, c Config) []Check {
	k := Check{Name: "portal", State: OK}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(c.Portal, "/")+"/healthz", nil)
	if err != nil {
		return []Check{{Name: k.Name, State: Problem, Seen: fmt.Sprintf("%q is no address", c.Portal), Next: "Write it like https://berth.example."}}
	}
	began := c.Now()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		k.State, k.Seen = Problem, "not reached: "+unwrapped(err)
		k.Next = "Check the address, name resolution and the firewall: the node dials out, nothing has to come in."
		var cert x509.CertificateInvalidError
		if errors.As(err, &cert) && cert.Reason == x509.Expired { // before its time, too
			k.Next = "Look at this host's clock (date; apt install chrony); if it is right, the portal's certificate has to be renewed."
		}
		return []Check{k}
	}
	_ = res.Body.Close()
	took := c.Now().Sub(began)
	if k.Seen = fmt.Sprintf("answers in %d ms", took.Milliseconds()); res.StatusCode != http.StatusOK {
		k.State, k.Seen, k.Next = Problem, "answers "+res.Status, "Is this a Berth portal? Look at its log."
	}
	t := Check{Name: "clock", State: OK}
	theirs, err := http.ParseTime(res.Header.Get("Date"))
	if err != nil {
		return []Check{k}
	}
	off := began.Add(took / 2).Sub(theirs.Add(500 * time.Millisecond)) // the header has whole seconds
	t.Seen = fmt.Sprintf("%+.0f s from the portal's", off.Seconds())
	if off.Abs() > clockOff {
		t.State, t.Next = Warning, "Have the clock set: apt install chrony."
	}
	if off.Abs() > clockLost {
		t.State = Problem
	}
	return []Check{k, t}
}

// unwrapped is what went wrong, without the address in front.
func unwrapped(err error) string {
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err.Error()
}
