package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"berth/gpu"
	"berth/models"
	"berth/models/store"
)

// SetSharing says how a card is shared from now on: name is that of a share, such
// as "ts4", models.SharingNone, or empty for what is usual for its model; mixed lets
// its shares be of several accounts, which can then disturb each other. It fails
// with NotFound; with Invalid for what is no share; with Conflict while anything of
// the card is rented, as what its renters were told would change, or while it is
// divided.
func (s *Service) SetSharing(ctx context.Context, uuid, name string, mixed bool, at models.Instant) (d models.Device, err error) {
	if _, err := gpu.ParseShare(name); err != nil && name != "" && name != models.SharingNone {
		return d, models.Fieldset{"sharing": sentence(err.Error())}.Problem()
	}
	err = s.st.InTx(ctx, func(tx *store.Tx) error {
		if err := tx.LockPlacement(); err != nil {
			return err
		}
		if d, err = tx.Device(uuid); err != nil {
			return err
		}
		before := d
		d.Sharing, d.Mixed = name, mixed
		if before.Share() != d.Share() || before.Mixed != mixed {
			if err := unused(tx, d); err != nil {
				return err
			}
		}
		return tx.SetDeviceSharing(d)
	})
	if err != nil {
		return d, err
	}
	s.log.Info("card is shared", "device", uuid, "node", d.NodeID, "sharing", name, "mixed", mixed)
	if share := d.Share(); share.N > 0 {
		return d, s.bill.EnsureDefaults(ctx, []gpu.SKU{gpu.SKUFor(d.Model, share.Name(), 1)}, at)
	}
	return d, nil
}

// unused fails with a Conflict while there is anything on a card.
func unused(tx *store.Tx, d models.Device) error {
	held, err := heldOf(tx, d)
	if err != nil || len(held) == 0 {
		return err
	}
	by := held[0].Holder
	if by == "" {
		by = "slices that lie ready"
	}
	return &models.Problem{Code: models.Conflict, What: fmt.Sprintf("The card has %s of %s on it.", held[0].Placement, by),
		Next: "Nothing was changed. Cordon the node and wait until nothing of the card is rented, or take its layout back first."}
}

// soldOf lists what the cards of a model that sites have are sold as: whole and in
// partitions, and in the shares that any of them is set to.
func soldOf(sites []site, m gpu.Model) []gpu.Profile {
	sold := m.Sold()
	var shared []gpu.Model
	for _, s := range sites {
		for _, c := range s.cards {
			if c.model.ID == m.ID && c.model.Share.N > 0 && !slices.ContainsFunc(shared, func(o gpu.Model) bool { return o.Share == c.model.Share }) {
				shared = append(shared, c.model)
			}
		}
	}
	slices.SortFunc(shared, func(a, b gpu.Model) int { return cmp.Compare(a.Share.N, b.Share.N) })
	for _, o := range shared {
		sold = append(sold, o.Profiles...)
	}
	return sold
}

// openTo is the sites as an account may use them: a card of which another account
// has a share is full, unless its operator lets accounts share it. Nothing but the
// renters' good will keeps shares of one card from taking each other's memory.
func openTo(sites []site, account models.AccountID) []site {
	out := slices.Clone(sites)
	for i := range out {
		if slices.ContainsFunc(out[i].cards, func(c card) bool { return c.closedTo(account) }) {
			out[i].cards = slices.Clone(out[i].cards)
			for j, c := range out[i].cards {
				if c.closedTo(account) {
					out[i].cards[j].used = append(slices.Clip(c.used), c.rest()...)
				}
			}
		}
	}
	return out
}

// closedTo tells whether the free shares of a card are not for an account.
func (c card) closedTo(account models.AccountID) bool {
	return c.model.Share.N > 0 && !c.device.Mixed && slices.ContainsFunc(c.holders, func(h models.AccountID) bool { return h != account })
}

// closedToSome tells whether cards of a model have free shares that are not for an
// account.
func closedToSome(sites []site, account models.AccountID, model gpu.Model) bool {
	return slices.ContainsFunc(sites, func(s site) bool {
		return slices.ContainsFunc(s.cards, func(c card) bool {
			return c.model.ID == model.ID && c.model.Share == model.Share && c.closedTo(account) && len(c.rest()) > 0
		})
	})
}

// rest are the free places of a shared card.
func (c card) rest() (free []gpu.Placement) {
	p := c.model.Profiles[0]
	for _, start := range c.model.FreeStarts(p, c.used) {
		free = append(free, p.At(start))
	}
	return free
}
