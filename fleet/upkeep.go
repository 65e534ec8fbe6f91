package fleet

import (
	"context"
	"fmt"
	"slices"

	"berth/models"
	"berth/models/store"
)

// Cordon closes a node to new starts, or opens it again. What runs there goes on
// and can be stopped; what is stopped there waits. It fails with NotFound.
func (s *Service) Cordon(ctx context.Context, id models.NodeID, cordoned bool) error {
	return s.st.InTx(ctx, func(tx *store.Tx) error {
		if _, err := lockPresent(tx, id); err != nil {
			return err
		}
		return tx.SetCordoned(id, cordoned)
	})
}

// Retire gives up a node that never comes back. Its instances are terminated,
// since their disks are gone with it: they are charged to their last confirmed
// second, and their slices are free. Its key is worth nothing any more; should the
// machine come back, it joins anew, and what still runs there is ended then. It
// fails with Conflict while the node is connected, and with NotFound. ended is how
// many instances there were.
func (s *Service) Retire(ctx context.Context, id models.NodeID, at models.Instant) (ended int, err error) {
	err = s.st.InTx(ctx, func(tx *store.Tx) error {
		ended = 0
		n, err := lockPresent(tx, id)
		if err != nil {
			return err
		}
		if n.State == models.NodeOnline {
			return &models.Problem{Code: models.Conflict, What: n.Name + " is connected, so it cannot be retired.",
				Next: "Cordon it, wait until its instances have ended, stop its agent, then retire it."}
		}
		list, err := tx.NodeInstances(id)
		if err != nil {
			return err
		}
		for _, in := range list {
			if in, err = tx.LockInstance(in.ID); err != nil {
				return err
			}
			if !in.State.Can(models.NodeRetirement) {
				continue
			}
			h := happening{on: models.NodeRetirement, reason: "node_retired", detail: fmt.Sprintf(
				"The operator has retired its node %s, which is not coming back, and its disk with it. What is charged ends with its last confirmed second.", n.Name)}
			if err := s.move(tx, &in, h, at); err != nil {
				return err
			}
			ended++
		}
		names, err := tx.NodeNames()
		if err != nil {
			return err
		}
		name := n.Name + " (retired)"
		if slices.Contains(names, name) {
			name = n.Name + " (retired, " + string(n.ID) + ")"
		}
		return tx.RetireNode(n, name)
	})
	if err == nil {
		s.log.Warn("node was retired", "node", id, "instances", ended)
	}
	return ended, err
}

// lockPresent is LockNode for a node that is not retired.
func lockPresent(tx *store.Tx, id models.NodeID) (models.Node, error) {
	n, err := tx.LockNode(id)
	if err == nil && n.State == models.NodeRetired {
		return n, models.Missing("node", id)
	}
	return n, err
}
