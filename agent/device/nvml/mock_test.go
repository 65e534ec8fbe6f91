//go:build nvml && cgo

package nvml

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/gpus"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"
)

// rig is go-nvml's mock with what it lacks filled in: a log of the calls that
// change something, answers to be given instead, MIG devices of their own, a mode
// that can be pending. It knows no geometry; what it shows is how the driver calls
// the library, and what it makes of the answers.
type rig struct {
	*server.Server
	host   host
	events chan nvml.EventData

	mu      sync.Mutex
	calls   []string
	answers map[string][]nvml.Return // by call: the next answers; then SUCCESS
	hangs   map[string]chan struct{} // by call: what it waits for first
	procs   map[string][]nvml.ProcessInfo
	pending map[string]int                  // MIG mode to come, by card
	links   map[string]map[int]nvml.PciInfo // by card and link
	made    int
	migs    map[string]*mock.Device // by UUID
	parents bool                    // a compute instance names its card, not its MIG device
	gpm     float64
}

// hopper is a card that changes its mode without a reset. Its table is Ampere's,
// since the mock's own for Hopper is wrong.
func hopper() gpus.Config {
	c := gpus.A100_SXM4_40GB
	c.Name = "NVIDIA H100 80GB HBM3"
	return c
}

func newRig(t *testing.T, cards ...gpus.Config) *rig {
	t.Helper()
	s, err := server.New(server.WithGPUs(cards...))
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{Server: s, events: make(chan nvml.EventData), answers: map[string][]nvml.Return{}, hangs: map[string]chan struct{}{},
		procs: map[string][]nvml.ProcessInfo{}, pending: map[string]int{}, migs: map[string]*mock.Device{}, links: map[string]map[int]nvml.PciInfo{},
		host: host{proc: t.TempDir(), sys: t.TempDir()}}
	s.InitWithFlagsFunc = func(uint32) nvml.Return { return r.say("Init") }
	s.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) {
		return &mock.EventSet{
			FreeFunc: func() nvml.Return { return nvml.SUCCESS },
			WaitFunc: func(uint32) (nvml.EventData, nvml.Return) {
				select {
				case e := <-r.events:
					return e, nvml.SUCCESS
				case <-time.After(10 * time.Millisecond):
					return nvml.EventData{}, nvml.ERROR_TIMEOUT
				}
			},
		}, nvml.SUCCESS
	}
	s.GpmSampleAllocFunc = func() (nvml.GpmSample, nvml.Return) {
		r.note("GpmSampleAlloc")
		return &mock.GpmSample{FreeFunc: func() nvml.Return { return r.say("GpmSampleFree") }}, nvml.SUCCESS
	}
	s.GpmMetricsGetFunc = func(g *nvml.GpmMetricsGetType) nvml.Return {
		if g.NumMetrics != 1 || g.Metrics[0].MetricId != uint32(nvml.GPM_METRIC_GRAPHICS_UTIL) || g.Sample1 == g.Sample2 {
			t.Errorf("asked for %d metrics, the first %d", g.NumMetrics, g.Metrics[0].MetricId)
		}
		g.Metrics[0].Value = r.gpm
		return r.say("GpmMetricsGet")
	}
	minors := ""
	for i, dev := range s.Devices {
		r.card(dev.(*server.Device))
		for gi := range 14 {
			minors += fmt.Sprintf("gpu%d/gi%d/access %d\ngpu%d/gi%d/ci0/access %d\n", i, gi, 100*i+2*gi+3, i, gi, 100*i+2*gi+4)
		}
	}
	write(t, filepath.Join(r.host.proc, "driver/nvidia-caps/mig-minors"), "config 1\nmonitor 2\n"+minors)
	return r
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) card(dev *server.Device) {
	dev.GetNameFunc = func() (string, nvml.Return) {
		return strings.TrimPrefix(dev.Config.Name, "Mock "), r.say("GetName")
	}
	dev.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) {
		return nvml.PciInfo{Bus: uint32(0x10 + dev.Index)}, nvml.SUCCESS
	}
	dev.GpmQueryDeviceSupportFunc = func() (nvml.GpmSupport, nvml.Return) {
		hopper := dev.Config.Architecture >= nvml.DEVICE_ARCH_HOPPER
		return nvml.GpmSupport{IsSupportedDevice: map[bool]uint32{true: 1}[hopper]}, nvml.SUCCESS
	}
	dev.GpmMigSampleGetFunc = func(int, nvml.GpmSample) nvml.Return { return r.say("GpmMigSampleGet") }
	dev.GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) {
		return r.holders(dev.UUID), r.say("GetComputeRunningProcesses")
	}
	dev.RegisterEventsFunc = func(kinds uint64, _ nvml.EventSet) nvml.Return {
		if kinds != nvml.EventTypeXidCriticalError {
			panic("other events are asked for")
		}
		return r.say("RegisterEvents")
	}
	dev.GetMigModeFunc = func() (int, int, nvml.Return) {
		r.mu.Lock()
		defer r.mu.Unlock()
		pending, ok := r.pending[dev.UUID]
		if !ok {
			pending = dev.MigMode
		}
		return dev.MigMode, pending, r.next("GetMigMode")
	}
	dev.SetMigModeFunc = func(mode int) (nvml.Return, nvml.Return) {
		r.note(fmt.Sprintf("SetMigMode %d", mode))
		r.mu.Lock()
		defer r.mu.Unlock()
		activation := r.next("activation")
		if ret := r.next("SetMigMode"); ret != nvml.SUCCESS {
			return nvml.SUCCESS, ret
		}
		if r.pending[dev.UUID] = mode; activation == nvml.SUCCESS {
			dev.MigMode = mode
		}
		return activation, nvml.SUCCESS
	}
	create := dev.CreateGpuInstanceWithPlacementFunc
	dev.CreateGpuInstanceWithPlacementFunc = func(info *nvml.GpuInstanceProfileInfo, p *nvml.GpuInstancePlacement) (nvml.GpuInstance, nvml.Return) {
		if ret := r.say(fmt.Sprintf("CreateGpuInstance %d@%d+%d", info.Id, p.Start, p.Size)); ret != nvml.SUCCESS {
			return nil, ret
		}
		gi, ret := create(info, p)
		r.instance(gi.(*server.GpuInstance))
		return gi, ret
	}
	dev.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 7, nvml.SUCCESS }
	dev.GetMigDeviceHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		r.mu.Lock()
		defer r.mu.Unlock()
		all := slices.Sorted(maps.Keys(r.migs))
		if i >= len(all) {
			return nil, nvml.ERROR_NOT_FOUND
		}
		return r.migs[all[i]], nvml.SUCCESS
	}
	dev.CreateGpuInstanceFunc = nil // without a placement: never
	dev.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) { return nvml.Memory_v2{}, nvml.ERROR_FUNCTION_NOT_FOUND }
	dev.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) {
		if dev.MigMode == nvml.DEVICE_MIG_ENABLE {
			return nvml.Utilization{}, nvml.ERROR_NOT_SUPPORTED
		}
		return nvml.Utilization{Gpu: 37}, r.say("GetUtilizationRates")
	}
	dev.GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) { return 51, r.say("GetTemperature") }
	dev.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 123_400, r.say("GetPowerUsage") }
	dev.GetTotalEnergyConsumptionFunc = func() (uint64, nvml.Return) { return 7_000_000, r.say("GetTotalEnergyConsumption") }
	dev.GetClockInfoFunc = func(of nvml.ClockType) (uint32, nvml.Return) {
		return map[nvml.ClockType]uint32{nvml.CLOCK_SM: 1410, nvml.CLOCK_MEM: 1593}[of], r.say("GetClockInfo")
	}
	dev.GetNvLinkStateFunc = func(link int) (nvml.EnableState, nvml.Return) {
		if r.links[dev.UUID] == nil {
			return 0, nvml.ERROR_NOT_SUPPORTED
		}
		_, on := r.links[dev.UUID][link]
		return map[bool]nvml.EnableState{true: nvml.FEATURE_ENABLED}[on], nvml.SUCCESS
	}
	dev.GetNvLinkRemotePciInfoFunc = func(link int) (nvml.PciInfo, nvml.Return) {
		return r.links[dev.UUID][link], nvml.SUCCESS
	}
}

