package store

import (
	"errors"

	"gorm.io/gorm"

	"berth/models"
)

// ErrDuplicate says that a row with the same unique value exists. On PostgreSQL
// the transaction is broken then: return it, and begin another.
var ErrDuplicate = errors.New("a row with this value exists")

// duplicate names the unique rule's refusal for callers outside.
func duplicate(err error) error {
	if errors.Is(err, gorm.ErrDuplicatedKey) {
		return ErrDuplicate
	}
	return err
}

// placementLock is the key of PostgreSQL's advisory lock for placements.
const placementLock = 0x6265727468 // "berth"

// LockPlacement lets one transaction at a time decide where something goes. It
// is the first lock of a transaction that takes it.
func (tx *Tx) LockPlacement() error {
	if tx.kind != "postgres" {
		return nil // transactions that write are serial
	}
	return tx.db.Exec("SELECT pg_advisory_xact_lock(?)", placementLock).Error
}

// InsertInstance adds an instance. It fails with ErrDuplicate when the account
// has a live one of the same name, or one made with the same client key.
func (tx *Tx) InsertInstance(in models.Instance) error {
	if in.Command == nil {
		in.Command = []string{} // gorm writes nil as NULL, and no column takes that
	}
	if in.Env == nil {
		in.Env = map[string]string{}
	}
	tx.instanceChanged(in)
	return duplicate(tx.db.Create(&in).Error)
}

// Instance reads one. It fails with a NotFound Problem.
func (tx *Tx) Instance(id models.InstanceID) (in models.Instance, err error) {
	return in, lookup("instance", id, tx.db.First(&in, "id = ?", id).Error)
}

// LockInstance is Instance, and keeps others from changing it until the end.
func (tx *Tx) LockInstance(id models.InstanceID) (in models.Instance, err error) {
	return in, lookup("instance", id, tx.forUpdate().First(&in, "id = ?", id).Error)
}

// InstanceByClientKey finds what an account launched with an idempotency key.
func (tx *Tx) InstanceByClientKey(account models.AccountID, key string) (in models.Instance, found bool, err error) {
	err = tx.db.First(&in, "account_id = ? AND client_key = ?", account, key).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return in, false, nil
	}
	return in, err == nil, err
}

// LiveNames returns the names of an account's instances that are not terminated.
func (tx *Tx) LiveNames(account models.AccountID) (names []string, err error) {
	return names, tx.db.Model(&models.Instance{}).
		Where("account_id = ? AND state <> ?", account, models.Terminated).Pluck("name", &names).Error
}

// SaveInstance writes what changes in an instance's life, if it still is in the
// state and run it was read in. Of two racing callers one gets ErrStale.
func (tx *Tx) SaveInstance(in models.Instance, was models.InstanceState, run int) error {
	tx.instanceChanged(in)
	res := tx.db.Model(&models.Instance{}).Where("id = ? AND state = ? AND run = ?", in.ID, was, run).
		Select("PricePerHour", "Currency", "MilliCPU", "MemoryMiB", "State", "Reason", "Detail", "Why", "Want", "Run",
			"PaidSeconds", "PullDone", "PullTotal", "RequestedAt", "ChangedAt", "RunningAt", "EndedAt").
		Updates(&in)
	if res.Error == nil && res.RowsAffected == 0 {
		return models.ErrStale
	}
	return res.Error
}

// SetPaidSeconds notes how far the present run of an instance may go.
func (tx *Tx) SetPaidSeconds(id models.InstanceID, seconds int64) error {
	return tx.db.Model(&models.Instance{}).Where("id = ?", id).Update("paid_seconds", seconds).Error
}

// SetPull notes how far the image of an instance has come, in bytes.
func (tx *Tx) SetPull(in models.Instance, done, total int64) error {
	tx.Changed("instance:" + string(in.ID))
	return tx.db.Model(&models.Instance{}).Where("id = ?", in.ID).
		Updates(map[string]any{"pull_done": done, "pull_total": total}).Error
}

// instanceChanged wakes the pages that show an instance.
func (tx *Tx) instanceChanged(in models.Instance) {
	tx.Changed("instance:" + string(in.ID))
	tx.Changed("instances:" + string(in.AccountID))
}

// AddInstanceEvent appends a line to an instance's history and numbers it. The
// caller holds the instance's lock.
func (tx *Tx) AddInstanceEvent(ev models.InstanceEvent) error {
	err := tx.db.Model(&models.InstanceEvent{}).Select("COALESCE(MAX(seq), 0) + 1").
		Where("instance_id = ?", ev.InstanceID).Row().Scan(&ev.Seq)
	if err != nil {
		return err
	}
	return tx.db.Create(&ev).Error
}

// InstanceEvents returns the history after a sequence number, oldest first.
func (tx *Tx) InstanceEvents(id models.InstanceID, after int64, limit int) (list []models.InstanceEvent, err error) {
	return list, tx.db.Where("instance_id = ? AND seq > ?", id, after).Order("seq").Limit(limit).Find(&list).Error
}

