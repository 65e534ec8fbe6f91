package fleet

import (
	"context"

	"berth/models"
	"berth/models/store"
)

// CardView is one card in full, for operators.
type CardView struct {
	DeviceView
	Node   NodeView
	Past   []PastLease          // the newest, held ones too, newest first
	Events []models.DeviceEvent // the newest, newest first
}

// PastLease is a lease of a card with what it was for.
type PastLease struct {
	models.Lease
	Instance models.Instance
	Account  string // its name
}

// cardsPast is how many leases and events a card's page shows.
const cardsPast = 50

// Card reads one card of a node. It fails with NotFound.
func (s *Service) Card(ctx context.Context, node models.NodeID, uuid string) (v CardView, err error) {
	err = s.st.View(ctx, func(tx *store.Tx) error {
		nodes, err := s.viewNodes(tx)
		if err != nil {
			return err
		}
		for _, n := range nodes {
			for _, d := range n.Devices {
				if n.ID == node && d.UUID == uuid {
					v.DeviceView, v.Node = d, n
				}
			}
		}
		if v.UUID == "" {
			return models.Missing("device", uuid)
		}
		if v.Events, err = tx.DeviceEvents(uuid, cardsPast); err != nil {
			return err
		}
		v.Past, err = pastLeases(tx, uuid)
		return err
	})
	return v, err
}

func pastLeases(tx *store.Tx, uuid string) ([]PastLease, error) {
	leases, err := tx.PastLeases(uuid, cardsPast)
	if err != nil {
		return nil, err
	}
	var ids []models.InstanceID
	var accounts []models.AccountID
	for _, l := range leases {
		ids, accounts = append(ids, l.InstanceID), append(accounts, l.AccountID)
	}
	rows, err := tx.InstancesByID(ids)
	if err != nil {
		return nil, err
	}
	names, err := tx.AccountNames(accounts)
	if err != nil {
		return nil, err
	}
	instances := make(map[models.InstanceID]models.Instance, len(rows))
	for _, in := range rows {
		instances[in.ID] = in
	}
	out := make([]PastLease, len(leases))
	for i, l := range leases {
		out[i] = PastLease{Lease: l, Instance: instances[l.InstanceID], Account: names[l.AccountID]}
	}
	return out, nil
}

// CardEvents lists the newest events of a node's cards, the newest first.
func (s *Service) CardEvents(ctx context.Context, node models.NodeID, limit int) (list []models.DeviceEvent, err error) {
	err = s.st.View(ctx, func(tx *store.Tx) (err error) {
		list, err = tx.NodeDeviceEvents(node, limit)
		return err
	})
	return list, err
}