func (r *rig) instance(gi *server.GpuInstance) {
	info := gi.GetInfoFunc
	gi.GetInfoFunc = func() (nvml.GpuInstanceInfo, nvml.Return) {
		i, _ := info()
		if ret := r.say("misplaced"); ret != nvml.SUCCESS {
			i.Placement.Start++
		}
		return i, r.say("GpuInstance.GetInfo")
	}
	destroy := gi.DestroyFunc
	gi.DestroyFunc = func() nvml.Return {
		r.note("GpuInstance.Destroy")
		if ret := r.say("GpuInstance.Destroy answers"); ret != nvml.SUCCESS {
			return ret
		}
		if len(gi.ComputeInstances) > 0 { // which the mock would overlook
			return nvml.ERROR_IN_USE
		}
		return destroy()
	}
	create := gi.CreateComputeInstanceFunc
	gi.CreateComputeInstanceFunc = func(p *nvml.ComputeInstanceProfileInfo) (nvml.ComputeInstance, nvml.Return) {
		if ret := r.say(fmt.Sprintf("CreateComputeInstance of %d slices", p.SliceCount)); ret != nvml.SUCCESS {
			return nil, ret
		}
		made, ret := create(p)
		ci := made.(*server.ComputeInstance)
		r.mu.Lock()
		r.made++
		uuid := fmt.Sprintf("MIG-%d", r.made)
		r.mu.Unlock()
		mig := &mock.Device{
			GetUUIDFunc: func() (string, nvml.Return) { return uuid, r.say("MIG GetUUID") },
			GetMemoryInfo_v2Func: func() (nvml.Memory_v2, nvml.Return) {
				return nvml.Memory_v2{Total: 5 << 30, Reserved: 100 << 20, Used: 1124 << 20}, nvml.SUCCESS
			},
			GetComputeRunningProcessesFunc: func() ([]nvml.ProcessInfo, nvml.Return) { return r.holders(uuid), nvml.SUCCESS },
			GetGpuInstanceIdFunc:           func() (int, nvml.Return) { return int(gi.Info.Id), nvml.SUCCESS },
			GetComputeInstanceIdFunc:       func() (int, nvml.Return) { return int(ci.Info.Id), nvml.SUCCESS },
		}
		r.mu.Lock()
		r.migs[uuid] = mig
		r.mu.Unlock()
		ci.GetInfoFunc = func() (nvml.ComputeInstanceInfo, nvml.Return) {
			i := ci.Info
			if r.parents { // as nvml.h has it
				return i, r.say("ComputeInstance.GetInfo")
			}
			i.Device = mig
			return i, r.say("ComputeInstance.GetInfo")
		}
		destroy := ci.DestroyFunc
		ci.DestroyFunc = func() nvml.Return {
			r.note("ComputeInstance.Destroy")
			if len(r.holders(uuid)) > 0 {
				return nvml.ERROR_IN_USE
			}
			if ret := r.say("ComputeInstance.Destroy answers"); ret != nvml.SUCCESS {
				return ret
			}
			return destroy()
		}
		return ci, ret
	}
}

