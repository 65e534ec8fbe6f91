//go:build nvml && cgo

package nvml

import (
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/gpus"
	"go.uber.org/goleak"

	"berth/agent/device"
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

// A look at a full card is a few calls for each slice: workers look all the time.
func TestLookIsCheap(t *testing.T) {
	r := newRig(t, gpus.A100_SXM4_40GB)
	d := r.open(t, t.TempDir(), io.Discard)
	for start := range 7 {
		create(t, d, r.dev(0).UUID, "1g.5gb", start)
	}
	r.changes()
	inventory(t, d)
	for _, call := range []string{"GpuInstance.GetInfo", "ComputeInstance.GetInfo", "MIG GetUUID"} {
		if n := r.count(call); n != 7 {
			t.Errorf("%d times %s for 7 slices", n, call)
		}
	}
	if n := r.count("GetName"); n != 0 {
		t.Errorf("what is fixed is read again")
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

	// Pulled out while the session is open, and put in again.
	find := r.DeviceGetHandleByUUIDFunc
	r.DeviceGetHandleByUUIDFunc = func(string) (nvml.Device, nvml.Return) { return nil, nvml.ERROR_NOT_FOUND }
	r.answer("GetMigMode", nvml.ERROR_GPU_IS_LOST) // by which the handle shows to be dead
	inventory(t, d)
	if c := inventory(t, d)[0]; !strings.Contains(c.Health, device.ErrLost.Error()) {
		t.Errorf("pulled out: %+v", c)
	}
	if _, err := d.Create(t.Context(), r.dev(0).UUID, "1g.5gb", 1); !errors.Is(err, device.ErrLost) {
		t.Errorf("create on it: %v", err)
	}
	r.DeviceGetHandleByUUIDFunc = find
	if c := inventory(t, d)[0]; c.Health != device.HealthOK {
		t.Errorf("back again: %+v", c)
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

// What an old library lacks is not called: that would end the program.
func TestOldLibrary(t *testing.T) {
	r := newRig(t, gpus.H100_SXM5_80GB)
	r.LookupSymbolFunc = func(name string) error {
		if strings.HasPrefix(name, "nvmlGpm") || name == "nvmlDeviceGetMemoryInfo_v2" {
			return errors.New("undefined symbol")
		}
		return nil
	}
	dev := r.dev(0)
	dev.GpmQueryDeviceSupportFunc, dev.GetMemoryInfo_v2Func, r.GpmSampleAllocFunc = nil, nil, nil // to call them panics
	d := r.open(t, t.TempDir(), io.Discard)
	if got, err := d.Sample(t.Context(), dev.UUID); err != nil || got.MemoryMiB == nil {
		t.Errorf("%+v, %v", got, err)
	}
	r.LookupSymbolFunc = func(string) error { return errors.New("undefined symbol") }
	old, err := open(&Driver{lib: r.Server, log: slog.New(slog.DiscardHandler), faults: faultsIn(t.TempDir())})
	if err == nil || !strings.Contains(err.Error(), "too old: use R470") {
		t.Errorf("%v, %v", old, err)
	}
}
