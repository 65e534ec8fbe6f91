package fleet

import (
	"errors"
	"fmt"
	"time"

	"berth/billing"
	"berth/models"
	"berth/models/store"
	"berth/wire"
)

// report is what a node says of one run of an instance, be it by a journalled
// event or in an inventory. Both say the same thing, so both have the same
// effect, once: what the table of moves does not have from here is old news.
type report struct {
	run     int
	phase   wire.Phase
	reason  string
	detail  string
	exit    *int
	seconds int64
}

// observe brings an instance to where its node says it is. The caller holds the
// locks of node and instance. Nothing a node says is an error.
func (s *Service) observe(tx *store.Tx, in *models.Instance, r report, at models.Instant) error {
	r.seconds = max(0, r.seconds)
	if r.run > in.Run {
		s.log.Warn("node reports a run that nobody asked for", "instance", in.ID, "node", in.NodeID, "run", r.run)
		return nil
	}
	if r.phase == wire.PhaseGone && in.Want == models.WantGone {
		return s.try(tx, in, happening{on: models.NodeGone, reason: in.Reason, detail: "Nothing of it is left on the node.", reported: secondsOf(in.Run, r)}, at)
	}
	if r.run < in.Run {
		return s.observeOld(tx, *in, r, at)
	}
	switch r.phase {
	case wire.PhasePulling:
		return s.try(tx, in, happening{on: models.NodePulling, detail: "The node is getting the image. This is free."}, at)
	case wire.PhaseStarting:
		return s.try(tx, in, happening{on: models.NodeStarting, detail: "Its processes are starting. This is free."}, at)
	case wire.PhaseRunning, wire.PhaseStopping:
		if r.phase == wire.PhaseRunning && in.State.Can(models.NodeRunning) {
			return s.move(tx, in, running(r), at)
		}
		got, err := s.bill.Report(tx, billing.SpanID(*in), r.seconds, at)
		if err != nil || !got.Exhausted {
			return err
		}
		return s.moneyEnded(tx, in, at)
	case wire.PhaseStopped, wire.PhaseGone:
		return s.observeEnd(tx, in, r, at)
	}
	return nil
}

// running is the event of a run that has become usable.
func running(r report) happening {
	return happening{on: models.NodeRunning, detail: "It is usable. Billing began with this second.", reported: &r.seconds}
}

// observeEnd takes in that a run has ended.
func (s *Service) observeEnd(tx *store.Tx, in *models.Instance, r report, at models.Instant) error {
	if early(in.State) && r.seconds > 0 {
		// It ran and ended while nobody listened. Its seconds are due, and only
		// these: the span begins that long ago.
		if err := s.move(tx, in, running(r), at); err != nil {
			return err
		}
	}
	if in.Want == models.WantGone {
		// Half of what was asked for: the leases wait for the other half.
		_, err := s.bill.Report(tx, billing.SpanID(*in), r.seconds, at)
		return err
	}
	h := ended(*in, r)
	if r.reason == wire.ReasonRebooted && in.State.Can(models.NodeRebooted) {
		why, err := s.mayReturn(tx, *in, at)
		if err != nil {
			return err
		}
		if why == "" {
			if err := s.move(tx, in, happening{on: models.NodeRebooted, detail: returned, reported: &r.seconds}, at); err != nil {
				return err
			}
			return s.refreshPaid(tx, in, at)
		}
		h.detail += " " + why
	}
	return s.try(tx, in, h, at)
}

const returned = "Its node restarted under it, so it is started again on the same slices, with its disk. What is charged ended with the run before."

// returnsEvery is how long after a restart of its node an instance is left alone
// should there be another: it may be what brings the host down.
const returnsEvery = 10 * time.Minute

// mayReturn sets money aside for the next run of an instance whose node restarted;
// why is what speaks against it, a sentence, or empty.
func (s *Service) mayReturn(tx *store.Tx, in models.Instance, at models.Instant) (why string, err error) {
	last, err := tx.LastEventAt(in.ID, models.NodeRebooted)
	if err != nil {
		return "", err
	}
	if last != 0 && at.Sub(last) < returnsEvery {
		return "It was started again after a restart a short while ago, so it was not this time.", nil
	}
	err = s.bill.Hold(tx, in.AccountID, billing.LaunchRef(in.ID, in.Run+1), in.PricePerHour, at)
	var p *models.Problem
	if errors.As(err, &p) {
		return "It was not started again: " + p.What, nil
	}
	return "", err
}

