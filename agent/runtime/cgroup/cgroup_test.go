package cgroup

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDetect(t *testing.T) {
	for name, tc := range map[string]struct {
		own, mounts string
		v1          map[Controller]string
		v2          string
	}{
		"hybrid, at the top": {
			own:    "3:cpu,cpuacct:/\n2:memory:/\n0::/\n",
			mounts: "1 0 0:1 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n2 0 0:2 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n3 0 0:3 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			v1:     map[Controller]string{CPU: "/sys/fs/cgroup/cpu,cpuacct", cpuacct: "/sys/fs/cgroup/cpu,cpuacct", Memory: "/sys/fs/cgroup/memory"},
			v2:     "/sys/fs/cgroup/unified",
		},
		"version 2, a systemd service": {
			own:    "0::/system.slice/berth.service\n",
			mounts: "1 0 0:1 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
			v1:     map[Controller]string{},
			v2:     "/sys/fs/cgroup/system.slice/berth.service",
		},
		"version 2, already in the leaf": {
			own:    "0::/system.slice/berth.service/berth-node\n",
			mounts: "1 0 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
			v1:     map[Controller]string{},
			v2:     "/sys/fs/cgroup/system.slice/berth.service",
		},
		"version 1 in a container": {
			own:    "4:pids:/docker/abc\n",
			mounts: "1 0 0:1 /docker/abc /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n",
			v1:     map[Controller]string{Pids: "/sys/fs/cgroup/pids"},
		},
		"none": {own: "", mounts: "garbage\n", v1: map[Controller]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			h := detect(tc.own, tc.mounts)
			if !maps.Equal(h.v1, tc.v1) || h.v2 != tc.v2 {
				t.Errorf("v1 %v, v2 %q", h.v1, h.v2)
			}
		})
	}
}

// Where the kernel offers nothing, a group is empty and harmless.
func TestNoControlGroups(t *testing.T) {
	g := Host{v1: map[Controller]string{Memory: "/proc/none"}}.Create("x", Limits{MemoryMiB: 1})
	if g.Holds(Memory) || len(g.Dirs) > 0 || g.Add(os.Getpid()) != nil || g.Remove() != nil || g.OutOfMemory() != 0 {
		t.Errorf("%+v", g)
	}
	if _, ok := g.CPUTime(); ok {
		t.Error("it counts")
	}
}

// This host's own groups, whichever version.
func TestHostGroups(t *testing.T) {
	h, err := Detect()
	if err != nil {
		t.Fatal(err)
	}
	g := h.Create("berth-test-"+filepath.Base(t.TempDir()), Limits{MilliCPU: 500, MemoryMiB: 64, Pids: 10})
	if len(g.Dirs) == 0 {
		t.Skip("this machine lets us make no control groups")
	}
	for _, d := range g.Dirs {
		if _, err := os.Stat(d); err != nil {
			t.Error(err)
		}
	}
	if g.Holds(Memory) {
		file, want := "memory.limit_in_bytes", "67108864"
		if g.v2 {
			file = "memory.max"
		}
		if b, err := os.ReadFile(filepath.Join(g.dir[Memory], file)); err != nil || strings.TrimSpace(string(b)) != want {
			t.Errorf("%s is %q (%v)", file, b, err)
		}
	}
	if err := Open(g.Dirs).Remove(); err != nil { // as an agent does whose shim died
		t.Error(err)
	}
	for _, d := range g.Dirs {
		if _, err := os.Stat(d); err == nil {
			t.Errorf("%s stays", d)
		}
	}
}
