package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"berth/models"
	"berth/models/store"
)

const (
	sweepEvery   = 15 * time.Second
	offlineAfter = 30 * time.Second // silence after which a node is not sold any more
)

// Run does the background work until ctx ends: it finds nodes that fell silent,
// running instances without a meter, and tells nodes when a wallet changed how
// long its instances may go on. It returns nil when ctx ends.
func (s *Service) Run(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- s.followWallets(ctx) }()
	if err := s.pools.recall(ctx, s.st); err != nil && ctx.Err() == nil {
		s.log.Error("placement begins without experience", "error", err)
	}
	var warming sync.WaitGroup
	defer warming.Wait()
	warming.Go(func() { s.pools.run(ctx) })
	warming.Go(func() { s.runHistory(ctx) })
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if err := s.Sweep(ctx, models.At(time.Now())); err != nil && ctx.Err() == nil {
			s.log.Error("sweep of the fleet", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return <-done
		}
	}
}

// Sweep does at the given moment what Run does every few seconds, wallets apart.
func (s *Service) Sweep(ctx context.Context, at models.Instant) error {
	s.telemetry.forget(at.Add(-KeptSamples * time.Second))
	return errors.Join(s.sweepSilent(ctx, at), s.sweepUnmetered(ctx, at), s.sweepMaintenance(ctx, at))
}

// listening returns since when this portal listens. Sweeps are frequent: a gap
// between two says that the host slept or its clock was set, and silence counts
// from after it.
func (s *Service) listening(at models.Instant) models.Instant {
	s.mu.Lock()
	defer s.mu.Unlock()
	if gap := at.Sub(s.swept); s.swept != 0 && (gap < 0 || gap > offlineAfter) {
		s.log.Warn("the portal was away, so no node's silence counts", "gap", gap)
		s.present = at
	}
	s.swept = at
	return s.present
}

// lastHeard is when a node last said anything. What could not be stored, since
// the database was away, counts too.
func (s *Service) lastHeard(n models.Node) models.Instant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(n.SeenAt, s.heard[n.ID])
}

// sweepSilent takes silent nodes off sale, and calls their instances lost when
// they stay silent. Only silence that this portal was there to hear counts.
func (s *Service) sweepSilent(ctx context.Context, at models.Instant) error {
	present := s.listening(at)
	if at.Sub(present) < offlineAfter {
		return nil
	}
	var silent []models.Node
	if err := s.st.View(ctx, func(tx *store.Tx) (err error) {
		silent, err = tx.SilentNodes(at.Add(-offlineAfter))
		return err
	}); err != nil {
		return fmt.Errorf("list silent nodes: %w", err)
	}
	lostBefore := at.Add(-s.cfg.LostAfter)
	for _, n := range silent {
		lost := max(s.lastHeard(n), present) <= lostBefore
		if !lost && n.State == models.NodeOffline {
			continue
		}
		if err := s.silence(ctx, n.ID, n.SeenAt, lost, at); err != nil {
			return fmt.Errorf("node %s is silent: %w", n.ID, err)
		}
	}
	return nil
}

// silence marks a node offline, unless it was heard meanwhile.
func (s *Service) silence(ctx context.Context, id models.NodeID, seen models.Instant, lost bool, at models.Instant) error {
	return s.st.InTx(ctx, func(tx *store.Tx) error {
		n, err := tx.LockNode(id)
		if err != nil || n.SeenAt > seen {
			return err
		}
		if n.State == models.NodeOnline {
			if err := tx.SetNodeOffline(id); err != nil {
				return err
			}
		}
		if !lost {
			return nil
		}
		list, err := tx.NodeInstances(id)
		if err != nil {
			return err
		}
		for _, in := range list {
			if !in.State.Can(models.NodeLost) {
				continue
			}
			if in, err = tx.LockInstance(in.ID); err != nil {
				return err
			}
			h := happening{on: models.NodeLost, reason: "lost", detail: fmt.Sprintf(
				"Its node %s has not been heard of for %d minutes. What is charged ends with its last confirmed second. Launch elsewhere, or wait for the node to come back.",
				n.Name, int(s.cfg.LostAfter.Minutes()))}
			if err := s.try(tx, &in, h, at); err != nil {
				return err
			}
		}
		s.log.Warn("node is lost", "node", id, "seen", n.SeenAt.Time())
		return nil
	})
}

// sweepUnmetered finds running instances that no usage span meters, which no
// transaction of ours can leave behind, and opens the span again for the time
// that their node confirmed.
func (s *Service) sweepUnmetered(ctx context.Context, at models.Instant) error {
	var list []models.Instance
	if err := s.st.View(ctx, func(tx *store.Tx) (err error) {
		list, err = tx.UnmeteredInstances()
		return err
	}); err != nil {
		return fmt.Errorf("list running instances without a meter: %w", err)
	}
	for _, in := range list {
		s.log.Error("running instance had no usage span; it was opened again", "instance", in.ID, "node", in.NodeID, "account", in.AccountID)
		err := s.st.InTx(ctx, func(tx *store.Tx) error {
			n, err := tx.LockNode(in.NodeID)
			if err != nil {
				return err
			}
			now, err := tx.LockInstance(in.ID)
			if err != nil || now.State != models.Running || now.Run != in.Run {
				return err
			}
			return s.bill.ReopenSpan(tx, now, max(0, int64(n.SeenAt.Sub(now.RunningAt)/time.Second)), max(n.SeenAt, now.RunningAt))
		})
		if err != nil {
			return fmt.Errorf("open span of instance %s: %w", in.ID, err)
		}
	}
	return nil
}