// StoppedOnOpenNodes lists the instances that are stopped for a reason, on nodes
// that are online and open to new starts.
func (tx *Tx) StoppedOnOpenNodes(reason string) (list []models.Instance, err error) {
	open := tx.db.Model(&models.Node{}).Select("id").Where("state = ? AND cordoned = ? AND maintenance_from = 0", models.NodeOnline, false)
	return list, tx.db.Where("state = ? AND reason = ? AND node_id IN (?)", models.Stopped, reason, open).Order("id").Find(&list).Error
}

// LatestSKUs lists what the latest n instances were of, newest first.
func (tx *Tx) LatestSKUs(n int) (ids []string, err error) {
	return ids, tx.db.Model(&models.Instance{}).Order("id DESC").Limit(n).Pluck("sku", &ids).Error
}

// LastEventAt is when such an event last happened to an instance; zero: never.
func (tx *Tx) LastEventAt(id models.InstanceID, kind models.InstanceEventKind) (at models.Instant, err error) {
	var e models.InstanceEvent
	err = tx.db.Where("instance_id = ? AND kind = ?", id, string(kind)).Order("seq DESC").Limit(1).Find(&e).Error
	return e.At, err
}

// AccountInstances lists an account's instances in the given states, newest
// first, after the one named by the cursor (empty: from the start), and the
// cursor of the next page (empty: this is the last).
func (tx *Tx) AccountInstances(account models.AccountID, states []models.InstanceState, cursor string, limit int) (list []models.Instance, next string, err error) {
	q := tx.db.Where("account_id = ? AND state IN ?", account, states)
	if cursor != "" {
		after, err := tx.Instance(models.InstanceID(cursor))
		if err != nil || after.AccountID != account {
			return nil, "", badCursor(cursor)
		}
		q = q.Where("id < ?", cursor)
	}
	if err := q.Order("id DESC").Limit(limit + 1).Find(&list).Error; err != nil {
		return nil, "", err
	}
	if len(list) > limit {
		list = list[:limit]
		next = string(list[limit-1].ID)
	}
	return list, next, nil
}

// NodeInstances lists the instances of a node that are not terminated, oldest first.
func (tx *Tx) NodeInstances(node models.NodeID) (list []models.Instance, err error) {
	return list, tx.db.Where("node_id = ? AND state <> ?", node, models.Terminated).Order("id").Find(&list).Error
}

// InstancesByID reads several at once, in no order; unknown ones are left out.
func (tx *Tx) InstancesByID(ids []models.InstanceID) (list []models.Instance, err error) {
	return list, tx.db.Where("id IN ?", ids).Find(&list).Error
}

// ActiveRun is what a node's tick needs to know of an instance.
type ActiveRun struct {
	ID        models.InstanceID
	AccountID models.AccountID
	NodeID    models.NodeID
	Run       int
	State     models.InstanceState
	PaidSeconds,
	PullDone, PullTotal int64
}

// ActiveRuns lists the instances of a node that hold slices.
func (tx *Tx) ActiveRuns(node models.NodeID) (list []ActiveRun, err error) {
	return list, tx.db.Model(&models.Instance{}).Where("node_id = ? AND state IN ?", node, activeStates()).Find(&list).Error
}

// RunningInstances lists all that run, with what their metrics are labelled by.
func (tx *Tx) RunningInstances() (list []models.Instance, err error) {
	return list, tx.db.Select("id", "account_id", "node_id", "name", "sku", "run").Where("state = ?", models.Running).Order("id").Find(&list).Error
}

// AccountRuns lists the instances of an account that hold slices, in order of id.
func (tx *Tx) AccountRuns(account models.AccountID) (list []ActiveRun, err error) {
	return list, tx.db.Model(&models.Instance{}).Where("account_id = ? AND state IN ?", account, activeStates()).
		Order("id").Find(&list).Error
}

// ActiveAccounts lists the accounts that have an instance holding slices.
func (tx *Tx) ActiveAccounts() (ids []models.AccountID, err error) {
	return ids, tx.db.Model(&models.Instance{}).Distinct("account_id").Where("state IN ?", activeStates()).
		Order("account_id").Pluck("account_id", &ids).Error
}

func activeStates() (out []models.InstanceState) {
	for _, s := range models.InstanceStates {
		if s.Active() {
			out = append(out, s)
		}
	}
	return out
}

// UnmeteredInstances lists running instances whose run has no usage span.
func (tx *Tx) UnmeteredInstances() (list []models.Instance, err error) {
	spans := tx.db.Model(&models.UsageSpan{}).Select("1").Where("usage_spans.instance_id = instances.id AND usage_spans.run = instances.run")
	return list, tx.db.Where("state = ? AND NOT EXISTS (?)", models.Running, spans).Order("id").Find(&list).Error
}
