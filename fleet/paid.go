package fleet

import (
	"context"
	"slices"
	"strings"
	"time"

	"berth/models"
	"berth/models/store"
)

// refreshEvery is how often at most one round of changed wallets is looked at.
const refreshEvery = time.Second

// followWallets keeps the paid seconds of running instances true to their
// account's wallet. It waits on changes; nothing is polled.
func (s *Service) followWallets(ctx context.Context) error {
	watch := s.st.Watch("fleet")
	defer func() { watch.Close() }()
	var watched []models.AccountID
	due := map[models.AccountID]bool{}
	again := true // whose instances are active may differ
	for {
		if again {
			active, err := s.activeAccounts(ctx)
			if err != nil && ctx.Err() == nil {
				s.log.Error("list accounts with instances", "error", err)
			}
			again = false
			if err == nil && !slices.Equal(active, watched) {
				next := s.st.Watch(topicsOf(active)...)
				again = note(watch.Topics(), due) // what changed until the new watch began
				watch.Close()
				watch = next
				for _, a := range active {
					if !slices.Contains(watched, a) {
						due[a] = true
					}
				}
				watched = active
			}
		}
		for a := range due {
			if err := s.RefreshPaid(ctx, a, models.At(time.Now())); err != nil {
				if ctx.Err() == nil {
					s.log.Error("refresh paid seconds", "account", a, "error", err)
				}
				continue // it stays due
			}
			delete(due, a)
		}
		pause := time.NewTimer(refreshEvery)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil
		}
		if len(due) > 0 || again {
			continue
		}
		select {
		case <-watch.C():
			again = note(watch.Topics(), due)
		case <-ctx.Done():
			return nil
		}
	}
}

// note sorts changed topics into the accounts that are due; it tells whether the
// fleet itself changed.
func note(topics []string, due map[models.AccountID]bool) (fleet bool) {
	for _, t := range topics {
		if id, ok := strings.CutPrefix(t, accountTopic); ok {
			due[models.AccountID(id)] = true
		} else {
			fleet = true
		}
	}
	return fleet
}

func (s *Service) activeAccounts(ctx context.Context) (ids []models.AccountID, err error) {
	err = s.st.View(ctx, func(tx *store.Tx) (err error) {
		ids, err = tx.ActiveAccounts()
		return err
	})
	return ids, err
}

const accountTopic = "account:"

func topicsOf(accounts []models.AccountID) []string {
	topics := []string{"fleet"}
	for _, a := range accounts {
		topics = append(topics, accountTopic+string(a))
	}
	return topics
}

// RefreshPaid recomputes how far each of an account's runs may go, and gives
// their nodes a new generation where that differs by more than a second.
func (s *Service) RefreshPaid(ctx context.Context, account models.AccountID, at models.Instant) error {
	return s.st.InTx(ctx, func(tx *store.Tx) error {
		runs, err := tx.AccountRuns(account)
		if err != nil || len(runs) == 0 {
			return err
		}
		locked := map[models.NodeID]bool{}
		for _, r := range runs {
			locked[r.NodeID] = false
		}
		for _, id := range sortedNodes(locked) {
			if _, err := tx.LockNode(id); err != nil {
				return err
			}
			locked[id] = true
		}
		// Behind the locks nothing of these nodes moves any more.
		if runs, err = tx.AccountRuns(account); err != nil {
			return err
		}
		paid, err := s.bill.PaidSeconds(tx, account, at)
		if err != nil {
			return err
		}
		bump := map[models.NodeID]bool{}
		for _, r := range runs {
			seconds, ok := paid[r.ID]
			// A node that came to it since has the right number from its launch.
			if !ok || !locked[r.NodeID] || !early(r.State) && r.State != models.Running {
				continue
			}
			seconds = max(1, seconds) // to a node 0 means no limit
			if d := seconds - r.PaidSeconds; -1 <= d && d <= 1 {
				continue
			}
			if err := tx.SetPaidSeconds(r.ID, seconds); err != nil {
				return err
			}
			bump[r.NodeID] = true
		}
		for _, id := range sortedNodes(bump) {
			if err := tx.BumpNode(id); err != nil {
				return err
			}
		}
		return nil
	})
}

func sortedNodes(m map[models.NodeID]bool) (ids []models.NodeID) {
	for id := range m {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
