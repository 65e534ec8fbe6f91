//go:build nvml && cgo

package nvml

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"berth/agent/device"
	"berth/gpu"
)

// Built says whether this program can drive real cards.
const Built = true

// Driver is a device.Driver for the NVIDIA cards of this host.
type Driver struct {
	lib    nvml.Interface
	log    *slog.Logger
	faults faultFile
	host   host
	cards  []*card // as the library counted them when the session began

	// What the library here has; calling what it has not ends the program.
	hasGPM, hasMemoryV2, hasNames bool

	// name is what the library calls a profile of a card, by its enumeration.
	name func(dev nvml.Device, profile int) (string, bool)
	// patience is how long a reading waits for a card before it goes without.
	patience time.Duration
	// hung is after how long without an answer a card is not sold any more. Making
	// a slice has taken 10 s where requests piled up.
	hung time.Duration

	events nvml.EventSet // nil: faults cannot be followed here
	stop   context.CancelFunc
	parts  sync.WaitGroup
}

// New opens the session; dir keeps the faults that cards have until they are
// mended. It fails, saying what to do, where the driver or its cards are missing.
func New(dir string, log *slog.Logger) (*Driver, error) {
	return open(&Driver{lib: nvml.New(), log: log, faults: faultsIn(dir), host: realHost(), name: nameOf, patience: 2 * time.Second, hung: 30 * time.Second})
}

func open(d *Driver) (*Driver, error) {
	// Without this flag a host whose cards are all away fails here, in other words.
	switch ret := d.lib.InitWithFlags(nvml.INIT_FLAG_NO_GPUS); ret {
	case nvml.SUCCESS:
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return nil, errors.New("NVIDIA's driver is not installed here: libnvidia-ml.so.1 cannot be opened")
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return nil, errors.New("NVIDIA's driver is installed and not loaded: run `modprobe nvidia`, then `nvidia-smi`")
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return nil, errors.New("NVIDIA's library and kernel module are of different versions: restart the host after the driver's update")
	default:
		return nil, problem(ret, "open NVML")
	}
	for _, begin := range []func() error{d.lookUp, d.list, d.faults.forgetReboots} {
		if err := begin(); err != nil {
			return nil, errors.Join(err, problem(d.lib.Shutdown(), "close NVML"))
		}
	}
	var ctx context.Context
	ctx, d.stop = context.WithCancel(context.Background())
	d.listen()
	if d.events != nil {
		d.parts.Go(func() { d.follow(ctx) })
	}
	return d, nil
}

// lookUp finds out what the library has. go-nvml binds a function when it is first
// called, and a missing one then ends the program.
func (d *Driver) lookUp() error {
	has := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return d.lib.Extensions().LookupSymbol(name) != nil })
	}
	version, ret := d.lib.SystemGetDriverVersion()
	if ret != nvml.SUCCESS {
		return problem(ret, "read the driver's version")
	}
	if !has("nvmlDeviceGetMigMode", "nvmlDeviceCreateGpuInstanceWithPlacement", "nvmlComputeInstanceGetInfo_v2", "nvmlDeviceGetGpuInstanceId") {
		return fmt.Errorf("NVIDIA's driver %s is too old: use R470 or later", version)
	}
	d.hasMemoryV2 = has("nvmlDeviceGetMemoryInfo_v2")
	d.hasNames = has("nvmlDeviceGetGpuInstanceProfileInfoV")
	d.hasGPM = has("nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc", "nvmlGpmMigSampleGet", "nvmlGpmMetricsGet", "nvmlGpmSampleFree")
	d.log.Info("session with NVIDIA's driver", "driver", version, "gpm", d.hasGPM)
	return nil
}

// list finds the cards. They are named by UUID from here on.
func (d *Driver) list() error {
	n, ret := d.lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return problem(ret, "count the GPUs")
	}
	for i := range n {
		dev, ret := d.lib.DeviceGetHandleByIndex(i)
		uuid := ""
		if ret == nvml.SUCCESS {
			uuid, ret = dev.GetUUID()
		}
		if ret != nvml.SUCCESS {
			d.log.Error("a GPU cannot be used: it does not tell its UUID", "index", i, "error", problem(ret, "read the UUID"))
			continue
		}
		d.cards = append(d.cards, &card{uuid: uuid, turn: make(chan struct{}, 1), seen: device.Card{UUID: uuid, Index: i}, unmade: map[int]string{}, meters: map[string]*meter{}})
	}
	if len(d.cards) == 0 {
		return errors.New("NVIDIA's driver lists no GPU that can be used: see what `nvidia-smi` says")
	}
	return nil
}

