//go:build nvml && cgo

package nvml

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/gpus"
	"go.uber.org/goleak"

	"berth/agent/device"
	"berth/gpu"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func inventory(t *testing.T, d *Driver) []device.Card {
	t.Helper()
	cards, err := d.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return cards
}

func create(t *testing.T, d *Driver, card, profile string, start int) device.Slice {
	t.Helper()
	s, err := d.Create(t.Context(), card, profile, start)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func wantCalls(t *testing.T, r *rig, want ...string) {
	t.Helper()
	if got := r.changes(); !slices.Equal(got, want) {
		t.Errorf("calls\n %q, want\n %q", got, want)
	}
}

func TestInventory(t *testing.T) {
	r := newRig(t, gpus.A100_SXM4_40GB, gpus.A100_SXM4_40GB)
	write(t, filepath.Join(r.host.sys, "bus/pci/devices/0000:11:00.0/numa_node"), "1\n")
	write(t, filepath.Join(r.host.sys, "bus/pci/devices/0000:10:00.0/numa_node"), "-1\n")
	d := r.open(t, t.TempDir(), io.Discard)
	r.hold(r.dev(1).UUID, 4712, 4711)
	cards := inventory(t, d)
	c := cards[0]
	if c.UUID != r.dev(0).UUID || c.Model != "a100-40gb" || c.Name != "NVIDIA A100-SXM4-40GB" || c.MemoryMiB != 40960 || c.MIG || c.Health != device.HealthOK || c.NUMANode != 0 || c.LinkGroup != 0 || len(c.Processes) != 0 {
		t.Errorf("%+v", c)
	}
	if want := []string{"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"}; c.Node != "/dev/nvidia0" || !slices.Equal(c.Nodes, want) {
		t.Errorf("nodes %q %q", c.Node, c.Nodes)
	}
	c = cards[1]
	if c.NUMANode != 1 || c.Index != 1 || len(c.Processes) != 2 || c.Processes[0].PID != 4711 || *c.Processes[0].MemoryMiB != 3072 {
		t.Errorf("%+v", c)
	}
	wantCalls(t, r)
}

// The whole way of a slice: the mode, the GPU instance at its place, read back, the
// compute instance that fills it, and back in the other order.
func TestOrder(t *testing.T) {
	r := newRig(t, gpus.A100_SXM4_40GB)
	d := r.open(t, t.TempDir(), io.Discard)
	card := r.dev(0).UUID
	a := create(t, d, card, "3g.20gb", 4)
	wantCalls(t, r, "SetMigMode 1", "CreateGpuInstance 2@4+4", "CreateComputeInstance of 3 slices")
	want := device.Slice{UUID: "MIG-1", Card: card, Placement: gpu.Placement{Profile: "3g.20gb", Start: 4, Size: 4}, MemoryMiB: 19968,
		Node: "/dev/nvidia-caps/nvidia-cap4", Nodes: []string{"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-caps/nvidia-cap3", "/dev/nvidia-caps/nvidia-cap4"}}
	if !reflect.DeepEqual(a, want) {
		t.Errorf("made\n %+v, want\n %+v", a, want)
	}
	b := create(t, d, card, "1g.5gb", 0)
	wantCalls(t, r, "CreateGpuInstance 0@0+1", "CreateComputeInstance of 1 slices")
	if c := inventory(t, d)[0]; !c.MIG || !reflect.DeepEqual(c.Slices, []device.Slice{b, a}) {
		t.Errorf("on the card %+v", c)
	}
	for _, s := range []device.Slice{a, a, b} { // again is success
		if err := d.Destroy(t.Context(), s.UUID); err != nil {
			t.Error(err)
		}
	}
	wantCalls(t, r, "ComputeInstance.Destroy", "GpuInstance.Destroy", "ComputeInstance.Destroy", "GpuInstance.Destroy", "SetMigMode 0")
	if c := inventory(t, d)[0]; c.MIG || len(c.Slices) != 0 {
		t.Errorf("after destroying all %+v", c)
	}
}

// Each answer at each step of a creation becomes the right error, and nothing stays.
func TestCreateFails(t *testing.T) {
	off, gi, ci := "SetMigMode 0", "GpuInstance.Destroy", "ComputeInstance.Destroy"
	on, makeGI, makeCI := "SetMigMode 1", "CreateGpuInstance 0@2+1", "CreateComputeInstance of 1 slices"
	for name, tc := range map[string]struct {
		call  string
		ret   nvml.Return
		want  error
		calls []string
	}{
		"no MIG":                {"GetMigMode", nvml.ERROR_NOT_SUPPORTED, device.ErrNotSupported, nil},
		"lost":                  {"GetMigMode", nvml.ERROR_GPU_IS_LOST, device.ErrLost, nil},
		"not root":              {"SetMigMode", nvml.ERROR_NO_PERMISSION, device.ErrPermission, []string{on}},
		"full or occupied":      {"CreateGpuInstance", nvml.ERROR_INSUFFICIENT_RESOURCES, device.ErrNoRoom, []string{on, makeGI, off}},
		"another client":        {"CreateGpuInstance", nvml.ERROR_IN_USE, device.ErrInUse, []string{on, makeGI, off}},
		"a vGPU guest":          {"CreateGpuInstance", nvml.ERROR_NOT_SUPPORTED, device.ErrNotSupported, []string{on, makeGI, off}},
		"not privileged":        {"CreateGpuInstance", nvml.ERROR_NO_PERMISSION, device.ErrPermission, []string{on, makeGI, off}},
		"unreadable":            {"GpuInstance.GetInfo", nvml.ERROR_GPU_IS_LOST, device.ErrLost, []string{on, makeGI, gi, off}},
		"made elsewhere":        {"misplaced", nvml.ERROR_UNKNOWN, nil, []string{on, makeGI, gi, off}},
		"no compute instance":   {"CreateComputeInstance", nvml.ERROR_INSUFFICIENT_RESOURCES, device.ErrNoRoom, []string{on, makeGI, makeCI, gi, off}},
		"unreadable at the end": {"ComputeInstance.GetInfo", nvml.ERROR_GPU_IS_LOST, device.ErrLost, []string{on, makeGI, makeCI, ci, gi, off}},
		"no UUID":               {"MIG GetUUID", nvml.ERROR_UNKNOWN, nil, []string{on, makeGI, makeCI, ci, gi, off}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, gpus.A100_SXM4_40GB)
			d := r.open(t, t.TempDir(), io.Discard)
			inventory(t, d)
			r.answer(tc.call, tc.ret)
			s, err := d.Create(t.Context(), r.dev(0).UUID, "1g.5gb", 2)
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("%+v, error %v, want %v", s, err, tc.want)
			}
			wantCalls(t, r, tc.calls...)
			if c := inventory(t, d)[0]; c.MIG || len(c.Slices) != 0 || len(r.dev(0).GpuInstances) != 0 || c.Health != device.HealthOK {
				t.Errorf("left behind: %+v", c)
			}
			if _, err := d.Create(t.Context(), r.dev(0).UUID, "1g.5gb", 2); err != nil {
				t.Errorf("again: %v", err)
			}
		})
	}
}

