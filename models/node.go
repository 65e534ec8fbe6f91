package models

import "berth/gpu"

// Node states.
const (
	NodeOnline  = "online"
	NodeOffline = "offline"
	NodeRetired = "retired" // by the operator, for good: it is history
)

// Node is a host that runs an agent. Its identity is its key.
type Node struct {
	ID           NodeID `gorm:"primaryKey"`
	Name         string // unique
	PublicKey    []byte
	State        string
	Generation   int64 // of its desired state; grows with each change
	EventSeq     int64 // the last journalled event taken in
	BootID       string
	AgentVersion string
	Host         []byte // wire.Host as JSON, as last reported
	ClockSkewMS  int64  // node clock − portal clock at the last state
	SeenAt       Instant
	CreatedAt    Instant `gorm:"autoCreateTime:false"`
	Cordoned     bool    // by the operator: what runs goes on, nothing new starts

	// When it is worked on: nothing new starts once that is planned, and what runs
	// is stopped at MaintenanceFrom. Until is 0 when the end is not known, both are
	// when nothing is planned.
	MaintenanceFrom, MaintenanceUntil Instant
}

// Sells tells whether something new may start on a node.
func (n Node) Sells() bool { return n.State == NodeOnline && n.Open() }

// Open tells whether the operator lets something new start on a node.
func (n Node) Open() bool { return !n.Cordoned && n.MaintenanceFrom == 0 }

// Device states.
const (
	DeviceOK     = "ok"
	DeviceAbsent = "absent" // its node no longer reports it
	DeviceSick   = "sick"   // reported, but not sold; Detail says why
)

// Device is one accelerator in a node, by the UUID its driver gives.
type Device struct {
	UUID      string `gorm:"primaryKey"`
	NodeID    NodeID
	Index     int
	Model     gpu.ModelID
	Name      string
	MemoryMiB int `gorm:"column:memory_mib"`
	State     string
	Detail    string
	MIG       bool
	LinkGroup int             // cards of one node with equal ones above 0 reach each other by NVLink
	NUMANode  int             `gorm:"column:numa_node"` // the host's processors and memory that are nearest
	Slices    []gpu.Placement `gorm:"serializer:json"`  // on the card at the node's last word, leased or not
	Profiles  []gpu.Profile   `gorm:"serializer:json"`  // its own table of slice profiles, where that is not Berth's
	Layout    []gpu.Placement `gorm:"serializer:json"`  // as the operator wants it divided; empty: as is asked for
	Sharing   string          // as the operator wants it shared: a share's name or SharingNone; empty: as is usual for its model
	Mixed     bool            // its shares may be of several accounts
}

// SharingNone is the Sharing of a card that is not shared whatever its model.
const SharingNone = "none"

// Share is how the card is shared.
func (d Device) Share() gpu.Share {
	if s, err := gpu.ParseShare(d.Sharing); err == nil || d.Sharing != "" {
		return s
	}
	m, err := gpu.Lookup(d.Model)
	if err != nil {
		return gpu.Share{}
	}
	return m.DefaultShare
}

// GPU is the card's model, with the card's own table of slice profiles where that
// is not Berth's (the driver wins), or with the shares that it is sold in. It fails with gpu.ErrUnknownModel.
func (d Device) GPU() (gpu.Model, error) {
	m, err := gpu.Lookup(d.Model)
	if err != nil {
		return m, err
	}
	return m.WithDriver(d.Profiles).WithShare(d.Share()), nil
}

// DeviceEvent is a card that was seen in another state than before.
type DeviceEvent struct {
	DeviceUUID string `gorm:"primaryKey"`
	Seq        int64  `gorm:"primaryKey;autoIncrement:false"` // of the card
	At         Instant
	NodeID     NodeID // where it was seen
	State      string
	Detail     string
}

// Lease is the hold of one slice by one run of an instance, until released.
type Lease struct {
	ID         string `gorm:"primaryKey"`
	InstanceID InstanceID
	AccountID  AccountID
	NodeID     NodeID
	DeviceUUID string
	Profile    string
	Start      int
	Size       int
	MemoryMiB  int     `gorm:"column:memory_mib"`
	CreatedAt  Instant `gorm:"autoCreateTime:false"`
	ReleasedAt Instant
}

// Placement is where the lease lies on its device.
func (l Lease) Placement() gpu.Placement {
	return gpu.Placement{Profile: l.Profile, Start: l.Start, Size: l.Size}
}

// LeaseUnit is one placement unit of one device while leased. Its primary key
// is what makes a doubly sold slice impossible.
type LeaseUnit struct {
	DeviceUUID string `gorm:"primaryKey"`
	Unit       int    `gorm:"primaryKey;autoIncrement:false"`
	LeaseID    string
}

// JoinToken lets one node join, once, before it expires. Only its hash is kept.
type JoinToken struct {
	Hash      string `gorm:"primaryKey"`
	CreatedBy UserID
	CreatedAt Instant `gorm:"autoCreateTime:false"`
	ExpiresAt Instant
	UsedAt    Instant
	NodeID    NodeID
}
