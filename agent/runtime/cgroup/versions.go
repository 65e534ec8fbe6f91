package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// period is the window in which a CPU share is counted, in microseconds (the
// kernel's default).
const period = 100_000

func quota(milliCPU int64) int64 { return max(milliCPU*period/1000, 1000) } // the kernel takes 1 ms or more

// makeV1 makes the group of one controller. It is kept, for counting, even where
// the limit cannot be set.
func (g *Group) makeV1(c Controller, dir string, l Limits) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return
	}
	g.dir[c] = dir
	if !slices.Contains(g.Dirs, dir) {
		g.Dirs = append(g.Dirs, dir)
	}
	var err error
	switch c {
	case CPU:
		if l.MilliCPU > 0 {
			if err = write(dir, "cpu.cfs_period_us", strconv.Itoa(period)); err == nil {
				err = write(dir, "cpu.cfs_quota_us", strconv.FormatInt(quota(l.MilliCPU), 10))
			}
		}
	case Memory:
		if l.MemoryMiB > 0 {
			bytes := strconv.FormatInt(l.MemoryMiB<<20, 10)
			if err = write(dir, "memory.limit_in_bytes", bytes); err == nil {
				// Memory and swap together; absent where swap is not counted.
				if _, e := os.Stat(filepath.Join(dir, "memory.memsw.limit_in_bytes")); e == nil {
					err = write(dir, "memory.memsw.limit_in_bytes", bytes)
				}
			}
		}
	case Pids:
		if l.Pids > 0 {
			err = write(dir, "pids.max", strconv.FormatInt(l.Pids, 10))
		}
	}
	g.held[c] = err == nil
}

// makeV2 makes one group for all controllers that the hierarchy can pass on.
func (g *Group) makeV2(base, name string, l Limits) {
	offered, err := os.ReadFile(filepath.Join(base, "cgroup.controllers"))
	if err != nil {
		return
	}
	var ours []Controller
	for _, c := range []Controller{CPU, Memory, Pids} {
		if slices.Contains(strings.Fields(string(offered)), string(c)) && g.dir[c] == "" {
			ours = append(ours, c)
		}
	}
	if len(ours) == 0 {
		return
	}
	parent := filepath.Join(base, "berth")
	if !passOn(base, ours) {
		// A group with processes of its own passes nothing on (the root excepted):
		// they move into a leaf beside ours first.
		if moveAside(base, filepath.Join(base, leafName)) != nil || !passOn(base, ours) {
			return
		}
	}
	dir := filepath.Join(parent, name)
	if os.MkdirAll(parent, 0o755) != nil || !passOn(parent, ours) || os.MkdirAll(dir, 0o755) != nil {
		return
	}
	g.v2, g.Dirs = true, append(g.Dirs, dir)
	for _, c := range ours {
		g.dir[c] = dir
		err := error(nil)
		switch {
		case c == CPU && l.MilliCPU > 0:
			err = write(dir, "cpu.max", fmt.Sprintf("%d %d", quota(l.MilliCPU), period))
		case c == Memory && l.MemoryMiB > 0:
			if err = write(dir, "memory.max", strconv.FormatInt(l.MemoryMiB<<20, 10)); err == nil {
				if _, e := os.Stat(filepath.Join(dir, "memory.swap.max")); e == nil {
					err = write(dir, "memory.swap.max", "0")
				}
			}
		case c == Pids && l.Pids > 0:
			err = write(dir, "pids.max", strconv.FormatInt(l.Pids, 10))
		}
		g.held[c] = err == nil
	}
}

// passOn makes controllers available to the groups below dir.
func passOn(dir string, cs []Controller) bool {
	words := make([]string, len(cs))
	for i, c := range cs {
		words[i] = "+" + string(c)
	}
	return write(dir, "cgroup.subtree_control", strings.Join(words, " ")) == nil
}

func moveAside(base, leaf string) error {
	if err := os.MkdirAll(leaf, 0o755); err != nil {
		return err
	}
	procs, err := os.ReadFile(filepath.Join(base, "cgroup.procs"))
	if err != nil {
		return err
	}
	for _, pid := range strings.Fields(string(procs)) {
		if err := write(leaf, "cgroup.procs", pid); err != nil {
			return err
		}
	}
	return nil
}
