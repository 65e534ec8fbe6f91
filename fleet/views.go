package fleet

import (
	"context"
	"slices"

	"berth/billing"
	"berth/gpu"
	"berth/models"
	"berth/models/store"
)

// InstanceFilter narrows a list. The zero value lists all that are not terminated.
type InstanceFilter struct {
	States     []models.InstanceState // empty: every state but terminated
	Terminated bool                   // with no States: terminated ones too
}

func (f InstanceFilter) states() []models.InstanceState {
	if len(f.States) > 0 {
		return f.States
	}
	if f.Terminated {
		return models.InstanceStates
	}
	return slices.DeleteFunc(slices.Clone(models.InstanceStates), func(s models.InstanceState) bool { return s == models.Terminated })
}

// InstanceView is an instance with what a page or the API shows of it.
type InstanceView struct {
	models.Instance
	NodeName  string
	NodeState string
	Notice    string           // what is planned for its node, a sentence; empty: nothing
	Simulated bool             // its cards are a simulator's
	Slices    []SliceView      // held now
	Span      models.UsageSpan // of the present run; ID empty before it was usable
}

// SliceView is one held slice with its card.
type SliceView struct {
	models.Lease
	Device models.Device
	Model  gpu.Model       // zero when the card's model is not known
	Others []gpu.Placement // what else lies on the card
}

// Instances lists an account's instances, newest first, after the one named by
// the cursor (empty: from the start), and the cursor of the next page (empty: the
// last). It takes a fixed number of statements.
func (s *Service) Instances(ctx context.Context, account models.AccountID, f InstanceFilter, cursor string, limit int) (list []InstanceView, next string, err error) {
	if limit < 1 || limit > s.cfg.MaxPerPage {
		limit = s.cfg.MaxPerPage
	}
	err = s.st.View(ctx, func(tx *store.Tx) error {
		var rows []models.Instance
		var err error
		if rows, next, err = tx.AccountInstances(account, f.states(), cursor, limit); err != nil {
			return err
		}
		list, err = viewInstances(tx, rows)
		return err
	})
	return list, next, err
}

// Instance reads one. It fails with NotFound, also when it is another account's.
func (s *Service) Instance(ctx context.Context, account models.AccountID, id models.InstanceID) (v InstanceView, err error) {
	err = s.st.View(ctx, func(tx *store.Tx) error {
		in, err := tx.Instance(id)
		if err != nil {
			return err
		}
		if in.AccountID != account {
			return models.Missing("instance", id)
		}
		views, err := viewInstances(tx, []models.Instance{in})
		if err != nil {
			return err
		}
		v = views[0]
		return nil
	})
	return v, err
}

// viewInstances adds to instances what is shown of them.
func viewInstances(tx *store.Tx, list []models.Instance) ([]InstanceView, error) {
	if len(list) == 0 {
		return []InstanceView{}, nil
	}
	ids, spanIDs := make([]models.InstanceID, len(list)), make([]models.SpanID, len(list))
	for i, in := range list {
		ids[i], spanIDs[i] = in.ID, billing.SpanID(in)
	}
	nodeIDs := make([]models.NodeID, len(list))
	for i, in := range list {
		nodeIDs[i] = in.NodeID
	}
	nodes, err := tx.NodesByID(nodeIDs)
	if err != nil {
		return nil, err
	}
	own, err := tx.InstanceLeases(ids)
	if err != nil {
		return nil, err
	}
	var uuids []string
	for _, l := range own {
		uuids = append(uuids, l.DeviceUUID)
	}
	devices, err := tx.DevicesByUUID(uuids)
	if err != nil {
		return nil, err
	}
	around, err := tx.DeviceLeases(uuids)
	if err != nil {
		return nil, err
	}
	spans, err := tx.Spans(spanIDs...)
	if err != nil {
		return nil, err
	}
	out := make([]InstanceView, len(list))
	byID := make(map[models.InstanceID]*InstanceView, len(list))
	for i, in := range list {
		out[i] = InstanceView{Instance: in, Slices: []SliceView{}}
		byID[in.ID] = &out[i]
	}
	simulated := map[models.NodeID]bool{}
	for _, n := range nodes {
		host, err := hostOf(n)
		if err != nil {
			return nil, err
		}
		simulated[n.ID] = host.Simulated
	}
	for i := range out {
		n := nodes[out[i].NodeID]
		out[i].NodeName, out[i].NodeState, out[i].Simulated = n.Name, n.State, simulated[n.ID]
		if out[i].State.Active() {
			out[i].Notice = MaintenanceNotice(n)
		}
	}
	for _, l := range own {
		v := SliceView{Lease: l, Device: devices[l.DeviceUUID]}
		v.Model, _ = v.Device.GPU() // a card of unknown model is shown by name alone
		if share, err := gpu.ParseShare(l.Profile); err == nil {
			v.Model = v.Model.WithShare(share) // also if the card is shared otherwise since
		}
		for _, o := range around {
			if o.DeviceUUID == l.DeviceUUID && o.ID != l.ID {
				v.Others = append(v.Others, o.Placement())
			}
		}
		byID[l.InstanceID].Slices = append(byID[l.InstanceID].Slices, v)
	}
	for _, u := range spans {
		byID[u.InstanceID].Span = u
	}
	return out, nil
}

// Events returns an instance's history after a sequence number, oldest first.
func (s *Service) Events(ctx context.Context, account models.AccountID, id models.InstanceID, after int64) (list []models.InstanceEvent, err error) {
	err = s.st.View(ctx, func(tx *store.Tx) error {
		in, err := tx.Instance(id)
		if err != nil {
			return err
		}
		if in.AccountID != account {
			return models.Missing("instance", id)
		}
		list, err = tx.InstanceEvents(id, after, 1000)
		return err
	})
	return list, err
}
