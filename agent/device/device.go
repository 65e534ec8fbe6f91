// Package device says what a node's agent asks of its accelerators: list them,
// make and destroy slices at places it has chosen, read them. It knows no
// geometry (that is package gpu) and no instances. A driver executes explicit
// placements only; left to choose, a vendor's driver scatters small slices and a
// later large one fails.
//
// What always holds, whichever driver: cards and slices are named by UUID, never
// by index, since indexes move; every Inventory is read anew from the device.
package device

import (
	"context"
	"errors"

	"berth/gpu"
)

var (
	// ErrNotFound: no card or slice of that UUID is there.
	ErrNotFound = errors.New("no such device")
	// ErrNoRoom: the card is full, or that place is taken. Drivers answer both
	// alike (NVML's INSUFFICIENT_RESOURCES), so read the inventory and plan anew.
	ErrNoRoom = errors.New("insufficient resources")
	// ErrInUse: a process still holds the slice or the card. It passes by itself
	// when the process ends; retry.
	ErrInUse = errors.New("in use by another client")
	// ErrNotSupported: the card cannot be divided, or not like that. Do not retry.
	ErrNotSupported = errors.New("not supported")
	// ErrResetRequired: the card takes on its MIG mode with a reset only, and a
	// driver never resets by itself. The operator does, when the card is empty.
	ErrResetRequired = errors.New("the GPU needs a reset")
	// ErrPermission: the agent may not do that on this host. Do not retry.
	ErrPermission = errors.New("no permission")
	// ErrLost: the card does not answer any more.
	ErrLost = errors.New("the GPU is lost")
)

// Driver reaches the accelerators of one node. All methods may be called from
// several goroutines at once; a driver carries out changes of one card one after
// the other.
type Driver interface {
	// Inventory reads what is there now: all cards, in a fixed order, with their
	// slices in the order of their starts.
	Inventory(ctx context.Context) ([]Card, error)

	// Create makes a slice of a profile at a start and returns what the device
	// then says of it: compare. A card that is not in MIG mode is switched to it
	// by its first slice. A creation that fails half-way leaves nothing behind.
	// It fails with ErrNotFound, ErrNoRoom, ErrInUse (the whole card is held),
	// ErrNotSupported, ErrResetRequired, ErrPermission or ErrLost.
	Create(ctx context.Context, card, profile string, start int) (Slice, error)

	// Destroy removes a slice by its UUID; absent is success. With its last slice
	// a card leaves MIG mode, if it can now and that costs no reset; one that has
	// to be reset for it (Ampere) stays, ready for the next slice, until Undivide.
	// It fails with ErrInUse while a process holds the slice, ErrPermission or
	// ErrLost.
	Destroy(ctx context.Context, slice string) error

	// Undivide takes a card without slices out of MIG mode, in which nobody can
	// use it whole; a card that is not in it stays as it is. It fails with
	// ErrNotFound, ErrInUse (slices, or a process), ErrResetRequired,
	// ErrPermission or ErrLost.
	Undivide(ctx context.Context, card string) error

	// Profiles reads the card's own table of slice profiles; empty where it
	// cannot be divided. It fails with ErrNotFound or ErrLost. A driver that does
	// not tell starts while the card is undivided leaves Starts nil.
	Profiles(ctx context.Context, card string) ([]gpu.Profile, error)

	// Sample reads a card or a slice. It fails with ErrNotFound or ErrLost; what
	// the device does not measure is nil in the reading.
	Sample(ctx context.Context, uuid string) (Reading, error)
}

// Card is one accelerator.
type Card struct {
	UUID      string
	Index     int // as the driver counts now: for people only
	Model     gpu.ModelID
	Name      string // as the driver prints it
	MemoryMiB int
	LinkGroup int    // cards with equal ones above 0 reach each other by NVLink
	NUMANode  int    // of the host: whose processors and memory are nearest
	MIG       bool   // mode now
	Health    string // HealthOK, or why it cannot be used
	Xid       int    // the last fault that the driver reported by number; 0: none
	PCI       string // its address on the bus as the kernel writes it, "0000:07:00.0"; empty where not known
	Driver    string // the version of the vendor's driver; "simulated" without one
	Node      string // see Slice.Node
	Nodes     []string
	Slices    []Slice
	Processes []Process // that compute on the card while it is undivided
}

// Process is a program that has a card open.
type Process struct {
	PID       int    // on the host; a simulated one has a made-up number
	MemoryMiB *int64 // on the card; nil where the driver does not say
}

// HealthOK is the Health of a card that can be used.
const HealthOK = "ok"

// Slice is a part of a card that exists on the device now.
type Slice struct {
	UUID      string
	Card      string // UUID of its card
	Placement gpu.Placement
	MemoryMiB int
	// Node is the file on the host by which a process reaches the device; it is
	// shown inside an instance that is granted it. Empty where a container engine
	// finds it by the UUID.
	Node string
	// Nodes are the device nodes, as the host names them, that a program needs to
	// compute there; they are shown inside under the same names. None for a
	// simulated device.
	Nodes []string
	// GPUInstance is the driver's number for it on its card. It names a slice in
	// metrics and in faults; it is no place, and another slice has it later.
	GPUInstance int
	// HalfMade says that only a part of it is there: its making or unmaking was
	// cut off. It takes its place, cannot be used, and can be destroyed.
	HalfMade bool
}

// Reading is what a device says of itself at one moment.
type Reading struct {
	UtilizationPercent *float64 // of the card or of the slice; nil for a card in MIG mode
	// EngineActive is the share of time, 0 to 1, that the graphics engine was active
	// by the profiling counters. Only cards for data centres have those; of a slice
	// they are the only measure. It is never made from the plain counter.
	EngineActive      *float64
	MemoryMiB         *int64   // used
	TemperatureC      *float64 // of the card, there is only one
	PowerW            *float64 // cards only: a slice has no meter of its own
	EnergyMJ          *int64   // in millijoule since the driver was loaded; cards only
	SMClockMHz        *int     // cards only
	MemoryClockMHz    *int     // cards only
	MemoryBusyPercent *float64 // share of time in which device memory was read or written; undivided cards only
}

// Follower is a driver without hardware. Real devices feel their processes by
// themselves; a simulated one is told who holds a device and what it does there.
type Follower interface {
	// Occupy says that a holder has the device (card or slice) open. Repeating
	// it changes nothing.
	Occupy(uuid, holder string)
	// Load says what a holder of the device does on it: activity is 0 to 1 of the
	// device's compute. Holders unknown to Occupy are passed over.
	Load(uuid, holder string, activity float64, memoryMiB int64)
	// Used is the memory in MiB that a holder has on the device now; ok is false
	// for holders that Occupy does not know.
	Used(uuid, holder string) (memoryMiB int64, ok bool)
	// Vacate says that the holder is gone.
	Vacate(uuid, holder string)
}
