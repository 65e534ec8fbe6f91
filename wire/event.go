package wire

import "time"

// Event is a fact that costs money: a run entered a phase. The agent journals
// it on disk before it acts further, and keeps it until acknowledged. The same
// event may be sent more than once; Seq tells.
type Event struct {
	Seq      int64     `json:"seq"`
	BootID   string    `json:"boot_id"`
	At       time.Time `json:"at"` // the node's clock: shown, never billed by
	Instance string    `json:"instance"`
	Run      int       `json:"run"`
	Phase    Phase     `json:"phase"`
	Reason   string    `json:"reason,omitempty"`
	Detail   string    `json:"detail,omitempty"`
	ExitCode *int      `json:"exit_code,omitempty"`
	Seconds  int64     `json:"seconds"`
	Progress Progress  `json:"progress"`
	Slices   []Slice   `json:"slices,omitempty"`
}

// Tick is the node's second: what the meter and the charts read. Losing one
// loses nothing, since Seconds are cumulative.
type Tick struct {
	Seq       int64            `json:"seq"` // grows by one a second while the agent lives
	BootID    string           `json:"boot_id"`
	At        time.Time        `json:"at"`
	Devices   []DeviceSample   `json:"devices"`
	Instances []InstanceSample `json:"instances"`
	// Inventory is that of State as of this second: another number than that of
	// the State that was read last says to read it again.
	Inventory int64 `json:"inventory"`
}

// DeviceSample is a whole card. A reading the device does not give is nil.
type DeviceSample struct {
	UUID               string   `json:"uuid"`
	UtilizationPercent *float64 `json:"utilization_percent"`
	MemoryMiB          *int64   `json:"memory_mib"`
	TemperatureC       *float64 `json:"temperature_c"`
	PowerW             *float64 `json:"power_w"`
}

// InstanceSample is what an instance's slices do, and its meter.
type InstanceSample struct {
	ID                 string   `json:"id"`
	Run                int      `json:"run"`
	Phase              Phase    `json:"phase"`
	Seconds            int64    `json:"seconds"`
	Progress           Progress `json:"progress"`
	UtilizationPercent *float64 `json:"utilization_percent"` // of the slice
	MemoryMiB          *int64   `json:"memory_mib"`          // used in the slice
	TemperatureC       *float64 `json:"temperature_c"`       // of the card: there is only one
	PowerW             *float64 `json:"power_w"`             // whole cards only; nil for a slice, which has no meter of its own
}

// TerminalProtocol is the Upgrade value of POST /v1/instances/{id}/exec. After
// the 101 both sides write frames: one byte kind, four bytes big-endian length,
// payload. The query names the terminal session (?session=main&cols=&rows=);
// the same session is attached again after any break, its recent output first.
const TerminalProtocol = "berth-terminal"

// Frame kinds of TerminalProtocol.
const (
	FrameData   byte = 'd' // bytes, both ways
	FrameResize byte = 'r' // JSON Resize, portal to agent
	FrameExit   byte = 'x' // the shell ended, agent to portal; payload is a sentence
)

// MaxFrame is the largest payload of a frame, in bytes.
const MaxFrame = 64 << 10

// Resize is a terminal's new size in cells.
type Resize struct {
	Cols int `json:"cols"`
	Rows int `json:"rows"`
}