// Close ends the session. Slices stay. A card that does not answer keeps the
// session open until the program ends.
func (d *Driver) Close() error {
	d.stop()
	d.parts.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), d.patience)
	defer cancel()
	for _, c := range d.cards {
		if _, err := inTurn(ctx, c, func() (struct{}, error) { c.dropMeters(); return struct{}{}, nil }, nil); err != nil {
			return fmt.Errorf("close NVML: card %s: %w", c.uuid, errSilent)
		}
	}
	return problem(d.lib.Shutdown(), "close NVML")
}

// Inventory implements device.Driver. A card that does not answer is shown as it
// was last seen, with why it cannot be used; it holds up no other.
func (d *Driver) Inventory(ctx context.Context) ([]device.Card, error) {
	faults, err := d.faults.read()
	if err != nil {
		return nil, err
	}
	out := make([]device.Card, 0, len(d.cards))
	for _, c := range d.cards {
		now, err := d.look(ctx, c)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		seen, xid := c.remembered()
		switch {
		case err == nil:
			seen = now
		case !errors.Is(err, errSilent) || c.busy() > d.hung:
			seen.Health = err.Error()
		}
		if seen.Xid = xid; xid == 0 {
			seen.Xid = faults[c.uuid].Xid
		}
		if f := faults[c.uuid]; f.Xid != 0 {
			seen.Health = fmt.Sprintf("%s, since %s", gpu.LookupXid(f.Xid), f.At.UTC().Format("2 Jan 15:04:05"))
		}
		out = append(out, seen)
	}
	d.group(out)
	return out, nil
}

// look reads one card anew.
func (d *Driver) look(ctx context.Context, c *card) (device.Card, error) {
	return read(ctx, d, c, func() (device.Card, error) { return d.lookNow(c) })
}

// lookNow is look, in the card's turn.
func (d *Driver) lookNow(c *card) (device.Card, error) {
	now, err := d.readCard(c)
	if err != nil {
		c.dev = nil // look it up anew the next time: after a reset the old one is dead
		return now, err
	}
	c.remember(now)
	return now, nil
}

func (d *Driver) readCard(c *card) (device.Card, error) {
	dev, err := d.handle(c)
	if err != nil {
		return device.Card{}, err
	}
	now := device.Card{UUID: c.uuid, Model: c.fixed.model.ID, Name: c.fixed.name, MemoryMiB: c.fixed.memoryMiB, NUMANode: c.fixed.numa, PCI: c.fixed.pci, Driver: c.fixed.driver,
		Health: device.HealthOK, Node: c.fixed.node(), Nodes: c.fixed.nodes()}
	var ret nvml.Return
	if now.Index, ret = dev.GetIndex(); ret != nvml.SUCCESS {
		return now, problem(ret, "read the card's index")
	}
	mode, err := migMode(dev)
	if err != nil && !errors.Is(err, device.ErrNotSupported) {
		return now, err
	}
	now.MIG = mode.now
	if mode.now != mode.pending {
		now.Health = fmt.Sprintf("it needs a reset: MIG mode is %s and will be %s", onOff(mode.now), onOff(mode.pending))
	}
	if !now.MIG {
		c.live = nil
		now.Processes, err = processes(dev)
		d.learnLinks(c)
		c.tidy()
		return now, err
	}
	if c.live, err = d.readSlices(c); err != nil {
		return now, err
	}
	for _, l := range c.live {
		now.Slices = append(now.Slices, l.Slice)
	}
	c.tidy()
	return now, nil
}

// fixed is what does not change while a handle of the card holds.
type fixed struct {
	model     gpu.Model
	name      string
	memoryMiB int
	minor     int
	numa      int
	pci       string
	driver    string // its version
	gpm       bool
}

func (f fixed) node() string { return fmt.Sprintf("/dev/nvidia%d", f.minor) }

