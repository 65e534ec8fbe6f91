package runtime

import (
	"fmt"
	"time"
)

// Phase is where a run stands.
type Phase string

const (
	Starting Phase = "starting" // being set up and probed; free
	Running  Phase = "running"  // usable, and counted
	Stopping Phase = "stopping" // told to end; no longer counted
	Exited   Phase = "exited"   // over; says why in Cause and Reason
)

// Over reports whether nothing of the run is left.
func (p Phase) Over() bool { return p == Exited }

// Cause is why a run ended, for programs; Reason says it to people.
type Cause string

const (
	CauseNone    Cause = ""          // it has not ended
	CauseExit    Cause = "exit"      // the renter's command ended; see ExitCode
	CauseStopped Cause = "stopped"   // Stop or Remove
	CausePaid    Cause = "paid"      // the paid seconds are used up
	CauseStartup Cause = "startup"   // the start-up script failed
	CauseCommand Cause = "command"   // the command could not be started
	CauseDevices Cause = "devices"   // not every granted device was visible inside
	CauseMemory  Cause = "memory"    // killed at its memory limit
	CauseDisk    Cause = "disk"      // its disk held more than it may
	CauseNode    Cause = "node"      // the host could not set the sandbox up
	CauseLost    Cause = "shim_lost" // its shim was killed; the tree went with it
	CauseReboot  Cause = "reboot"    // the host restarted under it
)

// ReasonPaid is the Reason of a run that used up its paid seconds.
const ReasonPaid = "paid_until"

// NodeFault reports whether the end was the host's doing rather than the renter's.
func (c Cause) NodeFault() bool {
	return c == CauseDevices || c == CauseNode || c == CauseLost || c == CauseReboot
}

// Observed is what is known of one run now.
type Observed struct {
	Instance string `json:"instance"`
	Run      int    `json:"run"`
	Phase    Phase  `json:"phase"`
	Cause    Cause  `json:"cause,omitempty"`
	Reason   string `json:"reason,omitempty"`
	ExitCode *int   `json:"exit_code,omitempty"` // of the command; 128+n when killed by signal n; nil if it did not end by itself

	// Seconds is how long this run was usable, in whole seconds rounded down: from
	// ReadyAt to the call of Stop, the paid limit, or the end, by the monotonic
	// clock (time the host was suspended does not count). It never falls. This is
	// what is charged.
	Seconds     int64 `json:"seconds"`
	PaidSeconds int64 `json:"paid_seconds,omitempty"` // the limit in force; 0: none

	StartedAt time.Time `json:"started_at"`         // UTC; when the shim began
	ReadyAt   time.Time `json:"ready_at,omitzero"`  // UTC, zero if it was never usable
	ExitedAt  time.Time `json:"exited_at,omitzero"` // UTC, zero while alive
	BootID    string    `json:"boot_id"`            // the host's boot the run belongs to

	VisibleDevices []string `json:"visible_devices"` // UUIDs that the probe inside really saw
	Rung           Rung     `json:"rung"`            // how it is isolated
}

// Rung is a step of the ladder of isolation, best first.
type Rung string

const (
	RungRoot    Rung = "sandbox (root)"   // namespaces made by root, a user id of its own
	RungUserNS  Rung = "sandbox (userns)" // namespaces inside a user namespace
	RungProcess Rung = "process"          // a user id of its own at best; no isolation, demo only
)

// Info is what Probe found.
type Info struct {
	Driver   string    `json:"driver"` // "sandbox"
	Rung     Rung      `json:"rung"`   // the one in use; empty if none works
	Isolated bool      `json:"isolated"`
	Tried    []Attempt `json:"tried"` // best first, up to the one in use
	Limits   Limits    `json:"limits"`
}

// Usable reports whether instances can be started at all.
func (i Info) Usable() bool { return i.Rung != "" }

// Summary says it in one line for the node's page and the terminal.
func (i Info) Summary() string {
	line := "instances cannot be started here"
	switch {
	case i.Rung == RungProcess:
		line = "process: no isolation, demo only"
	case i.Usable():
		line = string(i.Rung) + ": own processes, files and network view"
	}
	if i.Usable() {
		line += fmt.Sprintf("; limits: cpu %s, memory %s, processes %s, disk %s", i.Limits.CPU, i.Limits.Memory, i.Limits.Pids, i.Limits.Disk)
	}
	for _, a := range i.Tried {
		if a.Problem != "" {
			line += fmt.Sprintf(" (%s: %s)", a.Rung, a.Problem)
		}
	}
	return line
}

// Attempt is one rung that was tried.
type Attempt struct {
	Rung    Rung   `json:"rung"`
	Problem string `json:"problem,omitempty"` // why it does not work; empty if it does
}

// Enforcement says whether a limit holds.
type Enforcement string

const (
	Enforced Enforcement = "enforced" // by the kernel, for the whole tree
	Watched  Enforcement = "watched"  // looked at every few seconds; a run above it is ended
	Advisory Enforcement = "advisory" // per process or not at all
)

// Limits says which limits of a Spec hold on this host.
type Limits struct {
	CPU    Enforcement `json:"cpu"`
	Memory Enforcement `json:"memory"`
	Pids   Enforcement `json:"pids"`
	Disk   Enforcement `json:"disk"`
}
