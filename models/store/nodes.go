package store

import (
	"gorm.io/gorm"

	"berth/models"
)

// InsertNode adds a node. It fails with ErrDuplicate when its name or key is taken.
func (tx *Tx) InsertNode(n models.Node) error {
	tx.Changed("fleet")
	return duplicate(tx.db.Create(&n).Error)
}

// Node reads one. It fails with a NotFound Problem.
func (tx *Tx) Node(id models.NodeID) (n models.Node, err error) {
	return n, lookup("node", id, tx.db.First(&n, "id = ?", id).Error)
}

// LockNode is Node, and keeps others from changing the node, or what it should
// do, until the end. It is locked before any instance on it.
func (tx *Tx) LockNode(id models.NodeID) (n models.Node, err error) {
	return n, lookup("node", id, tx.forUpdate().First(&n, "id = ?", id).Error)
}

// Nodes lists the nodes that are not retired, by name.
func (tx *Tx) Nodes() (list []models.Node, err error) {
	return list, tx.db.Order("name").Find(&list, "state <> ?", models.NodeRetired).Error
}

// NodesByID reads several, retired ones too.
func (tx *Tx) NodesByID(ids []models.NodeID) (map[models.NodeID]models.Node, error) {
	var list []models.Node
	if err := tx.db.Find(&list, "id IN ?", ids).Error; err != nil {
		return nil, err
	}
	out := make(map[models.NodeID]models.Node, len(list))
	for _, n := range list {
		out[n.ID] = n
	}
	return out, nil
}

// SetCordoned closes a node to new rentals, or opens it again.
func (tx *Tx) SetCordoned(id models.NodeID, cordoned bool) error {
	tx.Changed("fleet")
	return tx.db.Model(&models.Node{}).Where("id = ?", id).Update("cordoned", cordoned).Error
}

// RetireNode ends a locked node under another name: nobody can speak for it any
// more, its own name is free, and its cards may be another's.
func (tx *Tx) RetireNode(n models.Node, name string) error {
	tx.Changed("fleet")
	if err := tx.PutDevices(n.ID, nil); err != nil {
		return err
	}
	return tx.db.Model(&models.Node{}).Where("id = ?", n.ID).Updates(map[string]any{
		"state": models.NodeRetired, "name": name, "public_key": []byte("retired " + string(n.ID))}).Error
}

// NodeNames returns the names in use.
func (tx *Tx) NodeNames() (names []string, err error) {
	return names, tx.db.Model(&models.Node{}).Pluck("name", &names).Error
}

// SaveNodeState writes what a node last said of itself.
func (tx *Tx) SaveNodeState(n models.Node) error {
	tx.Changed("fleet")
	return tx.db.Model(&models.Node{}).Where("id = ?", n.ID).
		Select("State", "EventSeq", "BootID", "AgentVersion", "Host", "ClockSkewMS", "SeenAt").Updates(&n).Error
}

// SetMaintenance writes when a node is worked on.
func (tx *Tx) SetMaintenance(n models.Node) error {
	tx.Changed("fleet")
	return tx.db.Model(&models.Node{}).Where("id = ?", n.ID).Select("MaintenanceFrom", "MaintenanceUntil").Updates(&n).Error
}

// MaintainedNodes lists the nodes whose maintenance has begun at a moment.
func (tx *Tx) MaintainedNodes(at models.Instant) (list []models.Node, err error) {
	return list, tx.db.Where("maintenance_from > 0 AND maintenance_from <= ? AND state <> ?", at, models.NodeRetired).Order("id").Find(&list).Error
}

// SetNodeOffline notes that nobody hears a node any more. SeenAt stays.
func (tx *Tx) SetNodeOffline(id models.NodeID) error {
	tx.Changed("fleet")
	return tx.db.Model(&models.Node{}).Where("id = ?", id).Update("state", models.NodeOffline).Error
}

// TouchNode notes that a locked node was heard, and so is online.
func (tx *Tx) TouchNode(n models.Node, at models.Instant) error {
	if n.State != models.NodeOnline {
		tx.Changed("fleet")
	}
	return tx.db.Model(&models.Node{}).Where("id = ?", n.ID).Updates(map[string]any{"seen_at": at, "state": models.NodeOnline}).Error
}

// SetEventSeq notes the last journalled event taken in, in the transaction that
// holds the event's effect.
func (tx *Tx) SetEventSeq(id models.NodeID, seq int64, at models.Instant) error {
	return tx.db.Model(&models.Node{}).Where("id = ?", id).Updates(map[string]any{"event_seq": seq, "seen_at": at}).Error
}

// BumpNode gives a node's desired state a new generation and wakes who sends it.
func (tx *Tx) BumpNode(id models.NodeID) error {
	tx.Changed("node:" + string(id))
	return tx.db.Model(&models.Node{}).Where("id = ?", id).Update("generation", gorm.Expr("generation + 1")).Error
}

// RaiseGeneration has a node's desired state count on from seen, which the node
// has acted on, and wakes who sends it.
func (tx *Tx) RaiseGeneration(id models.NodeID, seen int64) error {
	tx.Changed("node:" + string(id))
	return tx.db.Model(&models.Node{}).Where("id = ? AND generation <= ?", id, seen).Update("generation", seen+1).Error
}

// SilentNodes lists the nodes not heard since before that still have instances
// which hold slices and are not lost yet, or that still pass for online.
func (tx *Tx) SilentNodes(before models.Instant) (list []models.Node, err error) {
	var waiting []models.InstanceState
	for _, s := range activeStates() {
		if s.Can(models.NodeLost) {
			waiting = append(waiting, s)
		}
	}
	busy := tx.db.Model(&models.Instance{}).Select("node_id").Where("state IN ?", waiting)
	return list, tx.db.Where("seen_at <= ?", before).Where(tx.db.Where("id IN (?)", busy).Or("state = ?", models.NodeOnline)).
		Order("id").Find(&list).Error
}

// DiskPerNode sums the disks, in GiB, of the instances on each node that are
// not terminated.
func (tx *Tx) DiskPerNode() (map[models.NodeID]int, error) {
	var rows []struct {
		NodeID models.NodeID
		Total  int
	}
	err := tx.db.Model(&models.Instance{}).Select("node_id", "CAST(SUM(disk_gib) AS bigint) AS total").
		Where("state <> ?", models.Terminated).Group("node_id").Find(&rows).Error
	out := make(map[models.NodeID]int, len(rows))
	for _, r := range rows {
		out[r.NodeID] = r.Total
	}
	return out, err
}