// handle is the card's handle; what is fixed is read with it.
func (d *Driver) handle(c *card) (nvml.Device, error) {
	if c.dev != nil {
		return c.dev, nil
	}
	dev, ret := d.lib.DeviceGetHandleByUUID(c.uuid)
	if ret == nvml.ERROR_NOT_FOUND { // the session began with it
		ret = nvml.ERROR_GPU_IS_LOST
	}
	if ret != nvml.SUCCESS {
		return nil, problem(ret, "find card %s", c.uuid)
	}
	var f fixed
	if f.name, ret = dev.GetName(); ret != nvml.SUCCESS {
		return nil, problem(ret, "read the card's name")
	}
	if f.minor, ret = dev.GetMinorNumber(); ret != nvml.SUCCESS {
		return nil, problem(ret, "read the card's minor number")
	}
	memory, ret := dev.GetMemoryInfo()
	if ret != nvml.SUCCESS {
		return nil, problem(ret, "read the card's memory")
	}
	f.memoryMiB = int(memory.Total >> 20)
	if pci, ret := dev.GetPciInfo(); ret == nvml.SUCCESS {
		f.pci = pciAddress(pci)
		f.numa = d.host.numaNode(f.pci)
	}
	if version, ret := d.lib.SystemGetDriverVersion(); ret == nvml.SUCCESS {
		f.driver = version
	}
	if d.hasGPM {
		gpm, ret := dev.GpmQueryDeviceSupport()
		f.gpm = ret == nvml.SUCCESS && gpm.IsSupportedDevice != 0
	}
	f.model, _ = gpu.Recognise(f.name)
	c.dev, c.fixed, c.table = dev, f, nil
	return dev, nil
}

// mode is a card's MIG mode. They differ while the card owes a reset.
type mode struct{ now, pending bool }

// migMode fails with device.ErrNotSupported where the card cannot be divided.
func migMode(dev nvml.Device) (mode, error) {
	now, pending, ret := dev.GetMigMode()
	if ret != nvml.SUCCESS {
		return mode{}, problem(ret, "read the MIG mode")
	}
	return mode{now == nvml.DEVICE_MIG_ENABLE, pending == nvml.DEVICE_MIG_ENABLE}, nil
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// processes lists what computes on a card or slice; empty where the library does
// not say, which is so without the right to.
func processes(dev nvml.Device) (out []device.Process, err error) {
	list, ret := dev.GetComputeRunningProcesses()
	switch ret {
	case nvml.SUCCESS:
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_NO_PERMISSION:
		return nil, nil
	default:
		return nil, problem(ret, "list the processes")
	}
	for _, p := range list {
		one := device.Process{PID: int(p.Pid)}
		if p.UsedGpuMemory != notAvailable {
			one.MemoryMiB = ptr(int64(p.UsedGpuMemory >> 20))
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b device.Process) int { return a.PID - b.PID })
	return out, nil
}

// notAvailable is NVML_VALUE_NOT_AVAILABLE as an unsigned number.
const notAvailable = ^uint64(0)

// held says who has a card or slice open, for an error.
func held(dev nvml.Device) string {
	list, err := processes(dev)
	if err != nil || len(list) == 0 {
		return "the driver does not say by whom; DCGM, an exporter or a device plugin would do"
	}
	var pids []string
	for _, p := range list {
		pids = append(pids, fmt.Sprint(p.PID))
	}
	return "by process " + strings.Join(pids, ", ")
}

// find returns the card that is uuid or has that slice, looking at all cards anew
// where none is known to. It fails with ErrNotFound, or with what keeps a card
// from being looked at: the slice may be there.
func (d *Driver) find(ctx context.Context, uuid string) (*card, error) {
	known := func() *card {
		for _, c := range d.cards {
			seen, _ := c.remembered()
			if c.uuid == uuid || slices.ContainsFunc(seen.Slices, func(s device.Slice) bool { return s.UUID == uuid }) {
				return c
			}
		}
		return nil
	}
	if c := known(); c != nil {
		return c, nil
	}
	var silent error
	for _, c := range d.cards {
		if _, err := d.look(ctx, c); err != nil {
			silent = err
		}
	}
	if c := known(); c != nil {
		return c, nil
	}
	if silent != nil {
		return nil, silent
	}
	return nil, fmt.Errorf("%w: %s", device.ErrNotFound, uuid)
}

func (d *Driver) card(uuid string) (*card, error) {
	for _, c := range d.cards {
		if c.uuid == uuid {
			return c, nil
		}
	}
	return nil, fmt.Errorf("%w: card %s", device.ErrNotFound, uuid)
}

func ptr[T any](v T) *T { return &v }

var _ device.Driver = (*Driver)(nil)
