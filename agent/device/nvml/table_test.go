//go:build nvml && cgo

package nvml

import (
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/gpus"

	"berth/agent/device"
	"berth/gpu"
)

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
	wantCalls(t, r, "SetMigMode 1")
	create(t, d, dev.UUID, "3g.20gb", 4)
	if table, err := d.Profiles(t.Context(), dev.UUID); err != nil || table[0].Starts == nil {
		t.Errorf("divided: %+v, %v", table, err)
	}
}

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
