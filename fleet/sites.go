package fleet

import (
	"encoding/json"
	"fmt"
	"slices"

	"berth/gpu"
	"berth/models"
	"berth/models/store"
	"berth/wire"
)

// sites reads the fleet as placement sees it, in four statements however large
// it is. Nodes come by name, so that equals are decided alike every time.
func (s *Service) sites(tx *store.Tx) ([]site, error) {
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
	disks, err := tx.DiskPerNode()
	if err != nil {
		return nil, err
	}
	held := map[string][]gpu.Placement{}
	holders := map[string][]models.AccountID{}
	for _, l := range leases {
		held[l.DeviceUUID] = append(held[l.DeviceUUID], l.Placement())
		holders[l.DeviceUUID] = append(holders[l.DeviceUUID], l.AccountID)
	}
	byNode := map[models.NodeID][]models.Device{}
	for _, d := range devices {
		byNode[d.NodeID] = append(byNode[d.NodeID], d)
	}
	out := make([]site, 0, len(nodes))
	for _, n := range nodes {
		host, err := hostOf(n)
		if err != nil {
			return nil, err
		}
		st := site{node: n, host: host, freeDisk: max(0, host.DiskGiB-s.cfg.ReserveDisk-disks[n.ID])}
		for _, d := range byNode[n.ID] {
			if d.State == models.DeviceAbsent {
				continue
			}
			st.devices++
			if !slices.Contains(host.Sharing, gpu.TimeShare) {
				d.Sharing = models.SharingNone // it would be asked for what it does not know
			}
			if m, err := d.GPU(); err == nil && d.State == models.DeviceOK {
				st.cards = append(st.cards, card{device: d, model: m, used: usedOn(d, held[d.UUID]), holders: holders[d.UUID]})
			}
		}
		out = append(out, st)
	}
	return out, nil
}

// usedOn is what lies on a card: what is leased, and what the node reports that
// nothing explains. The latter is not sold until it is gone.
func usedOn(d models.Device, leased []gpu.Placement) []gpu.Placement {
	return append(slices.Clone(leased), foreign(d, leased)...)
}

// foreign lists the reported slices that neither a lease nor the card's layout
// explains.
func foreign(d models.Device, leased []gpu.Placement) (out []gpu.Placement) {
	for _, r := range d.Slices {
		if !slices.ContainsFunc(slices.Concat(leased, d.Layout), func(l gpu.Placement) bool { return l.Start == r.Start && l.Size == r.Size }) {
			out = append(out, r)
		}
	}
	return out
}

// hostOf reads what a node last said of its host. A node that joined but never
// connected has the zero Host.
func hostOf(n models.Node) (h wire.Host, err error) {
	if len(n.Host) == 0 {
		return h, nil
	}
	if err := json.Unmarshal(n.Host, &h); err != nil {
		return h, fmt.Errorf("read host of node %s: %w", n.ID, err)
	}
	return h, nil
}
