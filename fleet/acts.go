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

// Stop ends the present run; the disk stays. Nothing after this moment is paid.
// Stopping what is stopped, or about to be, changes nothing.
func (s *Service) Stop(ctx context.Context, account models.AccountID, id models.InstanceID, at models.Instant) (models.Instance, error) {
	return s.act(ctx, account, id, func(tx *store.Tx, in *models.Instance) error {
		if in.State == models.Stopping || in.State == models.Stopped {
			return nil
		}
		return s.ask(tx, in, happening{on: models.StopAsked, reason: "stopped", detail: "You stopped it."}, "stopped", at)
	})
}

// Terminate ends the present run, if any, and erases the disk. Nothing after this
// moment is paid. Terminating what is terminated changes nothing.
func (s *Service) Terminate(ctx context.Context, account models.AccountID, id models.InstanceID, at models.Instant) (models.Instance, error) {
	return s.act(ctx, account, id, func(tx *store.Tx, in *models.Instance) error {
		if in.State == models.Terminated || in.Want == models.WantGone {
			return nil
		}
		return s.ask(tx, in, happening{on: models.TerminateAsked, reason: "terminated", detail: "You terminated it."}, "terminated", at)
	})
}

// Restart ends the present run and begins the next on the same slices.
func (s *Service) Restart(ctx context.Context, account models.AccountID, id models.InstanceID, at models.Instant) (models.Instance, error) {
	return s.act(ctx, account, id, func(tx *store.Tx, in *models.Instance) error {
		err := s.ask(tx, in, happening{on: models.RestartAsked, reason: "restarted", detail: "You restarted it."}, "restarted", at)
		if err != nil {
			return err
		}
		return s.refreshPaid(tx, in, at)
	})
}

// Start begins another run of a stopped or failed instance at the price of now.
// It goes to the same node, where its disk is: when that has no room, it fails
// with NoCapacity and says what can be done.
func (s *Service) Start(ctx context.Context, account models.AccountID, id models.InstanceID, at models.Instant) (in models.Instance, err error) {
	for range 3 {
		in, err = s.start(ctx, account, id, "You started it.", at)
		if !errors.Is(err, store.ErrDuplicate) {
			return in, err
		}
	}
	return models.Instance{}, models.ErrStale
}

// start is Start, with who asked for it in a sentence.
func (s *Service) start(ctx context.Context, account models.AccountID, id models.InstanceID, who string, at models.Instant) (models.Instance, error) {
	var in models.Instance
	err := s.st.InTx(ctx, func(tx *store.Tx) error {
		if err := tx.LockPlacement(); err != nil {
			return err
		}
		var err error
		if in, err = s.lock(tx, account, id); err != nil {
			return err
		}
		if !in.State.Can(models.StartAsked) {
			return refuse(in, "started")
		}
		sku, err := gpu.ParseSKU(in.SKU)
		if err != nil {
			return fmt.Errorf("instance %s: %w", in.ID, err)
		}
		sites, err := s.sites(tx)
		if err != nil {
			return err
		}
		l, err := s.pools.place(sites, request{sku: sku, node: in.NodeID, account: in.AccountID})
		if err != nil {
			return s.fullProblem(tx, err, openTo(sites, in.AccountID), sku, in)
		}
		price, err := s.bill.PriceAt(tx, in.SKU, in.BillingMode, at)
		if err != nil {
			return err
		}
		in.PricePerHour, in.Currency, in.Why = price.PricePerHour, price.Currency, l.why
		in.MilliCPU, in.MemoryMiB = l.host()
		err = s.move(tx, &in, happening{on: models.StartAsked, detail: who + " " + l.why, leases: l.leases(in, at)}, at)
		if err != nil {
			return err
		}
		return s.refreshPaid(tx, &in, at)
	})
	return in, err
}

// fullProblem says that the node which has the disk has no room, and what can be
// done about it.
func (s *Service) fullProblem(tx *store.Tx, err error, sites []site, sku gpu.SKU, in models.Instance) error {
	var p *models.Problem
	if !errors.As(err, &p) {
		return err
	}
	node, lookup := tx.Node(in.NodeID)
	if lookup != nil {
		return lookup
	}
	out := &models.Problem{Code: models.NoCapacity, Alternatives: alternatives(sites, sku)}
	if node.State != models.NodeOnline {
		out.What = fmt.Sprintf("Node %s, which has the disk of %s, is not connected now.", node.Name, in.Name)
		out.Next = "Start it when the node is back, or launch a new instance elsewhere; the disk is kept."
		return out
	}
	if !node.Open() {
		out.What = fmt.Sprintf("Node %s, which has the disk of %s, is closed to new starts, for maintenance.", node.Name, in.Name)
		out.Next = "Start it when the node is open again, or launch a new instance elsewhere; the disk is kept."
		return out
	}
	well := slices.ContainsFunc(sites, func(s site) bool {
		return s.node.ID == in.NodeID && slices.ContainsFunc(s.cards, func(c card) bool { return c.model.ID == sku.Model })
	})
	if !well {
		out.What = fmt.Sprintf("Node %s, which has the disk of %s, has no card for a %s that is well now.", node.Name, in.Name, sku.Name())
		out.Next = "Start it when the card is mended, or launch a new instance elsewhere; the disk is kept."
		return out
	}
	out.What = fmt.Sprintf("Node %s, which has the disk of %s, has no %s free: what it held before is rented now.", node.Name, in.Name, sku.Name())
	out.Next = "Try again when an instance on that node has ended, or launch a new one elsewhere; the disk is kept."
	return out
}

// StopMany stops those of an account's instances that can be stopped. refused
// says why another was not.
func (s *Service) StopMany(ctx context.Context, account models.AccountID, ids []models.InstanceID, at models.Instant) (stopped []models.Instance, refused map[models.InstanceID]error, err error) {
	refused = map[models.InstanceID]error{}
	for _, id := range ids {
		in, err := s.Stop(ctx, account, id, at)
		var p *models.Problem
		switch {
		case err == nil:
			stopped = append(stopped, in)
		case errors.As(err, &p):
			refused[id] = p
		default:
			return stopped, refused, err
		}
	}
	return stopped, refused, nil
}

// act runs a renter's wish on one instance, with node and instance locked.
func (s *Service) act(ctx context.Context, account models.AccountID, id models.InstanceID, work func(*store.Tx, *models.Instance) error) (in models.Instance, err error) {
	err = s.st.InTx(ctx, func(tx *store.Tx) error {
		var err error
		if in, err = s.lock(tx, account, id); err != nil {
			return err
		}
		return work(tx, &in)
	})
	if err != nil {
		return models.Instance{}, err
	}
	return in, nil
}

// lock reads an account's instance with its node and itself locked, in this order.
func (s *Service) lock(tx *store.Tx, account models.AccountID, id models.InstanceID) (models.Instance, error) {
	in, err := tx.Instance(id)
	if err != nil {
		return in, err
	}
	if in.AccountID != account {
		return in, models.Missing("instance", id)
	}
	if _, err := tx.LockNode(in.NodeID); err != nil {
		return in, err
	}
	return tx.LockInstance(id)
}

// ask is move for renters, whose Conflict is in their words.
func (s *Service) ask(tx *store.Tx, in *models.Instance, h happening, done string, at models.Instant) error {
	if !in.State.Can(h.on) {
		return refuse(*in, done)
	}
	return s.move(tx, in, h, at)
}

func refuse(in models.Instance, done string) error {
	return &models.Problem{Code: models.Conflict, What: fmt.Sprintf("%s is %s: it cannot be %s now.", in.Name, in.State, done),
		Next: "Its page shows what it can do now."}
}
