package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"berth/billing"
	"berth/gpu"
	"berth/models"
	"berth/models/store"
)

// Launch places an order, holds money for its first minute and inserts the
// instance with its leases, all in one transaction; the node hears of it after.
//
// The same ClientKey with the same order returns the instance it made before;
// with another order it is KeyReused. It fails with Invalid and the fields,
// InsufficientFunds with have and need, AccountFrozen, or NoCapacity with
// alternatives; nothing is changed then.
func (s *Service) Launch(ctx context.Context, o Order, at models.Instant) (in models.Instance, err error) {
	sku, err := o.check()
	if err != nil {
		return in, err
	}
	if o.BillingMode == "" {
		o.BillingMode = models.OnDemand
	}
	for range 3 {
		err = s.st.InTx(ctx, func(tx *store.Tx) (err error) {
			in, err = s.launch(tx, o, sku, at)
			return err
		})
		if !errors.Is(err, store.ErrDuplicate) {
			break
		}
	}
	if errors.Is(err, store.ErrDuplicate) {
		err = noCapacity(sku, "somebody was faster")
	}
	var p *models.Problem
	switch {
	case err == nil:
		s.figures.launched("placed")
	case errors.As(err, &p):
		s.figures.launched(string(p.Code))
	default:
		s.figures.launched("error")
	}
	if err == nil || models.HasCode(err, models.NoCapacity) {
		s.pools.learn(sku) // demand is what is asked for, met or not
	}
	if err != nil {
		return models.Instance{}, err
	}
	return in, nil
}

func (s *Service) launch(tx *store.Tx, o Order, sku gpu.SKU, at models.Instant) (in models.Instance, err error) {
	if err := tx.LockPlacement(); err != nil {
		return in, err
	}
	if o.ClientKey != "" {
		before, found, err := tx.InstanceByClientKey(o.Account, o.ClientKey)
		if err != nil {
			return in, err
		}
		if found && before.ClientHash != o.hash() {
			return in, &models.Problem{Code: models.KeyReused, What: "This idempotency key came with another launch before.",
				Next: "Send the same launch again, or use a new key."}
		}
		if found {
			return before, nil
		}
	}
	id := models.InstanceID(store.NewID("ins", at.Time()))
	name, err := s.nameFor(tx, o, id)
	if err != nil {
		return in, err
	}
	sites, err := s.sites(tx)
	if err != nil {
		return in, err
	}
	l, err := s.pools.place(sites, request{sku: sku, image: o.Image, diskGiB: o.DiskGiB, account: o.Account})
	if err != nil {
		return in, withAlternatives(err, openTo(sites, o.Account), sku)
	}
	if _, err := tx.LockNode(l.site.node.ID); err != nil {
		return in, err
	}
	price, err := s.bill.PriceAt(tx, sku.ID, o.BillingMode, at)
	if err != nil {
		return in, err
	}
	in = models.Instance{ID: id, AccountID: o.Account, CreatedBy: o.User, NodeID: l.site.node.ID, Name: name, SKU: sku.ID,
		BillingMode: o.BillingMode, PricePerHour: price.PricePerHour, Currency: price.Currency,
		Image: o.Image, Command: o.Command, Env: o.Env, StartupScript: o.StartupScript, DiskGiB: o.DiskGiB,
		State: models.Queued, Why: l.why, Want: models.WantRunning, Run: 1,
		ClientKey: o.ClientKey, ClientHash: o.hash(), CreatedAt: at, RequestedAt: at, ChangedAt: at}
	if in.Image == "" && len(l.site.host.Runtime.Images) > 0 {
		in.Image = l.site.host.Runtime.Images[0]
	}
	in.MilliCPU, in.MemoryMiB = l.host()
	if err := s.bill.Hold(tx, o.Account, billing.LaunchRef(id, in.Run), in.PricePerHour, at); err != nil {
		return in, err
	}
	if err := tx.InsertInstance(in); err != nil {
		return in, err
	}
	if err := s.move(tx, &in, happening{on: models.Placed, detail: l.why, leases: l.leases(in, at)}, at); err != nil {
		return in, err
	}
	return in, s.refreshPaid(tx, &in, at)
}

// nameFor returns the name asked for, or makes one. A taken one is Invalid.
func (s *Service) nameFor(tx *store.Tx, o Order, id models.InstanceID) (string, error) {
	taken, err := tx.LiveNames(o.Account)
	if err != nil {
		return "", err
	}
	if o.Name == "" {
		return makeName(id, taken), nil
	}
	if slices.Contains(taken, o.Name) {
		return "", models.Fieldset{"name": fmt.Sprintf("You have an instance called %s: choose another name, or terminate that one first.", o.Name)}.Problem()
	}
	return o.Name, nil
}

// leases are the rows that hold a landing for an instance.
func (l landing) leases(in models.Instance, at models.Instant) (out []models.Lease) {
	for _, sl := range l.slices {
		profile, err := sl.card.model.Profile(sl.at.Profile)
		if err != nil {
			panic("fleet: placed a profile the card does not have: " + err.Error())
		}
		memory := profile.MemoryMiB
		if sl.at.Profile == gpu.Whole && sl.card.device.MemoryMiB > 0 {
			memory = sl.card.device.MemoryMiB // what this card's driver says, rather than the table
		}
		out = append(out, models.Lease{ID: store.NewID("lea", at.Time()), InstanceID: in.ID, AccountID: in.AccountID, NodeID: in.NodeID,
			DeviceUUID: sl.card.device.UUID, Profile: sl.at.Profile, Start: sl.at.Start, Size: sl.at.Size, MemoryMiB: memory, CreatedAt: at})
	}
	return out
}

// withAlternatives adds to a NoCapacity Problem what can be placed now.
func withAlternatives(err error, sites []site, sku gpu.SKU) error {
	var p *models.Problem
	if errors.As(err, &p) && p.Code == models.NoCapacity {
		p.Alternatives = alternatives(sites, sku)
	}
	return err
}
