// Package runtime says what a node's agent asks of whatever runs its instances:
// the sandbox driver now, container engines and clusters later. It owns the words
// both sides speak (Spec, Observed, Usage) and no behaviour of its own.
//
// What always holds, whichever driver: one run of an instance is named by
// (Instance, Run) and started at most once; Seconds never falls within a run and
// stands still after its end; an instance outlives the agent that started it.
package runtime

import (
	"context"
	"errors"
	"io"
	"time"
)

// ErrNotFound is returned for an instance (or a run of it) this node has no trace of.
var ErrNotFound = errors.New("no such instance on this node")

// ErrNotRunning is returned where a running instance is needed: it is still
// starting, or its run has ended.
var ErrNotRunning = errors.New("the instance is not running")

// ErrBusy is returned by Start while an earlier run of the same instance is alive.
// Stop it, see its end in Observe, then start again.
var ErrBusy = errors.New("an earlier run of this instance is still alive")

// Driver runs instances. All methods may be called from several goroutines at
// once; calls about one instance are carried out one after the other.
type Driver interface {
	// Probe finds out, by really starting something, how this host can run
	// instances. The answer is kept: later calls cost nothing.
	Probe(ctx context.Context) Info

	// Start begins a run and returns once it is on its own feet (it would go on
	// without the agent). What became of it shows in Observe. A run that was
	// started before, alive or ended, is left alone: nil.
	// It fails with ErrBusy while an earlier run is alive.
	Start(ctx context.Context, spec Spec) error

	// Stop ends the process tree of the newest run: SIGTERM, after grace SIGKILL.
	// The meter stops at the call, not at the last process's end. It returns when
	// nothing runs any more; the disk stays. Nothing to stop is success.
	Stop(ctx context.Context, instance string, grace time.Duration) error

	// Remove stops the instance without grace and erases its disk, logs and state.
	// Absent is success.
	Remove(ctx context.Context, instance string) error

	// SetPaidSeconds says how many seconds of the run are paid in all. When the
	// run's Seconds get there it is ended by its own shim, agent or no agent, with
	// CausePaid. Values of zero and below change nothing. A run that ended is
	// left alone: nil.
	SetPaidSeconds(ctx context.Context, instance string, run int, seconds int64) error

	// List returns the newest run of every instance this node knows, in order of
	// instance id, whoever started it.
	List(ctx context.Context) ([]Observed, error)

	// Observe returns one run; run 0 means the newest. ErrNotFound if unknown.
	Observe(ctx context.Context, instance string, run int) (Observed, error)

	// Watch sends the id of an instance whose state changed (running, exited).
	// Several changes of one instance may come as one. The channel closes when ctx
	// ends or the driver is closed. A reader should List once after opening it.
	Watch(ctx context.Context) <-chan string

	// Terminal attaches to a named shell inside the instance, starting it if need
	// be. ErrNotRunning while the run is starting or over.
	Terminal(ctx context.Context, instance string, req TerminalRequest) (Terminal, error)

	// Logs returns the output of a run (0: the newest): start-up script and
	// command. tail < 0 means all that is kept, else at most that many bytes from
	// the end. With follow the reader goes on until the run ends or it is closed.
	Logs(ctx context.Context, instance string, run int, tail int64, follow bool) (io.ReadCloser, error)

	// Usage returns what the newest run uses now. ErrNotRunning if it is over.
	Usage(ctx context.Context, instance string) (Usage, error)

	// Close lets go of the instances without touching them.
	Close() error
}

// Spec is everything a driver needs to start one run.
type Spec struct {
	Instance string `json:"instance"` // opaque id: letters, digits, '-', '_', '.'
	Run      int    `json:"run"`      // 1, 2, …: which start of this instance
	Name     string `json:"name"`     // the renter's name for it: becomes the host name

	// Command with its arguments; empty means none: the instance idles and is
	// used through terminals.
	Command []string `json:"command,omitempty"`
	// StartupScript runs once before Command, under its shebang or a shell.
	// It is the renter's own time: the run is Running, and counted, while it works.
	// If it fails the run ends.
	StartupScript string            `json:"startup_script,omitempty"`
	Env           map[string]string `json:"env,omitempty"` // the renter's; see CleanEnv

	DiskGiB   int64 `json:"disk_gib"`   // 0 means no stated size
	MilliCPU  int64 `json:"milli_cpu"`  // thousandths of a core; 0 means no limit
	MemoryMiB int64 `json:"memory_mib"` // 0 means no limit

	Devices   []DeviceGrant `json:"devices,omitempty"`
	SharedNet bool          `json:"shared_net"` // use the host's network instead of none

	// PaidSeconds is the first value of SetPaidSeconds; 0 and below: no limit yet.
	PaidSeconds int64 `json:"paid_seconds"`
}

// DeviceGrant is one device or slice that a run must see.
type DeviceGrant struct {
	UUID       string `json:"uuid"`                  // of the slice (MIG-…) or the whole device (GPU-…)
	ParentUUID string `json:"parent_uuid,omitempty"` // of the card, where UUID is a slice
	Name       string `json:"name,omitempty"`        // "NVIDIA A100 80GB PCIe"
	Profile    string `json:"profile,omitempty"`     // "1g.10gb"; empty for a whole device
	MemoryMiB  int64  `json:"memory_mib"`

	// Node is a file of the host that stands for the device, shown inside in its
	// place. If it is missing at start the device is not visible and the run
	// fails. Empty: the driver makes a stand-in of its own.
	Node string `json:"node,omitempty"`
	// Nodes are the device nodes of the host that a program needs to compute on
	// it, shown inside under their own names; several grants may share some.
	Nodes []string `json:"nodes,omitempty"`
}

// Terminal is a renter's end of a shell: Read its output, Write its input. Read
// returns io.EOF when the shell or the run ends, or when the reader was too slow
// to follow. Close detaches and leaves the shell running.
type Terminal interface {
	io.ReadWriteCloser
	// Resize tells the shell its new size; the latest of several attachers wins.
	Resize(cols, rows int) error
}

// TerminalRequest says which shell to attach to.
type TerminalRequest struct {
	Session string // empty means "main"
	Cols    int    // 0 means 80
	Rows    int    // 0 means 24
	Term    string // $TERM of a shell started by this call; empty means xterm-256color
}

// Usage is what a run consumes.
type Usage struct {
	CPUSeconds  float64    `json:"cpu_seconds"`  // of all its processes since start; never falls
	MemoryBytes int64      `json:"memory_bytes"` // resident, without file cache
	Processes   int        `json:"processes"`    // the renter's, without the sandbox's own
	Load        LoadTarget `json:"load"`
}

// LoadTarget is what the renter asked of the simulated devices with `berth-load`.
// The zero value means nothing is asked.
type LoadTarget struct {
	Active             bool    `json:"active"`
	UtilizationPercent float64 `json:"utilization_percent"` // 0–100, of each granted device
	MemoryMiB          int64   `json:"memory_mib"`          // of each granted device
}

// Add joins two wishes: utilisation adds up to at most 100 %.
func (l LoadTarget) Add(o LoadTarget) LoadTarget {
	return LoadTarget{
		Active:             l.Active || o.Active,
		UtilizationPercent: min(100, l.UtilizationPercent+o.UtilizationPercent),
		MemoryMiB:          l.MemoryMiB + o.MemoryMiB,
	}
}
