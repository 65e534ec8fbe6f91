package models

import "berth/money"

// Want is what the portal wants a node to do with an instance.
type Want string

// The wishes, as package wire spells them too.
const (
	WantRunning Want = "running"
	WantStopped Want = "stopped"
	WantGone    Want = "gone"
)

// Instance is what a renter runs: an image on slices of one node.
type Instance struct {
	ID            InstanceID `gorm:"primaryKey"`
	AccountID     AccountID
	CreatedBy     UserID
	NodeID        NodeID
	Name          string
	SKU           string
	BillingMode   BillingMode
	PricePerHour  money.Rate
	Currency      string
	Image         string
	Command       []string          `gorm:"serializer:json"`
	Env           map[string]string `gorm:"serializer:json"`
	StartupScript string
	DiskGiB       int `gorm:"column:disk_gib"`
	MilliCPU      int
	MemoryMiB     int `gorm:"column:memory_mib"` // of the host
	State         InstanceState
	Reason        string // a code: exited, paid_until, devices …
	Detail        string // a sentence
	Why           string // why the placement was chosen, a sentence
	Want          Want
	Run           int     // counts starts: 1, 2 …
	PaidSeconds   int64   // this run may go on until its cumulative seconds reach this
	PullDone      int64   // bytes
	PullTotal     int64   // bytes; 0 unknown
	ClientKey     string  // the caller's Idempotency-Key; unique per account, empty when none was sent
	ClientHash    string  // of the request that came with it
	CreatedAt     Instant `gorm:"autoCreateTime:false"`
	RequestedAt   Instant // of this run
	ChangedAt     Instant // of State
	RunningAt     Instant // of this run; zero before
	EndedAt       Instant // of the last run; zero while one is on
}

// InstanceEvent is one line of an instance's history.
type InstanceEvent struct {
	InstanceID InstanceID `gorm:"primaryKey"`
	Seq        int64      `gorm:"primaryKey;autoIncrement:false"`
	At         Instant
	Kind       string        // the event: placed, node_running, stop_asked …
	From       InstanceState `gorm:"column:from_state"`
	To         InstanceState `gorm:"column:to_state"`
	Run        int
	Reason     string // a sentence
}
