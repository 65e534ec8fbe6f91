package fleet

import (
	"berth/billing"
	"berth/models"
	"berth/models/store"
)

// happening is an event on its way through the table of moves.
type happening struct {
	on       models.InstanceEventKind
	reason   string         // a code, for Instance.Reason
	detail   string         // a sentence, for the page and the history
	reported *int64         // the run's cumulative seconds by the node; nil: not told
	leases   []models.Lease // what a move that takes leases takes
}

// move carries in from its state to the next by the table in package models,
// with the table's effects on meter and leases, in the caller's transaction. The
// caller holds the locks of node and instance. What the table does not have is
// refused with its Conflict.
func (s *Service) move(tx *store.Tx, in *models.Instance, h happening, at models.Instant) error {
	m, err := in.State.Next(h.on)
	if err != nil {
		return err
	}
	was, wasRun, wanted := in.State, in.Run, in.Want
	if err := s.meter(tx, *in, m, h, at); err != nil {
		return err
	}
	switch m.Lease {
	case models.LeaseTake:
		if err := tx.TakeLeases(h.leases); err != nil {
			return err
		}
	case models.LeaseRelease:
		if err := s.release(tx, *in, at); err != nil {
			return err
		}
	}
	if early(was) && (early(m.To) || m.To == models.Running) && in.Run == wasRun {
		took := at.Sub(in.ChangedAt)
		tx.After(func() { s.figures.spent(was, took) })
	}
	in.State, in.Reason, in.Detail = m.To, h.reason, h.detail
	in.Want = wantAfter(h.on, in.Want)
	in.ChangedAt = at
	switch h.on {
	case models.StartAsked, models.RestartAsked, models.NodeRebooted:
		if err := s.beginRun(tx, in, at); err != nil {
			return err
		}
	case models.NodeRunning:
		in.RunningAt = min(at, max(in.RequestedAt, at-models.Instant(told(h.reported))*1e6))
	}
	if was.Active() && over(m.To) {
		in.EndedAt = at
	}
	if err := tx.SaveInstance(*in, was, wasRun); err != nil {
		return err
	}
	err = tx.AddInstanceEvent(models.InstanceEvent{InstanceID: in.ID, At: at, Kind: string(h.on), From: was, To: m.To, Run: in.Run, Reason: h.detail})
	if err != nil {
		return err
	}
	if in.Want != wanted || in.Run != wasRun || m.Lease != models.LeaseKeep || m.To == models.Terminated {
		return tx.BumpNode(in.NodeID)
	}
	return nil
}

// meter carries out a move's effect on the usage span of the run, and gives the
// launch's hold back when the run ended before it could be used.
func (s *Service) meter(tx *store.Tx, in models.Instance, m models.Move, h happening, at models.Instant) error {
	span := billing.SpanID(in)
	switch m.Meter {
	case models.MeterOpen:
		if err := s.closeBefore(tx, in, at); err != nil {
			return err
		}
		return s.bill.OpenSpan(tx, in, told(h.reported), at)
	case models.MeterCap:
		return s.bill.Cap(tx, span, at, h.reason)
	case models.MeterClose:
		if err := s.bill.Close(tx, span, h.reported, h.reason, at); err != nil {
			return err
		}
		return s.closeBefore(tx, in, at)
	case models.MeterCloseConfirmed:
		if err := s.bill.Close(tx, span, nil, h.reason, at); err != nil {
			return err
		}
		return s.closeBefore(tx, in, at)
	}
	if !early(m.From) || early(m.To) {
		return nil
	}
	if err := s.bill.Release(tx, billing.LaunchRef(in.ID, in.Run), at); err != nil || !over(m.To) {
		return err
	}
	return s.closeBefore(tx, in, at)
}

// closeBefore closes the span of the run before, should the node never have told
// its end (it was replaced by this one).
func (s *Service) closeBefore(tx *store.Tx, in models.Instance, at models.Instant) error {
	if in.Run < 2 {
		return nil
	}
	in.Run--
	return s.bill.Close(tx, billing.SpanID(in), nil, "restarted", at)
}

// beginRun counts a start and sets money aside for it. The hold comes before
// the node hears of the run.
func (s *Service) beginRun(tx *store.Tx, in *models.Instance, at models.Instant) error {
	if err := s.closeBefore(tx, *in, at); err != nil {
		return err
	}
	in.Run++
	in.RequestedAt, in.RunningAt, in.EndedAt = at, 0, 0
	in.PullDone, in.PullTotal = 0, 0
	return s.bill.Hold(tx, in.AccountID, billing.LaunchRef(in.ID, in.Run), in.PricePerHour, at)
}

// release gives leases back and takes the slices they explained off the cards:
// the node has just said that they are free.
func (s *Service) release(tx *store.Tx, in models.Instance, at models.Instant) error {
	released, err := tx.ReleaseLeases(in.ID, at)
	if err != nil || len(released) == 0 {
		return err
	}
	uuids := make([]string, len(released))
	for i, l := range released {
		uuids[i] = l.DeviceUUID
	}
	devices, err := tx.DevicesByUUID(uuids)
	if err != nil {
		return err
	}
	for _, l := range released {
		d := devices[l.DeviceUUID]
		kept := d.Slices[:0:0]
		for _, p := range d.Slices {
			if p.Start != l.Start || p.Size != l.Size {
				kept = append(kept, p)
			}
		}
		if len(kept) == len(d.Slices) {
			continue
		}
		d.Slices = kept
		if err := tx.SetDeviceSlices(d); err != nil {
			return err
		}
		devices[l.DeviceUUID] = d
	}
	return nil
}

// refreshPaid sets how far the present run of one instance may go, before its
// node hears of it. The account's other instances follow in the background.
func (s *Service) refreshPaid(tx *store.Tx, in *models.Instance, at models.Instant) error {
	paid, err := s.bill.PaidSeconds(tx, in.AccountID, at)
	if err != nil {
		return err
	}
	in.PaidSeconds = max(1, paid[in.ID]) // to a node 0 means no limit
	return tx.SetPaidSeconds(in.ID, in.PaidSeconds)
}

// wantAfter is what the portal wants of an instance after an event. Once it is to
// be gone, nothing but a refusal by the table changes that.
func wantAfter(on models.InstanceEventKind, now models.Want) models.Want {
	switch on {
	case models.Placed, models.StartAsked, models.RestartAsked, models.NodeRebooted:
		return models.WantRunning
	case models.TerminateAsked, models.NodeGone, models.NodeRetirement:
		return models.WantGone
	case models.StopAsked, models.MoneyEnded, models.NodeLost, models.NodeStopped, models.NodeFailed:
		if now != models.WantGone {
			return models.WantStopped
		}
	}
	return now
}

// early tells whether a run in this state holds money and is not usable yet.
func early(s models.InstanceState) bool {
	switch s {
	case models.Placing, models.Pulling, models.Starting:
		return true
	}
	return false
}

// over tells whether the run has ended.
func over(s models.InstanceState) bool {
	switch s {
	case models.Stopped, models.Failed, models.Lost, models.Terminated, models.Interrupted:
		return true
	}
	return false
}

func told(seconds *int64) int64 {
	if seconds == nil {
		return 0
	}
	return *seconds
}