// Where a compute instance names its card, its MIG device is found by walking.
func TestMIGDeviceByWalking(t *testing.T) {
	r := newRig(t, gpus.A100_SXM4_40GB)
	r.parents = true
	d := r.open(t, t.TempDir(), io.Discard)
	a := create(t, d, r.dev(0).UUID, "2g.10gb", 0)
	b := create(t, d, r.dev(0).UUID, "1g.5gb", 6)
	if a.UUID != "MIG-1" || b.UUID != "MIG-2" {
		t.Errorf("made %s and %s", a.UUID, b.UUID)
	}
	if c := inventory(t, d)[0]; !reflect.DeepEqual(c.Slices, []device.Slice{a, b}) {
		t.Errorf("%+v", c.Slices)
	}
	if got, err := d.Sample(t.Context(), b.UUID); err != nil || *got.MemoryMiB != 1024 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A driver before _v2 of that call tells starts in MIG mode only.
func TestOldDriver(t *testing.T) {
	r := newRig(t, gpus.A100_SXM4_40GB)
	dev := r.dev(0)
	places := dev.GetGpuInstancePossiblePlacementsFunc
	dev.GetGpuInstancePossiblePlacementsFunc = func(info *nvml.GpuInstanceProfileInfo) ([]nvml.GpuInstancePlacement, nvml.Return) {
		if dev.MigMode == nvml.DEVICE_MIG_DISABLE {
			return nil, nvml.ERROR_NOT_SUPPORTED
		}
		return places(info)
	}
	d := r.open(t, t.TempDir(), io.Discard)
	if table, err := d.Profiles(t.Context(), dev.UUID); err != nil || len(table) == 0 || table[0].Starts != nil {
		t.Errorf("undivided: %+v, %v", table, err)
	}
	if _, err := d.Create(t.Context(), dev.UUID, "3g.20gb", 2); !errors.Is(err, device.ErrNotSupported) {
		t.Error(err)
	}
	wantCalls(t, r, "SetMigMode 1", "SetMigMode 0")
	create(t, d, dev.UUID, "3g.20gb", 4)
	if table, err := d.Profiles(t.Context(), dev.UUID); err != nil || table[0].Starts == nil {
		t.Errorf("divided: %+v, %v", table, err)
	}
}

func TestNotSupported(t *testing.T) {
	r := newRig(t, gpus.A100_SXM4_40GB)
	d := r.open(t, t.TempDir(), io.Discard)
	card := r.dev(0).UUID
	for _, tc := range []struct {
		card, profile string
		start         int
		want          error
	}{
		{card, "9g.99gb", 0, device.ErrNotSupported},
		{card, gpu.Whole, 0, device.ErrNotSupported},
		{card, "3g.20gb", 2, device.ErrNotSupported},
		{"GPU-none", "1g.5gb", 0, device.ErrNotFound},
	} {
		if _, err := d.Create(t.Context(), tc.card, tc.profile, tc.start); !errors.Is(err, tc.want) {
			t.Errorf("%s@%d: %v, want %v", tc.profile, tc.start, err, tc.want)
		}
	}
	wantCalls(t, r) // the mode least of all
	if err := d.Destroy(t.Context(), "MIG-none"); err != nil {
		t.Error(err)
	}
	if _, err := d.Sample(t.Context(), "MIG-none"); !errors.Is(err, device.ErrNotFound) {
		t.Error(err)
	}
}

// The mode's second answer counts, and it is read back.
func TestMode(t *testing.T) {
	for name, tc := range map[string]struct {
		activation nvml.Return
		want       error
		health     string
		calls      []string
	}{
		"held":             {nvml.ERROR_IN_USE, device.ErrInUse, device.HealthOK, []string{"SetMigMode 1", "SetMigMode 0"}},
		"owes a reset":     {nvml.ERROR_RESET_REQUIRED, device.ErrResetRequired, "it needs a reset: MIG mode is off and will be on", []string{"SetMigMode 1"}},
		"nobody knows why": {nvml.ERROR_UNKNOWN, nil, device.HealthOK, []string{"SetMigMode 1", "SetMigMode 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, gpus.A100_SXM4_40GB)
			d := r.open(t, t.TempDir(), io.Discard)
			r.answer("activation", tc.activation)
			_, err := d.Create(t.Context(), r.dev(0).UUID, "1g.5gb", 0)
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
			wantCalls(t, r, tc.calls...)
			if c := inventory(t, d)[0]; c.MIG || c.Health != tc.health {
				t.Errorf("%+v, want health %q", c, tc.health)
			}
			if tc.want == device.ErrResetRequired { // and it is not asked again and again
				if _, err := d.Create(t.Context(), r.dev(0).UUID, "1g.5gb", 0); !errors.Is(err, device.ErrResetRequired) {
					t.Error(err)
				}
				wantCalls(t, r)
				r.dev(0).MigMode = nvml.DEVICE_MIG_ENABLE // the operator's reset
				if c := inventory(t, d)[0]; c.Health != device.HealthOK || !c.MIG {
					t.Errorf("after the reset %+v", c)
				}
				create(t, d, r.dev(0).UUID, "1g.5gb", 0)
			}
		})
	}
	t.Run("a process has the card", func(t *testing.T) {
		r := newRig(t, gpus.A100_SXM4_40GB)
		d := r.open(t, t.TempDir(), io.Discard)
		r.hold(r.dev(0).UUID, 4711)
		_, err := d.Create(t.Context(), r.dev(0).UUID, "1g.5gb", 0)
		if !errors.Is(err, device.ErrInUse) || !strings.Contains(err.Error(), "by process 4711") {
			t.Error(err)
		}
		wantCalls(t, r)
	})
	t.Run("it ends with the last slice, or later", func(t *testing.T) {
		r := newRig(t, gpus.A100_SXM4_40GB)
		d := r.open(t, t.TempDir(), io.Discard)
		card := r.dev(0).UUID
		s := create(t, d, card, "1g.5gb", 0)
		if err := d.Undivide(t.Context(), card); !errors.Is(err, device.ErrInUse) {
			t.Errorf("with a slice: %v", err)
		}
		r.answer("activation", nvml.ERROR_IN_USE)
		if err := d.Destroy(t.Context(), s.UUID); err != nil { // the slice is gone: that is success
			t.Error(err)
		}
		if c := inventory(t, d)[0]; !c.MIG || len(c.Slices) > 0 || c.Health != device.HealthOK {
			t.Errorf("%+v", c)
		}
		r.answer("activation", nvml.ERROR_IN_USE)
		if err := d.Undivide(t.Context(), card); !errors.Is(err, device.ErrInUse) {
			t.Errorf("held: %v", err)
		}
		for range 2 {
			if err := d.Undivide(t.Context(), card); err != nil {
				t.Error(err)
			}
		}
		if c := inventory(t, d)[0]; c.MIG {
			t.Errorf("%+v", c)
		}
		if err := d.Undivide(t.Context(), "GPU-none"); !errors.Is(err, device.ErrNotFound) {
			t.Error(err)
		}
	})
}

func TestDestroyFails(t *testing.T) {
	r := newRig(t, gpus.A100_SXM4_40GB)
	dir := t.TempDir()
	d := r.open(t, dir, io.Discard)
	card := r.dev(0).UUID
	s := create(t, d, card, "2g.10gb", 2)
	r.changes()

	r.hold(s.UUID, 4711)
	if err := d.Destroy(t.Context(), s.UUID); !errors.Is(err, device.ErrInUse) || !strings.Contains(err.Error(), "by process 4711") {
		t.Errorf("held: %v", err)
	}
	wantCalls(t, r, "ComputeInstance.Destroy")
	r.hold(s.UUID)

	// The compute instance goes, the GPU instance is still held: what is left keeps
	// its name and its place, and the next try goes on from there.
	r.answer("GpuInstance.Destroy answers", nvml.ERROR_IN_USE)
	if err := d.Destroy(t.Context(), s.UUID); !errors.Is(err, device.ErrInUse) {
		t.Errorf("half: %v", err)
	}
	c := inventory(t, d)[0]
	if len(c.Slices) != 1 || !c.Slices[0].HalfMade || c.Slices[0].UUID != s.UUID || c.Slices[0].Placement != s.Placement {
		t.Errorf("half: %+v", c.Slices)
	}
	if got, err := d.Sample(t.Context(), s.UUID); err != nil || got.MemoryMiB != nil {
		t.Errorf("half: %+v, %v", got, err)
	}
	wantCalls(t, r, "ComputeInstance.Destroy", "GpuInstance.Destroy")

	// An agent that starts anew knows it by its number.
	again := r.open(t, dir, io.Discard)
	c = inventory(t, again)[0]
	if len(c.Slices) != 1 || !c.Slices[0].HalfMade || c.Slices[0].UUID != card+"-gi0" {
		t.Fatalf("half, anew: %+v", c.Slices)
	}
	if err := again.Destroy(t.Context(), c.Slices[0].UUID); err != nil {
		t.Error(err)
	}
	wantCalls(t, r, "GpuInstance.Destroy", "SetMigMode 0")
	if err := d.Destroy(t.Context(), s.UUID); err != nil { // for the old one it is gone
		t.Error(err)
	}

	// "Not found" is success at each step.
	s = create(t, d, card, "2g.10gb", 2)
	r.changes()
	r.answer("ComputeInstance.Destroy answers", nvml.ERROR_NOT_FOUND)
	r.answer("GpuInstance.Destroy answers", nvml.ERROR_NOT_FOUND)
	if err := d.Destroy(t.Context(), s.UUID); err != nil {
		t.Errorf("not found: %v", err)
	}
}

func TestLostCard(t *testing.T) {
	r := newRig(t, gpus.A100_SXM4_40GB, gpus.A100_SXM4_40GB)
	d := r.open(t, t.TempDir(), io.Discard)
	s := create(t, d, r.dev(0).UUID, "1g.5gb", 0)
	lost := slices.Repeat([]nvml.Return{nvml.ERROR_GPU_IS_LOST}, 3)
	r.answer("GetMigMode", lost[0])
	cards := inventory(t, d)
	if !strings.Contains(cards[0].Health, device.ErrLost.Error()) || len(cards[0].Slices) != 1 || cards[1].Health != device.HealthOK {
		t.Errorf("%+v", cards)
	}
	r.answer("GetMigMode", lost...)
	if err := d.Destroy(t.Context(), s.UUID); !errors.Is(err, device.ErrLost) {
		t.Errorf("destroy: %v", err)
	}
	if err := d.Destroy(t.Context(), "MIG-none"); !errors.Is(err, device.ErrLost) {
		t.Errorf("it may be on the lost card: %v", err)
	}
	r.answer("GetMigMode")
	if c := inventory(t, d)[0]; c.Health != device.HealthOK || len(c.Slices) != 1 {
		t.Errorf("back: %+v", c)
	}
}

// A call that does not return costs its card, and after a while its place on sale.
func TestHangingDriver(t *testing.T) {
	r := newRig(t, gpus.A100_SXM4_40GB, gpus.A100_SXM4_40GB)
	d := r.open(t, t.TempDir(), io.Discard)
	card, well := r.dev(0).UUID, r.dev(1).UUID
	inventory(t, d)
	release := r.hang("CreateGpuInstance")
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := d.Create(ctx, card, "1g.5gb", 0)
		failed <- err
	}()
	for r.count("CreateGpuInstance 0@0+1") == 0 {
		if cards := inventory(t, d); cards[1].Health != device.HealthOK {
			t.Fatalf("%+v", cards)
		}
	}
	for inventory(t, d)[0].Health == device.HealthOK { // until it has hung for long enough
	}
	cards := inventory(t, d)
	if !strings.Contains(cards[0].Health, "does not answer") || cards[1].Health != device.HealthOK {
		t.Errorf("%+v", cards)
	}
	if _, err := d.Sample(t.Context(), card); !errors.Is(err, errSilent) {
		t.Errorf("sample: %v", err)
	}
	if got, err := d.Sample(t.Context(), well); err != nil || got.PowerW == nil {
		t.Errorf("sample of the other: %+v, %v", got, err)
	}
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("create: %v", err)
	}
	release() // and now it makes the slice after all, which nobody waits for
	if err := d.Undivide(t.Context(), card); err != nil {
		t.Error(err)
	}
	wantCalls(t, r, "SetMigMode 1", "CreateGpuInstance 0@0+1", "CreateComputeInstance of 1 slices", "ComputeInstance.Destroy", "GpuInstance.Destroy", "SetMigMode 0")
	if c := inventory(t, d)[0]; c.MIG || len(c.Slices) > 0 || c.Health != device.HealthOK {
		t.Errorf("%+v", c)
	}
}

