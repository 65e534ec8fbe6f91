package fleet

import (
	"context"
	"errors"
	"fmt"

	"berth/models"
	"berth/models/store"
)

// reasonMaintenance is the Reason of an instance that maintenance stopped; those
// that have it are started again when it ends.
const reasonMaintenance = "maintenance"

// SetMaintenance announces that a node is worked on from a moment on, until
// another if that is known. Nothing new starts there from now on, its renters are
// told, and what runs goes on until then; it is then stopped, its disk kept. When
// the maintenance ends, by itself or by EndMaintenance, the node is open again and
// what it stopped starts again. A later call moves it. It fails with NotFound, and
// with Invalid for moments that have passed or are in the wrong order.
func (s *Service) SetMaintenance(ctx context.Context, id models.NodeID, from, until, at models.Instant) error {
	wrong := models.Fieldset{}
	if from < at {
		wrong.Add("from", "That has passed: choose a moment to come.")
	}
	if until != 0 && until <= from {
		wrong.Add("until", "The end comes after the beginning; leave it empty if it is not known.")
	}
	if err := wrong.Problem(); err != nil {
		return err
	}
	return s.st.InTx(ctx, func(tx *store.Tx) error {
		n, err := lockPresent(tx, id)
		if err != nil {
			return err
		}
		n.MaintenanceFrom, n.MaintenanceUntil = from, until
		if err := tx.SetMaintenance(n); err != nil {
			return err
		}
		return s.tellRenters(tx, n, MaintenanceNotice(n), at)
	})
}

// EndMaintenance opens a node again, whether its maintenance has begun or not.
// It fails with NotFound.
func (s *Service) EndMaintenance(ctx context.Context, id models.NodeID, at models.Instant) error {
	return s.st.InTx(ctx, func(tx *store.Tx) error {
		n, err := lockPresent(tx, id)
		if err != nil || n.MaintenanceFrom == 0 {
			return err
		}
		begun := n.MaintenanceFrom <= at
		n.MaintenanceFrom, n.MaintenanceUntil = 0, 0
		if err := tx.SetMaintenance(n); err != nil || begun {
			return err
		}
		return s.tellRenters(tx, n, fmt.Sprintf("The maintenance of its node %s was called off.", n.Name), at)
	})
}

// MaintenanceNotice says what renters on a node are to expect; empty when nothing
// is planned.
func MaintenanceNotice(n models.Node) string {
	if n.MaintenanceFrom == 0 {
		return ""
	}
	const form = "2 Jan 15:04 UTC"
	notice := fmt.Sprintf("Its node %s is worked on from %s: it is stopped then, for free from that moment, and its disk is kept.", n.Name, n.MaintenanceFrom.Time().UTC().Format(form))
	if n.MaintenanceUntil != 0 {
		return notice + fmt.Sprintf(" It is started again at %s, if the wallet covers it.", n.MaintenanceUntil.Time().UTC().Format(form))
	}
	return notice + " It is started again when the work is done, if the wallet covers it."
}

// tellRenters puts a notice into the history of each instance that a node holds
// slices for.
func (s *Service) tellRenters(tx *store.Tx, n models.Node, notice string, at models.Instant) error {
	list, err := tx.NodeInstances(n.ID)
	if err != nil {
		return err
	}
	for _, in := range list {
		if !in.State.Active() {
			continue
		}
		if err := tx.AddInstanceEvent(models.InstanceEvent{InstanceID: in.ID, At: at, Kind: models.MaintenanceNotice, From: in.State, To: in.State, Run: in.Run, Reason: notice}); err != nil {
			return err
		}
		tx.Changed("instance:" + string(in.ID))
	}
	return nil
}

// sweepMaintenance stops what runs on nodes whose maintenance has begun, ends that
// whose time has come, and starts what it stopped once its node is back.
func (s *Service) sweepMaintenance(ctx context.Context, at models.Instant) error {
	var nodes []models.Node
	var waiting []models.Instance
	if err := s.st.View(ctx, func(tx *store.Tx) (err error) {
		if nodes, err = tx.MaintainedNodes(at); err != nil {
			return err
		}
		waiting, err = tx.StoppedOnOpenNodes(reasonMaintenance)
		return err
	}); err != nil {
		return fmt.Errorf("list what is under maintenance: %w", err)
	}
	var all []error
	for _, n := range nodes {
		if n.MaintenanceUntil != 0 && n.MaintenanceUntil <= at {
			all = append(all, s.EndMaintenance(ctx, n.ID, at))
			continue
		}
		all = append(all, s.st.InTx(ctx, func(tx *store.Tx) error { return s.stopForMaintenance(tx, n.ID, at) }))
	}
	for _, in := range waiting {
		all = append(all, s.startAfterMaintenance(ctx, in, at))
	}
	return errors.Join(all...)
}

// startAfterMaintenance starts what maintenance stopped, on a node that is back. If
// that cannot be, its page says why and it is left alone.
func (s *Service) startAfterMaintenance(ctx context.Context, in models.Instance, at models.Instant) error {
	_, err := s.start(ctx, in.AccountID, in.ID, "The maintenance of its node is over.", at)
	var p *models.Problem
	if !errors.As(err, &p) {
		return err
	}
	return s.st.InTx(ctx, func(tx *store.Tx) error {
		in, err := tx.LockInstance(in.ID)
		if err != nil || in.State != models.Stopped || in.Reason != reasonMaintenance {
			return err
		}
		in.Reason, in.Detail = "maintenance_over", "The maintenance of its node is over, but it was not started again: "+p.What+" "+p.Next
		return tx.SaveInstance(in, in.State, in.Run)
	})
}

func (s *Service) stopForMaintenance(tx *store.Tx, id models.NodeID, at models.Instant) error {
	n, err := lockPresent(tx, id)
	if err != nil || n.MaintenanceFrom == 0 || n.MaintenanceFrom > at {
		return err // called off, or moved, meanwhile
	}
	list, err := tx.NodeInstances(id)
	if err != nil {
		return err
	}
	for _, in := range list {
		if !in.State.Can(models.StopAsked) {
			continue
		}
		if in, err = tx.LockInstance(in.ID); err != nil {
			return err
		}
		h := happening{on: models.StopAsked, reason: reasonMaintenance, detail: fmt.Sprintf(
			"The maintenance of its node %s has begun. Nothing is charged from here on, its disk is kept, and it starts again afterwards.", n.Name)}
		if err := s.try(tx, &in, h, at); err != nil {
			return err
		}
	}
	return nil
}
