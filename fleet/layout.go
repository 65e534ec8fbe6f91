package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"berth/gpu"
	"berth/models"
	"berth/models/store"
)

// LayoutPlan is how a card comes to be divided as an operator wants it.
type LayoutPlan struct {
	Device models.Device
	Model  gpu.Model
	gpu.Plan
	// Layout is the card afterwards: what is kept and what is made. Empty: its
	// slices are made as they are asked for.
	Layout []gpu.Placement
}

// PlanLayout works out how a card would be divided into profiles, each named as
// often as it is wanted, and changes nothing. No profiles: the card is divided as
// is asked for. Slices in use stay where they are. It fails with NotFound; with
// Invalid for what no such card can have; with Conflict naming the instances in
// the way, or what is on the card that is not Berth's.
func (s *Service) PlanLayout(ctx context.Context, uuid string, profiles []string) (plan LayoutPlan, err error) {
	err = s.st.View(ctx, func(tx *store.Tx) error {
		plan, err = planLayout(tx, uuid, profiles)
		return err
	})
	return plan, err
}

// SetLayout has a card divided so, as PlanLayout says. Its node makes the slices
// and has them lie ready; from now on the card is sold in these slices only.
func (s *Service) SetLayout(ctx context.Context, uuid string, profiles []string) (plan LayoutPlan, err error) {
	err = s.st.InTx(ctx, func(tx *store.Tx) error {
		if err := tx.LockPlacement(); err != nil {
			return err
		}
		if plan, err = planLayout(tx, uuid, profiles); err != nil {
			return err
		}
		plan.Device.Layout = plan.Layout
		if err := tx.SetDeviceLayout(plan.Device); err != nil {
			return err
		}
		return tx.BumpNode(plan.Device.NodeID)
	})
	if err == nil {
		s.log.Info("card is to be divided", "device", uuid, "node", plan.Device.NodeID, "layout", plan.Layout)
	}
	return plan, err
}

func planLayout(tx *store.Tx, uuid string, profiles []string) (plan LayoutPlan, err error) {
	d, err := tx.Device(uuid)
	if err != nil {
		return plan, err
	}
	plan = LayoutPlan{Device: d, Layout: []gpu.Placement{}}
	if plan.Model, err = d.GPU(); err == nil && plan.Model.Share.N > 0 {
		return plan, models.Fieldset{"profiles": fmt.Sprintf("%s is sold in time shares, so it cannot be divided: say first that it is not shared.", d.Name)}.Problem()
	}
	if err != nil || !plan.Model.Partitions() {
		return plan, models.Fieldset{"profiles": fmt.Sprintf("%s cannot be divided.", d.Name)}.Problem()
	}
	now, err := heldOf(tx, d)
	if err != nil {
		return plan, err
	}
	if len(profiles) == 0 {
		for _, h := range now {
			if h.Holder == "" {
				plan.Remove = append(plan.Remove, h.Placement)
			} else {
				plan.Keep = append(plan.Keep, h)
			}
		}
		return plan, nil
	}
	plan.Plan, err = plan.Model.Plan(now, profiles)
	switch {
	case errors.Is(err, gpu.ErrBlocked):
		return plan, &models.Problem{Code: models.Conflict, What: sentence(err.Error()),
			Next: "Nothing was changed. Choose a layout that has room for what is in use, or wait until it has ended."}
	case err != nil:
		return plan, models.Fieldset{"profiles": sentence(err.Error())}.Problem()
	}
	for _, h := range plan.Keep {
		plan.Layout = append(plan.Layout, h.Placement)
	}
	plan.Layout = append(plan.Layout, plan.Make...)
	slices.SortFunc(plan.Layout, func(a, b gpu.Placement) int { return a.Start - b.Start })
	return plan, nil
}

// heldOf is what lies on a card, and whose it is: slices that wait for an
// instance have no holder.
func heldOf(tx *store.Tx, d models.Device) ([]gpu.Held, error) {
	leases, err := tx.DeviceLeases([]string{d.UUID})
	if err != nil {
		return nil, err
	}
	ids := make([]models.InstanceID, len(leases))
	for i, l := range leases {
		ids[i] = l.InstanceID
	}
	list, err := tx.InstancesByID(ids)
	if err != nil {
		return nil, err
	}
	names := map[models.InstanceID]string{}
	for _, in := range list {
		names[in.ID] = in.Name
	}
	var now []gpu.Held
	var taken []gpu.Placement
	for _, l := range leases {
		now = append(now, gpu.Held{Placement: l.Placement(), Holder: "instance " + names[l.InstanceID]})
		taken = append(taken, l.Placement())
	}
	for _, p := range foreign(d, taken) {
		if slices.ContainsFunc(d.Layout, func(l gpu.Placement) bool { return p.Start < l.Start+l.Size && l.Start < p.Start+p.Size }) {
			continue // of the layout before this one: the node is still at it
		}
		now = append(now, gpu.Held{Placement: p, Holder: "somebody outside Berth"})
	}
	for _, p := range d.Layout {
		if !slices.Contains(taken, p) {
			now = append(now, gpu.Held{Placement: p})
		}
	}
	return now, nil
}
