package models

import "fmt"

// InstanceState is where an instance is in its life.
type InstanceState string

// The states of the contract. Interrupted is reached by spot instances only.
const (
	Queued      InstanceState = "queued"
	Placing     InstanceState = "placing"
	Pulling     InstanceState = "pulling"
	Starting    InstanceState = "starting"
	Running     InstanceState = "running"
	Stopping    InstanceState = "stopping"
	Stopped     InstanceState = "stopped"
	Failed      InstanceState = "failed"
	Interrupted InstanceState = "interrupted"
	Lost        InstanceState = "lost"
	Terminated  InstanceState = "terminated"
)

// InstanceStates lists all states in the order of a life.
var InstanceStates = []InstanceState{Queued, Placing, Pulling, Starting, Running, Stopping, Stopped, Failed, Interrupted, Lost, Terminated}

// InstanceEventKind is what can happen to an instance.
type InstanceEventKind string

// What renters ask, what nodes report, what the portal concludes.
const (
	Placed         InstanceEventKind = "placed"
	NodePulling    InstanceEventKind = "node_pulling"
	NodeStarting   InstanceEventKind = "node_starting"
	NodeRunning    InstanceEventKind = "node_running"
	NodeStopped    InstanceEventKind = "node_stopped" // ended well: asked for, exit 0, money ended
	NodeFailed     InstanceEventKind = "node_failed"  // ended badly; Reason says why
	NodeGone       InstanceEventKind = "node_gone"    // nothing of it is left on the node
	StopAsked      InstanceEventKind = "stop_asked"
	StartAsked     InstanceEventKind = "start_asked"
	RestartAsked   InstanceEventKind = "restart_asked"
	TerminateAsked InstanceEventKind = "terminate_asked"
	MoneyEnded     InstanceEventKind = "money_ended"   // the portal's own finding; the node usually is first
	NodeLost       InstanceEventKind = "node_lost"     // silent for too long
	NodeRetirement InstanceEventKind = "node_retired"  // by the operator: it never comes back
	NodeRebooted   InstanceEventKind = "node_rebooted" // the host restarted under it; the next run begins in its place
)

// MaintenanceNotice is the Kind of an event that moves nothing: a word to the
// renter about what is planned for the node.
const MaintenanceNotice = "maintenance_notice"

// InstanceEventKinds lists all events that move an instance.
var InstanceEventKinds = []InstanceEventKind{Placed, NodePulling, NodeStarting, NodeRunning, NodeStopped, NodeFailed, NodeGone,
	StopAsked, StartAsked, RestartAsked, TerminateAsked, MoneyEnded, NodeLost, NodeRetirement, NodeRebooted}

// MeterEffect is what a move does to the usage span of the run.
type MeterEffect string

// The effects on the meter.
const (
	MeterKeep           MeterEffect = "keep"
	MeterOpen           MeterEffect = "open"               // the first second paid is the first second usable
	MeterCap            MeterEffect = "cap now"            // nothing after this moment is paid: the renter does not pay for our clean-up
	MeterClose          MeterEffect = "close at report"    // at the node's cumulative seconds
	MeterCloseConfirmed MeterEffect = "close at confirmed" // at the last confirmed second
)

// LeaseEffect is what a move does to the leases of the instance.
type LeaseEffect string

// The effects on leases.
const (
	LeaseKeep    LeaseEffect = "keep"
	LeaseTake    LeaseEffect = "take"
	LeaseRelease LeaseEffect = "release" // only when the node said that the slice is free, or is no more itself
)

// Move is one allowed change of state with its effects.
type Move struct {
	From  InstanceState
	On    InstanceEventKind
	To    InstanceState
	Meter MeterEffect
	Lease LeaseEffect
}

