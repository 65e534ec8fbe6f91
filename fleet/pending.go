package fleet

// The bodies of these are being written; the signatures hold.

import (
	"context"
	"crypto/ed25519"
	"errors"

	"berth/gpu"
	"berth/models"
	"berth/money"
	"berth/wire"
)

var errPending = errors.New("not written yet")

type inventory struct{}

// Offer is a SKU in a billing mode at a price now.
type Offer struct {
	ID           string // "<sku>:<billing mode>"
	SKU          gpu.SKU
	Model        gpu.Model
	Profile      gpu.Profile
	BillingMode  models.BillingMode
	PricePerHour money.Rate
	Currency     string
	Available    int // can really be placed now
	Total        int // with every card of online nodes empty
	MilliCPU     int // share of the host
	MemoryMiB    int // share of the host
	Simulated    bool
}

// Landing says where a launch would land now.
type Landing struct {
	Node   models.Node
	Slices []LandingSlice
	Why    string
	// MaxDiskGiB is what that node has free; Images what it offers.
	MaxDiskGiB int
	Images     []string
	Simulated  bool
}

// LandingSlice is one slice of a landing beside what lies on its card already.
type LandingSlice struct {
	Device    models.Device
	Model     gpu.Model
	Placement gpu.Placement
	Used      []gpu.Placement
}

// Offers returns what can be sold now; sku filters by id, empty for all.
func (s *Service) Offers(ctx context.Context, sku string, at models.Instant) ([]Offer, error) {
	return nil, errPending
}

// Images returns what can be launched on online nodes now, sorted.
func (s *Service) Images(ctx context.Context) ([]string, error) { return nil, errPending }

// Preview says where a SKU would land now; NoCapacity when nowhere.
func (s *Service) Preview(ctx context.Context, sku string) (Landing, error) {
	return Landing{}, errPending
}

// Launch places, holds money and inserts, in one transaction.
func (s *Service) Launch(ctx context.Context, o Order, at models.Instant) (models.Instance, error) {
	return models.Instance{}, errPending
}

func (s *Service) Stop(ctx context.Context, account models.AccountID, id models.InstanceID, at models.Instant) (models.Instance, error) {
	return models.Instance{}, errPending
}
func (s *Service) Start(ctx context.Context, account models.AccountID, id models.InstanceID, at models.Instant) (models.Instance, error) {
	return models.Instance{}, errPending
}
func (s *Service) Restart(ctx context.Context, account models.AccountID, id models.InstanceID, at models.Instant) (models.Instance, error) {
	return models.Instance{}, errPending
}
func (s *Service) Terminate(ctx context.Context, account models.AccountID, id models.InstanceID, at models.Instant) (models.Instance, error) {
	return models.Instance{}, errPending
}

// StopMany stops those that can be stopped; refused says why others were not.
func (s *Service) StopMany(ctx context.Context, account models.AccountID, ids []models.InstanceID, at models.Instant) (stopped []models.Instance, refused map[models.InstanceID]error, err error) {
	return nil, nil, errPending
}

// InstanceFilter narrows a list. The zero value lists all that are not terminated.
type InstanceFilter struct {
	States     []models.InstanceState // empty: every state but terminated
	Terminated bool                   // with no States: terminated ones too
}

// InstanceView is an instance with what a page or the API shows of it.
type InstanceView struct {
	models.Instance
	NodeName  string
	NodeState string
	Simulated bool
	Slices    []SliceView      // held now
	Span      models.UsageSpan // of this run; ID empty before it ran
}

// SliceView is one held slice with its card.
type SliceView struct {
	models.Lease
	Device models.Device
	Model  gpu.Model
	Others []gpu.Placement // what else lies on the card
}

// Instances lists an account's instances, newest first.
func (s *Service) Instances(ctx context.Context, account models.AccountID, f InstanceFilter, cursor string, limit int) (list []InstanceView, next string, err error) {
	return nil, "", errPending
}

// Instance reads one; NotFound also when it is another account's.
func (s *Service) Instance(ctx context.Context, account models.AccountID, id models.InstanceID) (InstanceView, error) {
	return InstanceView{}, errPending
}

// Events returns the history after a sequence number, oldest first.
func (s *Service) Events(ctx context.Context, account models.AccountID, id models.InstanceID, after int64) ([]models.InstanceEvent, error) {
	return nil, errPending
}

// CreateJoinToken makes a one-time token; it is shown this once.
func (s *Service) CreateJoinToken(ctx context.Context, user models.UserID, at models.Instant) (string, models.JoinToken, error) {
	return "", models.JoinToken{}, errPending
}
func (s *Service) Join(ctx context.Context, req wire.JoinRequest, at models.Instant) (wire.JoinResponse, error) {
	return wire.JoinResponse{}, errPending
}
func (s *Service) NodeKey(ctx context.Context, id models.NodeID) (ed25519.PublicKey, error) {
	return nil, errPending
}

// NodeConnected takes in a new link's first State; ask for events after cursor.
func (s *Service) NodeConnected(ctx context.Context, id models.NodeID, st wire.State, at models.Instant) (cursor int64, err error) {
	return 0, errPending
}
func (s *Service) NodeDisconnected(ctx context.Context, id models.NodeID, at models.Instant) error {
	return errPending
}

// NextDesired waits until the node's generation is above after. Start with −1.
func (s *Service) NextDesired(ctx context.Context, id models.NodeID, after int64) (wire.Desired, error) {
	return wire.Desired{}, errPending
}
func (s *Service) NodeEvent(ctx context.Context, id models.NodeID, ev wire.Event, at models.Instant) error {
	return errPending
}
func (s *Service) NodeState(ctx context.Context, id models.NodeID, st wire.State, at models.Instant) error {
	return errPending
}
func (s *Service) NodeTick(ctx context.Context, id models.NodeID, t wire.Tick, at models.Instant) error {
	return errPending
}

// Run does the background work until ctx ends.
func (s *Service) Run(ctx context.Context) error { return errPending }

// NodeView is a node with its cards, for operators.
type NodeView struct {
	models.Node
	Host      wire.Host
	Devices   []DeviceView
	Instances int // that hold leases on it
}

// DeviceView is a card with who holds what of it.
type DeviceView struct {
	models.Device
	NodeName string
	Known    bool // Model is in the catalogue
	Facts    gpu.Model
	Leases   []LeaseView
	Foreign  []gpu.Placement // on the card, but no lease explains it
}

// LeaseView is a held lease with the instance it is for.
type LeaseView struct {
	models.Lease
	InstanceName string
	State        models.InstanceState
}

func (s *Service) Nodes(ctx context.Context) ([]NodeView, error) { return nil, errPending }
func (s *Service) Node(ctx context.Context, id models.NodeID) (NodeView, []InstanceView, error) {
	return NodeView{}, nil, errPending
}
func (s *Service) Devices(ctx context.Context) ([]DeviceView, error) { return nil, errPending }
