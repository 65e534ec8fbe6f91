package fleet

import (
	"context"

	"berth/gpu"
	"berth/models"
	"berth/models/store"
	"berth/wire"
)

// NodeView is a node with its cards, for operators.
type NodeView struct {
	models.Node
	HostInfo  wire.Host // as last reported
	Devices   []DeviceView
	Instances int // that hold slices of it
	Double    Double
}

// DeviceView is a card with who holds what of it.
type DeviceView struct {
	models.Device
	NodeName string
	Facts    gpu.Model // zero (ID empty) when Berth does not know the model
	Leases   []LeaseView
	Foreign  []gpu.Placement // on the card, but no lease explains it
}

// LeaseView is a held lease with the instance it is for.
type LeaseView struct {
	models.Lease
	InstanceName string
	State        models.InstanceState
}

// Double is another host that dialled with the key of a node that was linked: its
// folder was copied, or the node was moved and its old host still runs.
type Double struct {
	Address string
	At      models.Instant // the last time; zero: never, since this portal started
}

// NodeDoubled notes a Double; the node's page shows it.
func (s *Service) NodeDoubled(id models.NodeID, address string, at models.Instant) {
	s.mu.Lock()
	s.doubles[id] = Double{clip(address), at}
	s.mu.Unlock()
	s.st.Notify("fleet")
}

func (s *Service) double(id models.NodeID) Double {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.doubles[id]
}

// Nodes lists all nodes by name with their cards, in four statements.
func (s *Service) Nodes(ctx context.Context) (list []NodeView, err error) {
	err = s.st.View(ctx, func(tx *store.Tx) error {
		list, err = s.viewNodes(tx)
		return err
	})
	return list, err
}

// Node reads one node and the instances on it that are not terminated, of all
// accounts. It fails with NotFound.
func (s *Service) Node(ctx context.Context, id models.NodeID) (v NodeView, instances []InstanceView, err error) {
	err = s.st.View(ctx, func(tx *store.Tx) error {
		all, err := s.viewNodes(tx)
		if err != nil {
			return err
		}
		for _, n := range all {
			if n.ID == id {
				v = n
			}
		}
		if v.ID == "" {
			return models.Missing("node", id)
		}
		rows, err := tx.NodeInstances(id)
		if err != nil {
			return err
		}
		instances, err = viewInstances(tx, rows)
		return err
	})
	return v, instances, err
}

// Devices lists every card of every node.
func (s *Service) Devices(ctx context.Context) (list []DeviceView, err error) {
	nodes, err := s.Nodes(ctx)
	list = []DeviceView{}
	for _, n := range nodes {
		list = append(list, n.Devices...)
	}
	return list, err
}

func (s *Service) viewNodes(tx *store.Tx) ([]NodeView, error) {
	nodes, err := tx.Nodes()
	if err != nil {
		return nil, err
	}
	devices, err := tx.Devices()
	if err != nil {
		return nil, err
	}
	leases, err := tx.HeldLeases()
	if err != nil {
		return nil, err
	}
	holders := map[models.InstanceID]models.Instance{}
	perNode := map[models.NodeID]map[models.InstanceID]bool{}
	var ids []models.InstanceID
	onCard := map[string][]models.Lease{}
	for _, l := range leases {
		ids = append(ids, l.InstanceID)
		onCard[l.DeviceUUID] = append(onCard[l.DeviceUUID], l)
		if perNode[l.NodeID] == nil {
			perNode[l.NodeID] = map[models.InstanceID]bool{}
		}
		perNode[l.NodeID][l.InstanceID] = true
	}
	rows, err := tx.InstancesByID(ids)
	if err != nil {
		return nil, err
	}
	for _, in := range rows {
		holders[in.ID] = in
	}
	out := make([]NodeView, len(nodes))
	at := map[models.NodeID]int{}
	for i, n := range nodes {
		host, err := hostOf(n)
		if err != nil {
			return nil, err
		}
		out[i] = NodeView{Node: n, HostInfo: host, Devices: []DeviceView{}, Instances: len(perNode[n.ID]), Double: s.double(n.ID)}
		at[n.ID] = i
	}
	for _, d := range devices {
		i, ok := at[d.NodeID]
		if !ok {
			continue
		}
		v := DeviceView{Device: d, NodeName: out[i].Name, Leases: []LeaseView{}}
		v.Facts, _ = d.GPU()
		var placed []gpu.Placement
		for _, l := range onCard[d.UUID] {
			in := holders[l.InstanceID]
			v.Leases = append(v.Leases, LeaseView{Lease: l, InstanceName: in.Name, State: in.State})
			placed = append(placed, l.Placement())
		}
		v.Foreign = foreign(d, placed)
		out[i].Devices = append(out[i].Devices, v)
	}
	return out, nil
}
