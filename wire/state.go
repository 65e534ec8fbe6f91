package wire

import (
	"time"

	"berth/gpu"
)

// Want is what the portal wants of an instance on the node.
type Want string

// The three wishes. The agent converges on them again and again.
const (
	WantRunning Want = "running"
	WantStopped Want = "stopped" // no process; its slices are given back, its disk is kept
	WantGone    Want = "gone"    // as stopped, and the disk is erased; absent is success
)

// Desired is the node's whole desired state. What the agent holds and no entry
// explains is ended. Generation grows with each change; an agent never acts on
// a lower one than it has seen.
type Desired struct {
	Generation int64             `json:"generation"`
	Instances  []DesiredInstance `json:"instances"`
	Layouts    []Layout          `json:"layouts,omitempty"` // cards divided once and for all; the others as is asked for
}

// Layout is how a card is to be divided: slices that lie ready for instances.
type Layout struct {
	DeviceUUID string          `json:"device_uuid"`
	Placements []gpu.Placement `json:"placements"`
}

// DesiredInstance is one instance's part. Run counts its starts (1, 2 …): a
// running process of a lower run is replaced, which is how restart works.
type DesiredInstance struct {
	ID          string  `json:"id"`
	Run         int     `json:"run"`
	Want        Want    `json:"want"`
	Spec        Spec    `json:"spec"`
	Slices      []Slice `json:"slices"`
	PaidSeconds int64   `json:"paid_seconds"` // this run ends by itself when its cumulative running seconds reach this
}

// Slice is one granted part of one device.
type Slice struct {
	DeviceUUID string        `json:"device_uuid"`
	Placement  gpu.Placement `json:"placement"`
	MemoryMiB  int           `json:"memory_mib"`
}

// Spec is what to run.
type Spec struct {
	Name          string            `json:"name"`
	Image         string            `json:"image"`
	Command       []string          `json:"command,omitempty"` // empty: the image's idle process, used by terminal
	Env           map[string]string `json:"env,omitempty"`
	StartupScript string            `json:"startup_script,omitempty"`
	DiskGiB       int               `json:"disk_gib"`
	MilliCPU      int               `json:"milli_cpu"` // 1000 = one core
	MemoryMiB     int               `json:"memory_mib"`
}

// Phase is where an instance's run is on the node.
type Phase string

// The phases a run goes through on a node.
const (
	PhaseSlicing  Phase = "slicing"  // its slices are being made
	PhasePulling  Phase = "pulling"  // the image is on its way; Progress tells how far
	PhaseStarting Phase = "starting" // processes start, the devices inside are probed
	PhaseRunning  Phase = "running"  // usable: Seconds counts
	PhaseStopping Phase = "stopping"
	PhaseStopped  Phase = "stopped" // no process, no slices; Reason says why
	PhaseGone     Phase = "gone"    // and no disk
)

// Reason codes of PhaseStopped. A free sentence stands beside them in Detail.
const (
	ReasonAsked      = "asked"        // the portal wanted it stopped
	ReasonExited     = "exited"       // its own command ended; ExitCode tells how
	ReasonPaidUntil  = "paid_until"   // it reached PaidSeconds
	ReasonDisk       = "disk_full"    // its disk held more than it may
	ReasonStartup    = "startup"      // the start-up script failed
	ReasonCommand    = "command"      // its command could not be started
	ReasonDevices    = "devices"      // fewer devices visible inside than granted
	ReasonSlices     = "slices"       // the slices could not be made
	ReasonImage      = "image"        // unknown image, or the pull failed
	ReasonNode       = "node"         // the node's own fault
	ReasonFault      = "device_fault" // a card under it failed; Detail says how
	ReasonSupervisor = "supervisor"   // its shim was killed; seconds are the last ones it wrote
	ReasonRebooted   = "rebooted"     // the host restarted
	ReasonUnexpected = "unexplained"  // no desired entry explained it
)

// Observed is what the node really has of an instance.
type Observed struct {
	ID       string   `json:"id"`
	Run      int      `json:"run"`
	Phase    Phase    `json:"phase"`
	Reason   string   `json:"reason,omitempty"`
	Detail   string   `json:"detail,omitempty"`
	ExitCode *int     `json:"exit_code,omitempty"`
	Seconds  int64    `json:"seconds"` // whole cumulative running seconds of this run, monotonic clock
	Progress Progress `json:"progress"`
	Slices   []Slice  `json:"slices,omitempty"` // held right now
}

// Progress of a pull, in bytes; zero Total is unknown.
type Progress struct {
	Done  int64 `json:"done"`
	Total int64 `json:"total"`
}

// State is a snapshot of the node.
type State struct {
	Version      int        `json:"version"` // wire version
	AgentVersion string     `json:"agent_version"`
	BootID       string     `json:"boot_id"`    // of the host
	Generation   int64      `json:"generation"` // the highest desired generation acted on
	LastEvent    int64      `json:"last_event"` // the journal's newest sequence number
	At           time.Time  `json:"at"`         // the node's clock, for showing skew only
	Host         Host       `json:"host"`
	Devices      []Device   `json:"devices"`
	Instances    []Observed `json:"instances"`
	Inventory    int64      `json:"inventory"` // grows when a card comes, goes, sickens or is well again
}

// Host is the machine, as sold. When Simulated, MilliCPU and MemoryMiB describe
// the simulated host, not the machine the simulator runs on.
type Host struct {
	Name      string  `json:"name"`
	Kernel    string  `json:"kernel"`
	MilliCPU  int     `json:"milli_cpu"`
	MemoryMiB int     `json:"memory_mib"`
	DiskGiB   int     `json:"disk_gib"`
	Simulated bool    `json:"simulated"` // the devices are a simulator's
	Runtime   Runtime `json:"runtime"`
	// Sharing names the kinds of shares that the node can grant, such as
	// gpu.TimeShare; an agent from before shares names none.
	Sharing []string `json:"sharing,omitempty"`
}

// Runtime says how instances are run on this node and how that was found out.
type Runtime struct {
	Driver string            `json:"driver"` // sandbox, docker …
	Mode   string            `json:"mode"`   // the rung in use
	Ladder []Rung            `json:"ladder"` // best first
	Limits map[string]string `json:"limits"` // cpu, memory, pids, disk → enforced | watched | advisory
	Images []string          `json:"images"` // what can be launched here
}

// Rung is one way of isolating instances, tried by really starting something.
type Rung struct {
	Mode   string `json:"mode"`
	Works  bool   `json:"works"`
	Detail string `json:"detail"` // why not, or what it gives
}

// Device is one accelerator as the driver reports it.
type Device struct {
	UUID      string          `json:"uuid"`
	Index     int             `json:"index"`
	Model     gpu.ModelID     `json:"model"`
	Name      string          `json:"name"` // as the driver prints it
	MemoryMiB int             `json:"memory_mib"`
	MIG       bool            `json:"mig"`                  // mode now
	LinkGroup int             `json:"link_group,omitempty"` // cards with equal ones above 0 reach each other by NVLink
	NUMANode  int             `json:"numa_node,omitempty"`
	Health    string          `json:"health"` // ok, or why it is not sold
	Slices    []gpu.Placement `json:"slices"` // that exist on the device now
	// Profiles is the device's own table of slice profiles, where it is not the
	// one Berth has of the model. It wins.
	Profiles []gpu.Profile `json:"profiles,omitempty"`
}