// tell sends an event and returns when it has been taken in: the driver waits for
// another only then.
func (r *rig) tell(e nvml.EventData) {
	r.events <- e
	r.events <- nvml.EventData{} // of no kind that is asked for
}

func (r *rig) note(call string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
}

// next takes the next answer of a call; the caller holds mu. answers are named by
// the call's first words.
func (r *rig) next(call string) nvml.Return {
	for name, list := range r.answers {
		if strings.HasPrefix(call, name) && len(list) > 0 {
			r.answers[name] = list[1:]
			return list[0]
		}
	}
	return nvml.SUCCESS
}

func (r *rig) say(call string) nvml.Return {
	r.mu.Lock()
	r.calls = append(r.calls, call)
	hang := r.hangs[strings.Fields(call)[0]]
	ret := r.next(call)
	r.mu.Unlock()
	if hang != nil {
		<-hang
	}
	return ret
}

// answer has the next calls answered so.
func (r *rig) answer(call string, rets ...nvml.Return) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers[call] = rets
}

// hang holds up calls until the returned function is called.
func (r *rig) hang(call string) (release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	gate := make(chan struct{})
	r.hangs[call] = gate
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.hangs, call)
		close(gate)
	}
}

func (r *rig) hold(uuid string, pids ...uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.procs[uuid] = nil
	for _, pid := range pids {
		r.procs[uuid] = append(r.procs[uuid], nvml.ProcessInfo{Pid: pid, UsedGpuMemory: 3 << 30})
	}
}

func (r *rig) holders(uuid string) []nvml.ProcessInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.procs[uuid])
}

// changes lists the calls since the last time that change something.
func (r *rig) changes() (out []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calls {
		for _, kind := range []string{"SetMigMode", "Create", "GpuInstance.Destroy", "ComputeInstance.Destroy"} {
			if strings.HasPrefix(c, kind) && !strings.HasSuffix(c, "answers") {
				out = append(out, c)
			}
		}
	}
	r.calls = nil
	return out
}

func (r *rig) count(call string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calls {
		if c == call {
			n++
		}
	}
	return n
}

func (r *rig) dev(i int) *server.Device { return r.Devices[i].(*server.Device) }

// open starts a session on the rig.
func (r *rig) open(t *testing.T, dir string, log io.Writer) *Driver {
	t.Helper()
	d, err := open(&Driver{lib: r.Server, log: slog.New(slog.NewTextHandler(log, nil)), faults: faultsIn(dir), host: r.host,
		name: func(nvml.Device, int) (string, bool) { return "", false }, patience: 50 * time.Millisecond, hung: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	r.changes()
	return d
}
