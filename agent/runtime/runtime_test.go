package runtime_test

import (
	"maps"
	"strings"
	"testing"

	"berth/agent/runtime"
)

func TestCleanEnv(t *testing.T) {
	got := runtime.CleanEnv(map[string]string{
		"NVIDIA_VISIBLE_DEVICES": "all", "nvidia_visible_devices": "all", "NVIDIA_X": "", "CUDA_VISIBLE_DEVICES": "0",
		"BERTH_LOAD_SOCKET": "/x", "CUDA_HOME": "/usr", "PATH": "/bin",
	})
	if want := map[string]string{"CUDA_HOME": "/usr", "PATH": "/bin"}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestLoadsAddUp(t *testing.T) {
	a := runtime.LoadTarget{Active: true, UtilizationPercent: 70, MemoryMiB: 10}
	if got := a.Add(a); got != (runtime.LoadTarget{Active: true, UtilizationPercent: 100, MemoryMiB: 20}) {
		t.Errorf("%+v", got)
	}
	if got := a.Add(runtime.LoadTarget{}); got != a {
		t.Errorf("%+v", got)
	}
}

func TestSummary(t *testing.T) {
	i := runtime.Info{
		Rung: runtime.RungProcess, Tried: []runtime.Attempt{{Rung: runtime.RungRoot, Problem: "needs root"}, {Rung: runtime.RungProcess}},
		Limits: runtime.Limits{CPU: runtime.Advisory, Memory: runtime.Advisory, Pids: runtime.Advisory, Disk: runtime.Advisory},
	}
	for _, want := range []string{"no isolation, demo only", "memory advisory", "(sandbox (root): needs root)"} {
		if got := i.Summary(); !strings.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
	if got := (runtime.Info{}).Summary(); got != "instances cannot be started here" {
		t.Errorf("%q", got)
	}
}
