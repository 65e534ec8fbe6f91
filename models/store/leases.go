package store

import (
	"berth/models"
)

// TakeLeases holds slices. Each of their units becomes a row whose key can exist
// once: it fails with ErrDuplicate when any part of a slice is held already.
func (tx *Tx) TakeLeases(leases []models.Lease) error {
	var units []models.LeaseUnit
	for _, l := range leases {
		for u := l.Start; u < l.Start+l.Size; u++ {
			units = append(units, models.LeaseUnit{DeviceUUID: l.DeviceUUID, Unit: u, LeaseID: l.ID})
		}
	}
	if len(units) == 0 {
		return nil
	}
	if err := tx.db.Create(&units).Error; err != nil {
		return duplicate(err)
	}
	tx.Changed("fleet")
	return tx.db.Create(&leases).Error
}

// ReleaseLeases gives back what an instance holds and returns it. None is fine.
func (tx *Tx) ReleaseLeases(id models.InstanceID, at models.Instant) (released []models.Lease, err error) {
	if err := tx.db.Where("instance_id = ? AND released_at = 0", id).Find(&released).Error; err != nil || len(released) == 0 {
		return nil, err
	}
	ids := make([]string, len(released))
	for i, l := range released {
		ids[i] = l.ID
	}
	if err := tx.db.Where("lease_id IN ?", ids).Delete(&models.LeaseUnit{}).Error; err != nil {
		return nil, err
	}
	tx.Changed("fleet")
	return released, tx.db.Model(&models.Lease{}).Where("id IN ?", ids).Update("released_at", at).Error
}

// HeldLeases lists every lease held now.
func (tx *Tx) HeldLeases() (list []models.Lease, err error) {
	return list, tx.db.Where("released_at = 0").Order("id").Find(&list).Error
}

// NodeLeases lists the leases held on a node.
func (tx *Tx) NodeLeases(node models.NodeID) (list []models.Lease, err error) {
	return list, tx.db.Where("node_id = ? AND released_at = 0", node).Order("id").Find(&list).Error
}

// InstanceLeases lists the leases that these instances hold now.
func (tx *Tx) InstanceLeases(ids []models.InstanceID) (list []models.Lease, err error) {
	return list, tx.db.Where("instance_id IN ? AND released_at = 0", ids).Order("id").Find(&list).Error
}

// DeviceLeases lists the leases held on these devices.
func (tx *Tx) DeviceLeases(uuids []string) (list []models.Lease, err error) {
	return list, tx.db.Where("device_uuid IN ? AND released_at = 0", uuids).Order("id").Find(&list).Error
}

// PastLeases lists the newest leases of a device, held and released, the newest
// first.
func (tx *Tx) PastLeases(uuid string, limit int) (list []models.Lease, err error) {
	return list, tx.db.Where("device_uuid = ?", uuid).Order("id DESC").Limit(limit).Find(&list).Error
}