// observeOld takes in the last word on a run that another has replaced: it closes
// that run's span and moves nothing.
func (s *Service) observeOld(tx *store.Tx, in models.Instance, r report, at models.Instant) error {
	in.Run = r.run
	if r.phase == wire.PhaseStopped || r.phase == wire.PhaseGone {
		return s.bill.Close(tx, billing.SpanID(in), &r.seconds, reasonCode(r.reason), at)
	}
	_, err := s.bill.Report(tx, billing.SpanID(in), r.seconds, at)
	return err
}

// moneyEnded stops an instance whose seconds the wallet no longer covers. The
// node usually is first, at the paid seconds it was given.
func (s *Service) moneyEnded(tx *store.Tx, in *models.Instance, at models.Instant) error {
	return s.try(tx, in, happening{on: models.MoneyEnded, reason: wire.ReasonPaidUntil, detail: outOfMoney}, at)
}

const outOfMoney = "The wallet ran out, so it was stopped; nothing after that is charged. Top up, then start it again: its disk is kept."

// try is move for what may be old news.
func (s *Service) try(tx *store.Tx, in *models.Instance, h happening, at models.Instant) error {
	if !in.State.Can(h.on) {
		return nil
	}
	return s.move(tx, in, h, at)
}

// secondsOf is what a report says of the present run; nil when it is about another.
func secondsOf(run int, r report) *int64 {
	if r.run != run {
		return nil
	}
	return &r.seconds
}

// reasonCode is a node's reason as the span and the instance keep it.
func reasonCode(reason string) string {
	if reason == "" {
		return wire.ReasonNode
	}
	return clip(reason)
}

// ended turns the end of a run into its event, with cause and what to do next.
func ended(in models.Instance, r report) happening {
	h := happening{on: models.NodeFailed, reason: reasonCode(r.reason), reported: &r.seconds}
	free := ""
	if r.seconds == 0 {
		free = " Nothing is charged."
	}
	said := ""
	if r.detail != "" {
		said = " The node says: " + sentence(clipTo(r.detail, 500))
	}
	switch r.reason {
	case wire.ReasonAsked:
		h.on, h.detail = models.NodeStopped, "It was stopped on its node."+said+" Start it again when you want: its disk is kept."
	case wire.ReasonPaidUntil:
		h.on, h.detail = models.NodeStopped, outOfMoney
	case wire.ReasonExited:
		switch {
		case r.exit == nil || *r.exit == 0:
			h.on, h.detail = models.NodeStopped, "Its command ended by itself, without an error. Start it to run the command again."
		case *r.exit > 128:
			h.detail = fmt.Sprintf("Its command was ended by signal %d.%s Look at its log for the cause, then start it again.", *r.exit-128, said)
		default:
			h.detail = fmt.Sprintf("Its command ended with exit code %d. Look at its log for the cause, then start it again.", *r.exit)
		}
	case wire.ReasonDisk:
		h.detail = fmt.Sprintf("Its disk held more than its %d GiB, so it was ended.%s Start it again and make room: it may not grow until then.", in.DiskGiB, free)
	case wire.ReasonStartup:
		code := ""
		if r.exit != nil {
			code = fmt.Sprintf(" with exit code %d", *r.exit)
		}
		h.detail = "Its start-up script failed" + code + "." + free + said + " Its log shows how far it came; start it again, or launch a new one with a corrected script."
	case wire.ReasonCommand:
		h.detail = "Its command could not be started." + free + said + " Launch a new one with a command that is there; its log shows more."
	case wire.ReasonDevices:
		h.detail = "Fewer GPUs were visible inside than you rent." + free + said + " Start it again; if it happens once more, launch elsewhere and tell the operator."
	case wire.ReasonFault:
		h.detail = "The GPU under it failed, and it was ended at once." + said + " What it had used until then is charged. Start it again on another card of its node, or launch elsewhere; the failed card is not sold until it is well."
	case wire.ReasonSlices:
		h.detail = "Its slices could not be made on the card." + free + said + " Start it again, or launch another size."
	case wire.ReasonImage:
		h.detail = fmt.Sprintf("The image %q could not be had.%s%s Check its name, then launch again.", clip(in.Image), free, said)
	case wire.ReasonSupervisor:
		h.detail = "The process that watched over it was killed on its node, and it ended with it." + said + " What it had used until then is charged. Start it again: its disk is kept."
	case wire.ReasonRebooted:
		h.detail = "Its node restarted under it. What it had used until then is charged. Start it again: its disk is kept."
	default:
		h.detail = "Its node could not run it." + free + said + " Start it again; if it happens once more, launch elsewhere."
	}
	if in.State == models.Stopping {
		// The end was asked for, so how the node puts it matters less than why.
		h.reason, h.detail = in.Reason, in.Detail
	}
	return h
}
