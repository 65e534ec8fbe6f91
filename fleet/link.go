package fleet

import (
	"context"
	"strconv"
	"strings"

	"berth/billing"
	"berth/gpu"
	"berth/models"
	"berth/models/store"
	"berth/wire"
)

// NodeDisconnected notes that a node's link has ended. Its instances go on; they
// are lost only when it stays away for long.
func (s *Service) NodeDisconnected(ctx context.Context, id models.NodeID, at models.Instant) error {
	s.mu.Lock()
	delete(s.waiting, id)
	s.mu.Unlock()
	return s.st.InTx(ctx, func(tx *store.Tx) error {
		if _, err := lockPresent(tx, id); err != nil {
			return err
		}
		return tx.SetNodeOffline(id)
	})
}

// NodeEvent takes in one journalled event. Its number is recorded in the same
// transaction as its effect, so the same event again does nothing. Once it
// returns nil the event may be acknowledged.
func (s *Service) NodeEvent(ctx context.Context, id models.NodeID, ev wire.Event, at models.Instant) error {
	err := s.st.InTx(ctx, func(tx *store.Tx) error {
		n, err := lockPresent(tx, id)
		if err != nil {
			return err
		}
		if ev.Seq <= n.EventSeq {
			return nil
		}
		r := report{run: ev.Run, phase: ev.Phase, reason: ev.Reason, detail: ev.Detail, exit: ev.ExitCode, seconds: ev.Seconds}
		if err := s.observeByID(tx, id, models.InstanceID(ev.Instance), r, at); err != nil {
			return err
		}
		return tx.SetEventSeq(id, ev.Seq, at)
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	waiting, ok := s.waiting[id]
	s.mu.Unlock()
	if ok && ev.Seq >= waiting.state.LastEvent {
		return s.NodeState(ctx, id, waiting.state, at)
	}
	return nil
}

// NodeTick takes in a node's second: the meter of all its runs in one
// transaction of few statements, then the readings. A tick that is lost, late or
// doubled changes nothing in what is charged, since seconds are cumulative.
func (s *Service) NodeTick(ctx context.Context, id models.NodeID, t wire.Tick, at models.Instant) error {
	s.mu.Lock()
	s.heard[id] = at
	s.mu.Unlock()
	var runs map[models.InstanceID]store.ActiveRun
	err := s.st.InTx(ctx, func(tx *store.Tx) (err error) {
		runs, err = s.tick(tx, id, t, everybody, at)
		return err
	})
	if err != nil && ctx.Err() == nil {
		runs, err = s.tickApart(ctx, id, t, at)
	}
	if err != nil {
		return err
	}
	s.keep(id, t, runs, at)
	return nil
}

// tickApart is NodeTick an account at a time, for when one of them cannot be
// metered: the others must not pay for that with a node that seems silent. It
// fails when none can.
func (s *Service) tickApart(ctx context.Context, id models.NodeID, t wire.Tick, at models.Instant) (runs map[models.InstanceID]store.ActiveRun, err error) {
	one := func(whose func(models.AccountID) bool) error {
		return s.st.InTx(ctx, func(tx *store.Tx) (err error) {
			runs, err = s.tick(tx, id, t, whose, at)
			return err
		})
	}
	if err := one(func(models.AccountID) bool { return false }); err != nil {
		return nil, err
	}
	accounts := map[models.AccountID]bool{}
	for _, r := range runs {
		accounts[r.AccountID] = true
	}
	all := runs
	for account := range accounts {
		if err := one(func(a models.AccountID) bool { return a == account }); err != nil {
			s.log.Error("the runs of an account cannot be metered", "account", account, "node", id, "error", err)
		}
	}
	return all, nil
}

func everybody(models.AccountID) bool { return true }

// tick meters those of a node's runs that are the account's asked for, and
// returns all of them.
func (s *Service) tick(tx *store.Tx, id models.NodeID, t wire.Tick, whose func(models.AccountID) bool, at models.Instant) (map[models.InstanceID]store.ActiveRun, error) {
	n, err := lockPresent(tx, id)
	if err != nil {
		return nil, err
	}
	if err := tx.TouchNode(n, at); err != nil {
		return nil, err
	}
	list, err := tx.ActiveRuns(id)
	if err != nil {
		return nil, err
	}
	runs := make(map[models.InstanceID]store.ActiveRun, len(list))
	for _, r := range list {
		runs[r.ID] = r
	}
	readings := make([]billing.Reading, 0, len(list))
	for _, i := range t.Instances {
		r, ok := runs[models.InstanceID(i.ID)]
		if !ok || i.Run != r.Run || !whose(r.AccountID) {
			continue // not this node's, or a run that is over, or another's turn
		}
		switch r.State {
		case models.Running, models.Stopping:
			readings = append(readings, billing.Reading{Span: billing.SpanID(models.Instance{ID: r.ID, Run: r.Run}), Seconds: max(0, i.Seconds)})
		case models.Pulling:
			if i.Progress != (wire.Progress{Done: r.PullDone, Total: r.PullTotal}) {
				in := models.Instance{ID: r.ID, AccountID: r.AccountID}
				if err := tx.SetPull(in, i.Progress.Done, i.Progress.Total); err != nil {
					return nil, err
				}
			}
		}
	}
	exhausted, err := s.bill.ReportAll(tx, readings, at)
	if err != nil {
		return nil, err
	}
	for _, span := range exhausted {
		if err := s.exhausted(tx, span, at); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// exhausted stops the instance of a span that the wallet no longer covers.
func (s *Service) exhausted(tx *store.Tx, span models.SpanID, at models.Instant) error {
	id, run, ok := strings.Cut(string(span), ".")
	n, err := strconv.Atoi(run)
	if !ok || err != nil {
		return nil
	}
	in, err := tx.LockInstance(models.InstanceID(id))
	if err != nil || in.Run != n {
		return err
	}
	return s.moneyEnded(tx, &in, at)
}

// keep puts a tick's readings into the rings of the instances and cards that are
// the node's. A tick that is not newer than the last is not kept again.
func (s *Service) keep(id models.NodeID, t wire.Tick, runs map[models.InstanceID]store.ActiveRun, at models.Instant) {
	if !s.newer(id, t) {
		return
	}
	readings := make([]Reading, 0, len(t.Instances)+len(t.Devices)+1)
	for _, i := range t.Instances {
		r, ok := runs[models.InstanceID(i.ID)]
		if !ok || i.Run != r.Run || i.Phase != wire.PhaseRunning {
			continue
		}
		readings = append(readings, Reading{Subject: OfInstance(r.ID), ID: i.ID, Sample: Sample{At: at, Run: i.Run, Seconds: i.Seconds, UtilizationPercent: i.UtilizationPercent,
			MemoryMiB: i.MemoryMiB, TemperatureC: i.TemperatureC, PowerW: i.PowerW}})
	}
	groups := []Subject{Cards, CardsOf(id)}
	for _, d := range t.Devices {
		readings = append(readings, Reading{Subject: OfCard(id, d.UUID), ID: d.UUID, groups: groups, Sample: Sample{At: at, UtilizationPercent: d.UtilizationPercent,
			MemoryMiB: d.MemoryMiB, TemperatureC: d.TemperatureC, PowerW: d.PowerW}})
	}
	if len(t.Devices) > 0 {
		readings = append(readings, Reading{Subject: OfNode(id), ID: string(id), Sample: summed(t.Devices, at)})
	}
	s.telemetry.take(readings)
}

// lateTicks is by how many seconds a tick of a link that ended may be late. One that
// is further behind is of an agent that started anew, and counts from the beginning.
const lateTicks = 60

// newer tells whether a tick comes after the last one of its node. By their numbers
// only: a node's clock may be set back at any moment.
func (s *Service) newer(id models.NodeID, t wire.Tick) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, ok := s.ticks[id]; ok && t.Seq <= last && last-t.Seq < lateTicks {
		return false
	}
	s.ticks[id] = t.Seq
	return true
}

// summed is what a node's cards do at one moment. What one of them does not
// measure is not known of all.
func summed(cards []wire.DeviceSample, at models.Instant) Sample {
	share := 1 / float64(len(cards))
	s := Sample{At: at, UtilizationPercent: new(float64), MemoryMiB: new(int64), TemperatureC: new(float64), PowerW: new(float64)}
	for i, d := range cards {
		if d.UtilizationPercent == nil {
			s.UtilizationPercent = nil
		} else if s.UtilizationPercent != nil {
			*s.UtilizationPercent += *d.UtilizationPercent * share
		}
		if d.MemoryMiB == nil {
			s.MemoryMiB = nil
		} else if s.MemoryMiB != nil {
			*s.MemoryMiB += *d.MemoryMiB
		}
		if d.TemperatureC == nil {
			s.TemperatureC = nil
		} else if s.TemperatureC != nil && (i == 0 || *d.TemperatureC > *s.TemperatureC) {
			*s.TemperatureC = *d.TemperatureC
		}
		if d.PowerW == nil {
			s.PowerW = nil
		} else if s.PowerW != nil {
			*s.PowerW += *d.PowerW
		}
	}
	return s
}

// NextDesired waits until the generation of a node's desired state is above
// after, then returns all of it. Begin with after = −1. It fails when ctx ends.
func (s *Service) NextDesired(ctx context.Context, id models.NodeID, after int64) (wire.Desired, error) {
	watch := s.st.Watch("node:" + string(id)) // before the first read: no change falls between
	defer watch.Close()
	for {
		d, err := s.desired(ctx, id, after)
		if err != nil || d.Generation > after {
			return d, err
		}
		select {
		case <-watch.C():
		case <-ctx.Done():
			return wire.Desired{}, ctx.Err()
		}
	}
}

// desired reads the whole desired state; only its Generation when that is not
// above after. Stopped instances are part of it, so that their disks are kept.
func (s *Service) desired(ctx context.Context, id models.NodeID, after int64) (d wire.Desired, err error) {
	err = s.st.View(ctx, func(tx *store.Tx) error {
		n, err := tx.Node(id)
		if err != nil {
			return err
		}
		d = wire.Desired{Generation: n.Generation, Instances: []wire.DesiredInstance{}}
		if n.Generation <= after {
			return nil
		}
		list, err := tx.NodeInstances(id)
		if err != nil {
			return err
		}
		leases, err := tx.NodeLeases(id)
		if err != nil {
			return err
		}
		held := map[models.InstanceID][]wire.Slice{}
		for _, l := range leases {
			held[l.InstanceID] = append(held[l.InstanceID], wire.Slice{DeviceUUID: l.DeviceUUID, MemoryMiB: l.MemoryMiB,
				Placement: gpu.Placement{Profile: l.Profile, Start: l.Start, Size: l.Size}})
		}
		cards, err := tx.NodeDevices(id)
		if err != nil {
			return err
		}
		for _, c := range cards {
			if len(c.Layout) > 0 {
				d.Layouts = append(d.Layouts, wire.Layout{DeviceUUID: c.UUID, Placements: c.Layout})
			}
		}
		for _, in := range list {
			d.Instances = append(d.Instances, wire.DesiredInstance{ID: string(in.ID), Run: in.Run, Want: wire.Want(in.Want), Slices: held[in.ID], PaidSeconds: in.PaidSeconds,
				Spec: wire.Spec{Name: in.Name, Image: in.Image, Command: in.Command, Env: in.Env, StartupScript: in.StartupScript,
					DiskGiB: in.DiskGiB, MilliCPU: in.MilliCPU, MemoryMiB: in.MemoryMiB}})
		}
		return nil
	})
	return d, err
}