// Calls for one card come one after the other, whoever asks.
func TestOneAfterTheOther(t *testing.T) {
	r := newRig(t, gpus.A100_SXM4_40GB)
	d := r.open(t, t.TempDir(), io.Discard)
	card := r.dev(0).UUID
	d.patience = time.Minute
	var all sync.WaitGroup
	for start := range 7 {
		all.Go(func() {
			s, err := d.Create(t.Context(), card, "1g.5gb", start)
			if err == nil {
				_, err = d.Sample(t.Context(), s.UUID)
			}
			if err == nil {
				err = d.Destroy(t.Context(), s.UUID)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if c := inventory(t, d)[0]; c.MIG || len(c.Slices) > 0 {
		t.Errorf("%+v", c)
	}
}

func TestSample(t *testing.T) {
	r := newRig(t, gpus.A100_SXM4_40GB, gpus.H100_SXM5_80GB)
	d := r.open(t, t.TempDir(), io.Discard)
	a100, h100 := r.dev(0).UUID, r.dev(1).UUID
	sample := func(uuid string) device.Reading {
		t.Helper()
		got, err := d.Sample(t.Context(), uuid)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := sample(a100); *got.UtilizationPercent != 37 || *got.TemperatureC != 51 || *got.PowerW != 123.4 || got.MemoryMiB == nil {
		t.Errorf("a card reads %+v", got)
	}
	r.answer("GetPowerUsage", nvml.ERROR_NOT_SUPPORTED)
	r.answer("GetTemperature", nvml.ERROR_NO_PERMISSION)
	if got := sample(a100); got.PowerW != nil || got.TemperatureC != nil || got.UtilizationPercent == nil {
		t.Errorf("what is not measured reads %+v", got)
	}
	r.answer("GetUtilizationRates", nvml.ERROR_GPU_IS_LOST)
	if _, err := d.Sample(t.Context(), a100); !errors.Is(err, device.ErrLost) {
		t.Errorf("lost: %v", err)
	}

	old := create(t, d, a100, "1g.5gb", 0)
	if got := sample(old.UUID); got.UtilizationPercent != nil || *got.MemoryMiB != 1024 || *got.TemperatureC != 51 || got.PowerW != nil {
		t.Errorf("a slice of an A100 reads %+v", got)
	}
	if got := sample(a100); got.UtilizationPercent != nil || got.PowerW == nil {
		t.Errorf("a card in MIG mode reads %+v", got)
	}
	s := create(t, d, h100, "1g.10gb", 0)
	if got := sample(s.UUID); got.UtilizationPercent != nil {
		t.Errorf("one sample of GPM gives %v", *got.UtilizationPercent)
	}
	r.gpm = 62.5
	if got := sample(s.UUID); got.UtilizationPercent != nil {
		t.Errorf("samples less than 100 ms apart give %v", *got.UtilizationPercent)
	}
	m := d.cards[1].meters[s.UUID]
	var lost error
	dev := r.dev(1)
	if got := m.read(&lost, dev, m.at.Add(time.Second)); got == nil || *got != 62.5 || lost != nil {
		t.Errorf("two samples give %v, %v", got, lost)
	}
	r.answer("GpmMetricsGet", nvml.ERROR_UNKNOWN)
	if got := m.read(&lost, dev, m.at.Add(time.Second)); got != nil {
		t.Errorf("a value that could not be computed is %v", *got)
	}
	r.answer("GpmMigSampleGet", nvml.ERROR_GPU_IS_LOST)
	if got := m.read(&lost, dev, m.at.Add(time.Second)); got != nil || !errors.Is(lost, device.ErrLost) {
		t.Errorf("lost: %v, %v", got, lost)
	}
	if err := d.Destroy(t.Context(), s.UUID); err != nil {
		t.Error(err)
	}
	if made, freed := r.count("GpmSampleAlloc"), r.count("GpmSampleFree"); made != freed || made == 0 {
		t.Errorf("%d samples made, %d given back", made, freed)
	}
}

func TestFaults(t *testing.T) {
	r := newRig(t, gpus.A100_SXM4_40GB, gpus.A100_SXM4_40GB)
	dir := t.TempDir()
	var log bytes.Buffer
	var logging sync.Mutex
	d := r.open(t, dir, writerFunc(func(p []byte) (int, error) {
		logging.Lock()
		defer logging.Unlock()
		return log.Write(p)
	}))
	logged := func(text string) bool {
		logging.Lock()
		defer logging.Unlock()
		return strings.Contains(log.String(), text)
	}
	s := create(t, d, r.dev(0).UUID, "1g.5gb", 0)
	xid := func(i int, number uint64, gi, ci uint32) {
		r.events <- nvml.EventData{Device: r.dev(i), EventType: nvml.EventTypeXidCriticalError, EventData: number, GpuInstanceId: gi, ComputeInstanceId: ci}
		for inventory(t, d)[i].Xid != int(number) {
			time.Sleep(time.Millisecond)
		}
	}
	xid(0, 94, uint32(s.GPUInstance), 0) // a program's own
	if h := inventory(t, d)[0].Health; h != device.HealthOK {
		t.Errorf("health %q after Xid 94", h)
	}
	if !logged("slice="+s.UUID) || !logged("gpu_instance=0") {
		t.Errorf("logged %s", log.String())
	}
	xid(0, 79, none, none)
	sick := func(d *Driver) string {
		cards := inventory(t, d)
		if cards[1].Health != device.HealthOK {
			t.Errorf("the card beside it: %q", cards[1].Health)
		}
		return cards[0].Health
	}
	for sick(d) == device.HealthOK { // it is written down a moment later
		time.Sleep(time.Millisecond)
	}
	if h := sick(d); !strings.HasPrefix(h, "Xid 79, the GPU has fallen off the bus") || !strings.Contains(h, "since ") {
		t.Errorf("health %q", h)
	}
	if h := sick(r.open(t, dir, io.Discard)); !strings.HasPrefix(h, "Xid 79") {
		t.Errorf("an agent started anew takes it for %q", h)
	}
	for _, want := range []bool{true, false} {
		if mended, err := Mend(dir, r.dev(0).UUID); err != nil || mended != want {
			t.Errorf("mended %v, %v", mended, err)
		}
	}
	if h := sick(d); h != device.HealthOK {
		t.Errorf("mended: %q", h)
	}

	// A restart of the host mends all but a row that could not be remapped.
	for i, number := range []int{95, 64} {
		if err := d.faults.add(r.dev(i).UUID, Fault{Xid: number, At: time.Unix(1e9, 0)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.faults.change(func(all map[string]Fault) {
		for uuid, f := range all {
			f.BootID = "an earlier one"
			all[uuid] = f
		}
	}); err != nil {
		t.Fatal(err)
	}
	cards := inventory(t, r.open(t, dir, io.Discard))
	if cards[0].Health != device.HealthOK || !strings.HasPrefix(cards[1].Health, "Xid 64") {
		t.Errorf("after a restart of the host: %q, %q", cards[0].Health, cards[1].Health)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// Names and places as the driver tells them, against Berth's own table. The mock's
// tables are right for Ampere; for later cards they are known to be wrong.
func TestProfiles(t *testing.T) {
	for model, config := range map[gpu.ModelID]gpus.Config{
		"a100-40gb": gpus.A100_SXM4_40GB, "a100-80gb": gpus.A100_SXM4_80GB, "a30-24gb": gpus.A30_PCIE_24GB, "h100-80gb": gpus.H100_SXM5_80GB, "h200-141gb": gpus.H200_SXM5_141GB,
	} {
		t.Run(string(model), func(t *testing.T) {
			m, err := gpu.Lookup(model)
			if err != nil {
				t.Fatal(err)
			}
			config.Name = m.Product // the mock has names of its own
			r := newRig(t, config)
			d := r.open(t, t.TempDir(), io.Discard)
			table, err := d.Profiles(t.Context(), r.dev(0).UUID)
			if err != nil {
				t.Fatal(err)
			}
			if got := inventory(t, d)[0].Model; got != model {
				t.Errorf("taken for %q", got)
			}
			for _, p := range m.Profiles {
				i := slices.IndexFunc(table, func(o gpu.Profile) bool { return o.NVMLEnum == p.NVMLEnum })
				if i < 0 {
					continue
				}
				if got := table[i]; m.ModePersists && (got.Name != p.Name || got.Units != p.Units || !slices.Equal(got.Starts, p.Starts) || got.ComputeSlices != p.ComputeSlices) {
					t.Errorf("%s by the driver: %+v", p.Name, got)
				}
			}
		})
	}
	if name := profileName(nvml.GPU_INSTANCE_PROFILE_1_SLICE, 1, 16384, 143771); name != "1g.18gb" {
		t.Errorf("on an H200 the smallest is called %s", name)
	}
	r := newRig(t, gpus.A100_SXM4_40GB)
	d := r.open(t, t.TempDir(), io.Discard)
	if _, err := d.Profiles(t.Context(), "GPU-none"); !errors.Is(err, device.ErrNotFound) {
		t.Error(err)
	}
	r.answer("GetMigMode", nvml.ERROR_NOT_SUPPORTED)
	if table, err := d.Profiles(t.Context(), r.dev(0).UUID); err != nil || len(table) > 0 {
		t.Errorf("of a card that cannot be divided: %+v, %v", table, err)
	}
}

// Cards on one switch are one group, those joined to each other another.
func TestLinks(t *testing.T) {
	r := newRig(t, slices.Repeat([]gpus.Config{gpus.A100_SXM4_40GB}, 6)...)
	toSwitch := map[int]nvml.PciInfo{0: {Bus: 0xc0}, 1: {Bus: 0xc1}}
	to := func(i int) map[int]nvml.PciInfo { return map[int]nvml.PciInfo{3: {Bus: uint32(0x10 + i)}} }
	for i, links := range []map[int]nvml.PciInfo{toSwitch, to(2), to(1), toSwitch, nil, {0: {Bus: 0xee}}} {
		r.links[r.dev(i).UUID] = links
	}
	d := r.open(t, t.TempDir(), io.Discard)
	var groups []int
	for _, c := range inventory(t, d) {
		groups = append(groups, c.LinkGroup)
	}
	if want := []int{1, 2, 2, 1, 0, 0}; !slices.Equal(groups, want) {
		t.Errorf("groups %v, want %v", groups, want)
	}
}

func TestOpenFails(t *testing.T) {
	for name, tc := range map[string]struct {
		ret  nvml.Return
		want string
	}{
		"no driver":    {nvml.ERROR_LIBRARY_NOT_FOUND, "not installed"},
		"not loaded":   {nvml.ERROR_DRIVER_NOT_LOADED, "modprobe nvidia"},
		"two versions": {nvml.ERROR_LIB_RM_VERSION_MISMATCH, "restart the host"},
		"not allowed":  {nvml.ERROR_NO_PERMISSION, "no permission"},
		"no cards":     {nvml.SUCCESS, "lists no GPU"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.answer("Init", tc.ret)
			d, err := open(&Driver{lib: r.Server, log: slog.New(slog.DiscardHandler), faults: faultsIn(t.TempDir())})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, error %v", d, err)
			}
		})
	}
}

func TestCapabilities(t *testing.T) {
	h := host{proc: t.TempDir()}
	if _, err := h.capabilities(0, 1, 0); err == nil {
		t.Error("no file, and yet")
	}
	write(t, filepath.Join(h.proc, "driver/nvidia-caps/mig-minors"), "config 1\nmonitor 2\ngpu0/gi1/access 12\ngpu0/gi1/ci0/access 13\ngpu1/gi1/access 147\ngpu1/gi1/ci0/access x\n")
	if got, err := h.capabilities(0, 1, 0); err != nil || !slices.Equal(got, []string{"/dev/nvidia-caps/nvidia-cap12", "/dev/nvidia-caps/nvidia-cap13"}) {
		t.Errorf("%q, %v", got, err)
	}
	for _, gi := range []int{1, 2} {
		if got, err := h.capabilities(1, gi, 0); err == nil {
			t.Errorf("of a slice without such nodes: %q", got)
		}
	}
}
