package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"berth/gpu"
	"berth/models"
	"berth/models/store"
	"berth/wire"
)

// inventory is a node's snapshot that waits for the events it was taken after.
type inventory struct{ state wire.State }

// NodeConnected takes in the first State of a new link: what the node has, how
// its cards are, and what became of its instances while nobody listened. It
// returns the number of the last journalled event taken in: ask for those after.
func (s *Service) NodeConnected(ctx context.Context, id models.NodeID, st wire.State, at models.Instant) (cursor int64, err error) {
	err = s.takeIn(ctx, id, st, at, true, &cursor)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	delete(s.ticks, id) // an agent that started anew counts from the beginning
	s.mu.Unlock()
	return cursor, s.bill.EnsureDefaults(ctx, skusOf(st), at)
}

// NodeState takes in a State that a node sent later, in answer to its desired
// state.
func (s *Service) NodeState(ctx context.Context, id models.NodeID, st wire.State, at models.Instant) error {
	var cursor int64
	return s.takeIn(ctx, id, st, at, false, &cursor)
}

func (s *Service) takeIn(ctx context.Context, id models.NodeID, st wire.State, at models.Instant, fresh bool, cursor *int64) error {
	wait := false
	err := s.st.InTx(ctx, func(tx *store.Tx) error {
		n, err := lockPresent(tx, id)
		if err != nil {
			return err
		}
		if fresh && st.LastEvent < n.EventSeq {
			// Its data directory was emptied: its numbers begin again. Taking an
			// event twice changes nothing, missing one would.
			s.log.Warn("node's journal begins anew", "node", id, "had", n.EventSeq, "has", st.LastEvent)
			n.EventSeq = 0
		}
		if fresh && st.Generation > n.Generation {
			// Our database was restored: the node would refuse what is older to it.
			s.log.Warn("node acts on a later desired state than there is here", "node", id, "had", n.Generation, "has", st.Generation)
			if err := tx.RaiseGeneration(id, st.Generation); err != nil {
				return err
			}
			n.Generation = st.Generation + 1
		}
		*cursor = n.EventSeq
		host, err := json.Marshal(st.Host)
		if err != nil {
			return fmt.Errorf("keep host of node %s: %w", id, err)
		}
		n.State, n.BootID, n.AgentVersion, n.Host, n.SeenAt = models.NodeOnline, clip(st.BootID), clip(st.AgentVersion), host, at
		if !st.At.IsZero() {
			n.ClockSkewMS = models.At(st.At).Sub(at).Milliseconds()
		}
		if err := tx.SaveNodeState(n); err != nil {
			return err
		}
		old := st.LastEvent < n.EventSeq // taken before events that are known already
		if err := s.putDevices(tx, id, st, !old, at); err != nil {
			return err
		}
		for _, o := range st.Instances {
			r := report{run: o.Run, phase: o.Phase, reason: o.Reason, detail: o.Detail, exit: o.ExitCode, seconds: o.Seconds}
			if err := s.observeByID(tx, id, models.InstanceID(o.ID), r, at); err != nil {
				return err
			}
		}
		if wait = st.LastEvent > n.EventSeq; wait || old {
			return nil
		}
		return s.missing(tx, n, st, at)
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if wait {
		s.waiting[id] = inventory{st}
	} else {
		delete(s.waiting, id)
	}
	return nil
}

// observeByID is observe for an instance that a node names. What is not the
// node's is left alone: no desired entry explains it, so the node ends it.
func (s *Service) observeByID(tx *store.Tx, node models.NodeID, id models.InstanceID, r report, at models.Instant) error {
	in, err := tx.LockInstance(id)
	if models.HasCode(err, models.NotFound) || err == nil && in.NodeID != node {
		s.log.Warn("node reports an instance that is not its own", "node", node, "instance", clip(string(id)))
		return nil
	}
	if err != nil {
		return err
	}
	return s.observe(tx, &in, r, at)
}

// missing draws the conclusions from what an inventory does not have. It must be
// as new as every event taken in, and no newer.
func (s *Service) missing(tx *store.Tx, n models.Node, st wire.State, at models.Instant) error {
	has := map[models.InstanceID]int{} // the run that is there in some way, or that has ended
	for _, o := range st.Instances {
		if o.Phase != wire.PhaseGone {
			has[models.InstanceID(o.ID)] = o.Run
		}
	}
	list, err := tx.NodeInstances(n.ID)
	if err != nil {
		return err
	}
	for _, in := range list {
		run, there := has[in.ID]
		if there && (run >= in.Run || in.Want == models.WantGone) {
			continue
		}
		h, ok := concludes(in, there, st.Generation == n.Generation)
		if !ok {
			continue
		}
		locked, err := tx.LockInstance(in.ID)
		if err != nil {
			return err
		}
		if err := s.try(tx, &locked, h, at); err != nil {
			return err
		}
	}
	return nil
}

// concludes says what it means that a node has no trace of an instance's present
// run. older tells that it still has an earlier run; current, that the node has
// acted on the newest desired state, so that nothing of it can come to be.
func concludes(in models.Instance, older, current bool) (happening, bool) {
	switch in.State {
	case models.Pulling, models.Starting, models.Running:
		return happening{on: models.NodeFailed, reason: "lost",
			detail: "Its node had it and has no trace of it now. What it had used until then is charged. Start it again, or launch elsewhere."}, !older
	case models.Stopping:
		if in.Want == models.WantGone {
			return happening{on: models.NodeGone, reason: in.Reason, detail: "Nothing of it is left on the node."}, current
		}
		return happening{on: models.NodeStopped, reason: in.Reason, detail: in.Detail}, current
	case models.Lost:
		return happening{on: models.NodeStopped, reason: "lost", detail: "Its node is back, without it. Start it again, or launch elsewhere."}, true
	}
	// Placing: the node has not heard of it yet, or of this run. It will.
	return happening{}, false
}

// putDevices writes what a node says of its cards, if it differs. Which slices
// exist is believed only of a snapshot that is not old.
func (s *Service) putDevices(tx *store.Tx, node models.NodeID, st wire.State, slicesToo bool, at models.Instant) error {
	var uuids []string
	for _, r := range st.Devices {
		if plain(r.UUID) {
			uuids = append(uuids, r.UUID)
		}
	}
	all, err := tx.DevicesOf(node, uuids)
	if err != nil {
		return err
	}
	known := map[string]models.Device{}
	mine := 0
	for _, d := range all {
		known[d.UUID] = d
		if d.NodeID == node && d.State != models.DeviceAbsent {
			mine++
		}
	}
	var list []models.Device
	var events []models.DeviceEvent
	note := func(d models.Device, state, detail string) {
		events = append(events, models.DeviceEvent{DeviceUUID: d.UUID, At: at, NodeID: node, State: state, Detail: detail})
	}
	same, seen := true, map[string]bool{}
	for _, r := range st.Devices {
		before, found := known[r.UUID]
		if r.UUID == "" || !plain(r.UUID) || found && before.NodeID != node && before.State != models.DeviceAbsent {
			s.log.Warn("node reports a card that another node has", "node", node, "device", clip(r.UUID))
			continue
		}
		d := deviceOf(node, r)
		d.Slices = heldOn(d, st.Instances)
		d.Layout, d.Sharing, d.Mixed = before.Layout, before.Sharing, before.Mixed
		if found && !slicesToo {
			d.Slices = before.Slices
		}
		same = same && found && reflect.DeepEqual(d, before)
		list = append(list, d)
		seen[d.UUID] = true
		if !found || d.State != before.State || d.Detail != before.Detail || d.NodeID != before.NodeID {
			note(d, d.State, d.Detail)
		}
	}
	if same && len(list) == mine {
		return nil
	}
	for _, d := range all {
		if d.NodeID == node && d.State != models.DeviceAbsent && !seen[d.UUID] {
			note(d, models.DeviceAbsent, "Its node no longer reports it.")
		}
	}
	if err := tx.AddDeviceEvents(events); err != nil {
		return err
	}
	return tx.PutDevices(node, list)
}

func deviceOf(node models.NodeID, r wire.Device) models.Device {
	d := models.Device{UUID: r.UUID, NodeID: node, Index: r.Index, Model: gpu.ModelID(clip(string(r.Model))), Name: clip(r.Name), MemoryMiB: r.MemoryMiB,
		State: models.DeviceOK, MIG: r.MIG, LinkGroup: r.LinkGroup, NUMANode: r.NUMANode, Profiles: tableOf(r), Slices: append([]gpu.Placement{}, r.Slices...)}
	_, err := gpu.Lookup(d.Model)
	switch {
	case !strings.EqualFold(r.Health, "ok"):
		d.State, d.Detail = models.DeviceSick, sentence(clipTo(r.Health, 200))
	case err != nil:
		d.State, d.Detail = models.DeviceSick, fmt.Sprintf("Berth does not know this model (%s), so it is not sold.", clip(r.Name))
	}
	return d
}

// tableOf is a card's own table of slice profiles, as far as it makes sense.
func tableOf(r wire.Device) []gpu.Profile {
	out := []gpu.Profile{}
	for _, p := range r.Profiles[:min(len(r.Profiles), maxProfiles)] {
		if p.Name == clip(p.Name) && plain(p.Name) {
			out = append(out, p)
		}
	}
	return out
}

// maxProfiles bounds a card's table; NVML counts 18 profiles.
const maxProfiles = 32

// heldOn is what lies on a card: the slices it has, and those that the node's
// instances hold of it, which for a whole card shows nowhere else.
func heldOn(d models.Device, instances []wire.Observed) []gpu.Placement {
	out := d.Slices
	for _, o := range instances {
		for _, h := range o.Slices {
			if h.DeviceUUID == d.UUID && !slices.Contains(out, h.Placement) {
				out = append(out, h.Placement)
			}
		}
	}
	slices.SortFunc(out, func(a, b gpu.Placement) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Size, b.Size))
	})
	return out
}

// skusOf lists what a node's cards can be sold as.
func skusOf(st wire.State) (out []gpu.SKU) {
	seen := map[gpu.ModelID]bool{}
	for _, d := range st.Devices {
		m, err := gpu.Lookup(d.Model)
		if err != nil || seen[m.ID] {
			continue
		}
		seen[m.ID] = true
		for _, p := range m.Usual() {
			out = append(out, gpu.SKUFor(m.ID, p.Name, 1))
		}
	}
	return out
}
