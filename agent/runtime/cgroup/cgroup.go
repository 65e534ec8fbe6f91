// Package cgroup holds a process tree to its share of CPU, memory and processes,
// with version 1 or version 2 of the kernel's control groups, whichever the host
// offers to this process. Where it offers none, groups come out empty and every
// limit reads as not held: nothing here is an error for the caller.
package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits of one group; 0 means none.
type Limits struct {
	MilliCPU  int64
	MemoryMiB int64
	Pids      int64
}

// Controller is a kind of limit.
type Controller string

const (
	CPU    Controller = "cpu"
	Memory Controller = "memory"
	Pids   Controller = "pids"
)

// cpuacct is version 1's separate accounting of CPU time.
const cpuacct Controller = "cpuacct"

// leafName is the group that this program's own processes move to under version 2.
const leafName = "berth-node"

// Host is where groups can be made.
type Host struct {
	v1 map[Controller]string // folder under which to make groups, per controller
	v2 string                // the same for all controllers of version 2; empty if it has none of ours
}

// Detect reads where this process's own groups are: new ones go below them, as a
// service manager expects, not at the top.
func Detect() (Host, error) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return Host{}, err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return Host{}, err
	}
	return detect(string(own), string(mounts)), nil
}

func detect(own, mounts string) Host {
	h := Host{v1: map[Controller]string{}}
	ownPath := map[string]string{} // controller, "" for version 2
	for line := range strings.Lines(own) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) == 3 {
			for _, c := range strings.Split(f[1], ",") {
				ownPath[c] = f[2]
			}
		}
	}
	for line := range strings.Lines(mounts) {
		left, right, ok := strings.Cut(strings.TrimSpace(line), " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !ok || len(l) < 5 || len(r) < 3 {
			continue
		}
		at := func(c string) string {
			// Field 4 is the part of the hierarchy that is mounted here.
			rel, err := filepath.Rel(l[3], ownPath[c])
			if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
				rel = "."
			}
			return filepath.Join(l[4], rel)
		}
		switch r[0] {
		case "cgroup":
			for _, c := range []Controller{CPU, Memory, Pids, cpuacct} {
				if _, has := ownPath[string(c)]; has && slices.Contains(strings.Split(r[2], ","), string(c)) {
					h.v1[c] = at(string(c))
				}
			}
		case "cgroup2":
			// The node's processes may have been moved into this leaf (moveAside).
			h.v2 = strings.TrimSuffix(at(""), "/"+leafName)
		}
	}
	return h
}

// Group is the groups of one tree, one folder per hierarchy.
type Group struct {
	Dirs []string // to be removed with Remove, also by another process (Open)
	held map[Controller]bool
	dir  map[Controller]string
	v2   bool
}

// Open returns a group for Remove from the Dirs of an earlier one.
func Open(dirs []string) *Group { return &Group{Dirs: dirs} }

// Create makes a group of that name and sets its limits as far as the host lets
// it; Holds tells how far. name is one path element.
func (h Host) Create(name string, l Limits) *Group {
	g := &Group{held: map[Controller]bool{}, dir: map[Controller]string{}}
	for _, c := range []Controller{CPU, Memory, Pids, cpuacct} {
		if base, ok := h.v1[c]; ok {
			g.makeV1(c, filepath.Join(base, "berth", name), l)
		}
	}
	if h.v2 != "" {
		g.makeV2(h.v2, name, l)
	}
	return g
}

// Holds reports whether the kernel holds that limit for the whole tree.
func (g *Group) Holds(c Controller) bool { return g.held[c] }

// Add moves a process into the group; what it starts from then on is in it too.
func (g *Group) Add(pid int) error {
	var errs []error
	for _, d := range g.Dirs {
		if err := write(d, "cgroup.procs", strconv.Itoa(pid)); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// CPUTime is what the group's processes used, dead ones included; ok is false if
// the host does not count it.
func (g *Group) CPUTime() (used time.Duration, ok bool) {
	if d, has := g.dir[cpuacct]; has {
		n, err := readNumber(d, "cpuacct.usage")
		return time.Duration(n), err == nil
	}
	if d, has := g.dir[CPU]; has && g.v2 {
		n, err := readKey(d, "cpu.stat", "usage_usec")
		return time.Duration(n) * time.Microsecond, err == nil
	}
	return 0, false
}

// OutOfMemory is how many of the group's processes the kernel killed at its limit.
func (g *Group) OutOfMemory() int64 {
	d, has := g.dir[Memory]
	if !has {
		return 0
	}
	file := "memory.oom_control"
	if g.v2 {
		file = "memory.events"
	}
	n, _ := readKey(d, file, "oom_kill")
	return n
}

// Remove deletes the group. Its processes must be gone; the kernel lets go of the
// last one a moment after its parent saw it end.
func (g *Group) Remove() error {
	var errs []error
	for _, d := range g.Dirs {
		var err error
		for range 50 {
			if err = os.Remove(d); err == nil || errors.Is(err, fs.ErrNotExist) {
				err = nil
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		errs = append(errs, err)
		os.Remove(filepath.Dir(d)) // "berth", if this was the last
	}
	return errors.Join(errs...)
}

func write(dir, file, value string) error {
	if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0o644); err != nil {
		return fmt.Errorf("control group: %w", err)
	}
	return nil
}

func readNumber(dir, file string) (int64, error) {
	b, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
}

func readKey(dir, file, key string) (int64, error) {
	f, err := os.Open(filepath.Join(dir, file))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if v, ok := strings.CutPrefix(s.Text(), key+" "); ok {
			return strconv.ParseInt(v, 10, 64)
		}
	}
	return 0, fmt.Errorf("%s/%s: no %s", dir, file, key)
}
