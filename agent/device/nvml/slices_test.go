//go:build nvml && cgo

package nvml

import (
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/gpus"

	"berth/agent/device"
	"berth/gpu"
)

// The whole way of a slice: the mode, the GPU instance at its place, read back, the
// compute instance that fills it, and back in the other order.
func TestOrder(t *testing.T) {
	r := newRig(t, hopper())
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

// Where a change of mode costs a reset, the card stays in it until it is asked to
// leave.
func TestModeStays(t *testing.T) {
	r := newRig(t, gpus.A100_SXM4_40GB)
	d := r.open(t, t.TempDir(), io.Discard)
	card := r.dev(0).UUID
	r.answer("CreateComputeInstance", nvml.ERROR_IN_USE)
	if _, err := d.Create(t.Context(), card, "1g.5gb", 0); !errors.Is(err, device.ErrInUse) {
		t.Error(err)
	}
	s := create(t, d, card, "1g.5gb", 0)
	if err := d.Destroy(t.Context(), s.UUID); err != nil {
		t.Error(err)
	}
	made := []string{"CreateGpuInstance 0@0+1", "CreateComputeInstance of 1 slices"}
	wantCalls(t, r, slices.Concat([]string{"SetMigMode 1"}, made, []string{"GpuInstance.Destroy"}, made, []string{"ComputeInstance.Destroy", "GpuInstance.Destroy"})...)
	if err := d.Undivide(t.Context(), card); err != nil {
		t.Error(err)
	}
	wantCalls(t, r, "SetMigMode 0")
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
			r := newRig(t, hopper())
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

func TestDestroyFails(t *testing.T) {
	r := newRig(t, hopper())
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
