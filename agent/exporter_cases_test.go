package agent

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth/agent/device"
	"berth/agent/device/simulator"
	"berth/gpu"
)

// scrape asks an exporter once and returns the lines of a metric that have all of
// the labels, by value.
func scrape(t *testing.T, d device.Driver, name string, labels ...string) (values []float64) {
	t.Helper()
	rec := httptest.NewRecorder()
	metricsHandler(d, "kestrel", t.TempDir()).ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
lines:
	for line := range strings.Lines(rec.Body.String()) {
		if !strings.HasPrefix(line, name+"{") {
			continue
		}
		for _, l := range labels {
			if !strings.Contains(line, l) {
				continue lines
			}
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndex(line, " "):]), 64)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, v)
	}
	return values
}

// near waits until the only value of a metric is within 0.05 of want.
func near(t *testing.T, d device.Driver, want float64, name string, labels ...string) {
	t.Helper()
	var got []float64
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); <-time.After(20 * time.Millisecond) { // the physics take their time
		if got = scrape(t, d, name, labels...); len(got) == 1 && got[0] > want-0.05 && got[0] < want+0.05 {
			return
		}
	}
	t.Fatalf("%s%v is %v, want %v", name, labels, got, want)
}

func simulated(t *testing.T, models ...gpu.ModelID) (sim *simulator.Simulator, dir string, uuids []string) {
	t.Helper()
	dir = t.TempDir()
	sim, err := simulator.New(dir, models, 1, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	cards, err := sim.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cards {
		uuids = append(uuids, c.UUID)
	}
	return sim, dir, uuids
}

// busy makes a slice and loads it.
func busy(t *testing.T, sim *simulator.Simulator, card, profile string, start int, activity float64) device.Slice {
	t.Helper()
	s, err := sim.Create(t.Context(), card, profile, start)
	if err != nil {
		t.Fatal(err)
	}
	sim.Occupy(s.UUID, "x")
	sim.Load(s.UUID, "x", activity, 1000)
	return s
}

// unmeasured is a driver that cannot measure what slices do, as NVML on an A100.
type unmeasured struct{ *simulator.Simulator }

func (u unmeasured) Sample(ctx context.Context, uuid string) (device.Reading, error) {
	r, err := u.Simulator.Sample(ctx, uuid)
	r.UtilizationPercent, r.EngineActive = nil, nil
	return r, err
}

// Case E1: a slice's utilisation is its engine's; where nothing measures it there
// is no series, and never a 0.
func TestSliceUtilizationWithoutThePlainCounter(t *testing.T) {
	sim, _, uuids := simulated(t, "a100-80gb")
	busy(t, sim, uuids[0], "3g.40gb", 4, 1)
	near(t, sim, 0.98, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", `GPU_I_PROFILE="3g.40gb"`)
	if got := scrape(t, sim, "DCGM_FI_DEV_GPU_UTIL"); got != nil {
		t.Errorf("the plain counter of a card in slices: %v", got)
	}
	for _, name := range []string{"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_GPU_UTIL"} {
		if got := scrape(t, unmeasured{sim}, name); got != nil {
			t.Errorf("%s that is not measured: %v", name, got)
		}
	}
	if got := scrape(t, unmeasured{sim}, "DCGM_FI_DEV_FB_USED", `GPU_I_PROFILE="3g.40gb"`); len(got) != 1 {
		t.Errorf("memory, which is measured: %v", got)
	}
}

// Case E3: a card's power is there once however many slices it has.
func TestPowerIsTheCardsOnce(t *testing.T) {
	sim, _, uuids := simulated(t, "a100-80gb")
	for i, profile := range []string{"1g.10gb", "1g.10gb", "1g.10gb", "3g.40gb"} {
		s := busy(t, sim, uuids[0], profile, map[int]int{0: 0, 1: 1, 2: 2, 3: 4}[i], 0.5)
		if r, err := sim.Sample(t.Context(), s.UUID); err != nil || r.PowerW != nil || r.EnergyMJ != nil {
			t.Errorf("a renter's own power: %+v, %v", r, err)
		}
	}
	if got := scrape(t, sim, "DCGM_FI_DEV_FB_USED", `UUID="`+uuids[0]+`"`); len(got) != 5 {
		t.Errorf("memory of card and slices: %v", got)
	}
	for _, name := range []string{"DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"} {
		if got := scrape(t, sim, name); len(got) != 1 {
			t.Errorf("%s: %v", name, got)
		}
	}
	before := scrape(t, sim, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")[0]
	<-time.After(50 * time.Millisecond) // what is measured is time itself
	if after := scrape(t, sim, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")[0]; after <= before {
		t.Errorf("energy went from %v to %v", before, after)
	}
}

// Case E7: unlike cards are read each by what it has, and one that fails costs its
// own values only.
func TestOneOddCardSilencesNobody(t *testing.T) {
	sim, dir, uuids := simulated(t, "a100-80gb", "rtx4090", "rtx4090")
	busy(t, sim, uuids[0], "3g.40gb", 0, 0.9)
	for _, rtx := range uuids[1:] {
		sim.Occupy(rtx, "y")
		sim.Load(rtx, "y", 1, 1000)
	}
	near(t, sim, 0.9, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", `UUID="`+uuids[0]+`"`)
	for _, rtx := range uuids[1:] {
		if got := scrape(t, sim, "DCGM_FI_DEV_GPU_UTIL", `UUID="`+rtx+`"`); len(got) != 1 || got[0] < 50 {
			t.Errorf("the plain counter: %v", got)
		}
		if got := scrape(t, sim, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", `UUID="`+rtx+`"`); got != nil {
			t.Errorf("profiling counters of a card without: %v", got)
		}
	}
	if err := simulator.SetFault(dir, uuids[1], 79); err != nil {
		t.Fatal(err)
	}
	if got := scrape(t, sim, "DCGM_FI_DEV_GPU_UTIL"); len(got) != 1 || got[0] < 50 {
		t.Errorf("one of two is lost: %v", got)
	}
	near(t, sim, 0.9, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", `UUID="`+uuids[0]+`"`)
	if got := scrape(t, sim, "DCGM_FI_DEV_XID_ERRORS", `UUID="`+uuids[1]+`"`); len(got) != 1 || got[0] != 79 {
		t.Errorf("the lost card's Xid: %v", got)
	}
}

// Case E9: a slice is called what the profile list calls it, never by its size in
// bytes; the size is a value.
func TestProfileLabelIsTheDriversName(t *testing.T) {
	sim, _, uuids := simulated(t, "a100-80gb", "a100-80gb")
	model, err := gpu.Lookup("a100-80gb")
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"7g.80gb", "3g.40gb"} {
		busy(t, sim, uuids[i], name, 0, 0)
		p, err := model.Profile(name)
		if err != nil {
			t.Fatal(err)
		}
		labels := []string{`UUID="` + uuids[i] + `"`, `GPU_I_PROFILE="` + name + `"`}
		used, free := scrape(t, sim, "DCGM_FI_DEV_FB_USED", labels...), scrape(t, sim, "DCGM_FI_DEV_FB_FREE", labels...)
		if len(used) != 1 || len(free) != 1 || int(used[0]) > 1000 || int(free[0]) < p.MemoryMiB-1000 {
			t.Errorf("%s of %d MiB: used %v, free %v", name, p.MemoryMiB, used, free)
		}
	}
}