// InstanceMoves is the whole life of an instance. What is absent is refused.
var InstanceMoves = []Move{
	{Queued, Placed, Placing, MeterKeep, LeaseTake},
	{Queued, TerminateAsked, Terminated, MeterKeep, LeaseKeep},

	{Placing, NodePulling, Pulling, MeterKeep, LeaseKeep},
	{Placing, NodeStarting, Starting, MeterKeep, LeaseKeep},
	{Placing, NodeRunning, Running, MeterOpen, LeaseKeep},
	{Placing, NodeStopped, Stopped, MeterKeep, LeaseRelease},
	{Placing, NodeFailed, Failed, MeterKeep, LeaseRelease},
	{Placing, StopAsked, Stopping, MeterKeep, LeaseKeep},
	{Placing, TerminateAsked, Stopping, MeterKeep, LeaseKeep},
	{Placing, NodeLost, Lost, MeterKeep, LeaseKeep},

	{Pulling, NodeStarting, Starting, MeterKeep, LeaseKeep},
	{Pulling, NodeRunning, Running, MeterOpen, LeaseKeep},
	{Pulling, NodeStopped, Stopped, MeterKeep, LeaseRelease},
	{Pulling, NodeFailed, Failed, MeterKeep, LeaseRelease},
	{Pulling, StopAsked, Stopping, MeterKeep, LeaseKeep},
	{Pulling, TerminateAsked, Stopping, MeterKeep, LeaseKeep},
	{Pulling, NodeLost, Lost, MeterKeep, LeaseKeep},

	{Starting, NodeRunning, Running, MeterOpen, LeaseKeep},
	{Starting, NodeStopped, Stopped, MeterKeep, LeaseRelease},
	{Starting, NodeFailed, Failed, MeterKeep, LeaseRelease},
	{Starting, StopAsked, Stopping, MeterKeep, LeaseKeep},
	{Starting, TerminateAsked, Stopping, MeterKeep, LeaseKeep},
	{Starting, NodeLost, Lost, MeterKeep, LeaseKeep},

	{Running, NodeStopped, Stopped, MeterClose, LeaseRelease},
	{Running, NodeFailed, Failed, MeterClose, LeaseRelease},
	{Running, StopAsked, Stopping, MeterCap, LeaseKeep},
	{Running, RestartAsked, Placing, MeterCap, LeaseKeep},
	{Running, NodeRebooted, Placing, MeterClose, LeaseKeep},
	{Running, TerminateAsked, Stopping, MeterCap, LeaseKeep},
	{Running, MoneyEnded, Stopping, MeterCap, LeaseKeep},
	{Running, NodeLost, Lost, MeterCloseConfirmed, LeaseKeep},

	{Stopping, NodeStopped, Stopped, MeterClose, LeaseRelease},
	{Stopping, NodeFailed, Stopped, MeterClose, LeaseRelease},
	{Stopping, NodeGone, Terminated, MeterClose, LeaseRelease},
	{Stopping, TerminateAsked, Stopping, MeterKeep, LeaseKeep},

	{Stopped, StartAsked, Placing, MeterKeep, LeaseTake},
	{Stopped, TerminateAsked, Stopping, MeterKeep, LeaseKeep},
	{Failed, StartAsked, Placing, MeterKeep, LeaseTake},
	{Failed, TerminateAsked, Stopping, MeterKeep, LeaseKeep},

	{Lost, NodeStopped, Stopped, MeterKeep, LeaseRelease},
	{Lost, NodeFailed, Stopped, MeterKeep, LeaseRelease},
	{Lost, NodeGone, Terminated, MeterKeep, LeaseRelease},
	{Lost, TerminateAsked, Stopping, MeterKeep, LeaseKeep},

	{Placing, NodeRetirement, Terminated, MeterKeep, LeaseRelease},
	{Pulling, NodeRetirement, Terminated, MeterKeep, LeaseRelease},
	{Starting, NodeRetirement, Terminated, MeterKeep, LeaseRelease},
	{Running, NodeRetirement, Terminated, MeterCloseConfirmed, LeaseRelease},
	{Stopping, NodeRetirement, Terminated, MeterCloseConfirmed, LeaseRelease},
	{Stopped, NodeRetirement, Terminated, MeterKeep, LeaseKeep},
	{Failed, NodeRetirement, Terminated, MeterKeep, LeaseKeep},
	{Lost, NodeRetirement, Terminated, MeterKeep, LeaseRelease},
}

// Next returns the move that on makes from s, or a Conflict naming both.
func (s InstanceState) Next(on InstanceEventKind) (Move, error) {
	for _, m := range InstanceMoves {
		if m.From == s && m.On == on {
			return m, nil
		}
	}
	return Move{}, &Problem{Code: Conflict, What: fmt.Sprintf("An instance that is %s cannot take %s.", s, on),
		Next: "Look at its page for what it can do now."}
}

// Can tells whether on is allowed from s.
func (s InstanceState) Can(on InstanceEventKind) bool {
	_, err := s.Next(on)
	return err == nil
}

// Active tells whether the instance holds, or is about to hold, slices.
func (s InstanceState) Active() bool {
	switch s {
	case Placing, Pulling, Starting, Running, Stopping, Lost:
		return true
	}
	return false
}
