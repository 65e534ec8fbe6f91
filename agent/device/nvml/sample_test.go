//go:build nvml && cgo

package nvml

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/gpus"

	"berth/agent/device"
)

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
	} else if *got.EnergyMJ != 7_000_000 || *got.SMClockMHz != 1410 || *got.MemoryClockMHz != 1593 || *got.MemoryBusyPercent != 0 || got.EngineActive != nil {
		t.Errorf("a card's clocks and energy are %+v", got)
	}
	r.answer("GetPowerUsage", nvml.ERROR_NOT_SUPPORTED)
	r.answer("GetTotalEnergyConsumption", nvml.ERROR_NOT_SUPPORTED)
	r.answer("GetTemperature", nvml.ERROR_NO_PERMISSION)
	if got := sample(a100); got.PowerW != nil || got.EnergyMJ != nil || got.TemperatureC != nil || got.UtilizationPercent == nil || got.SMClockMHz == nil {
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
