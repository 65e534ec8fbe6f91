package store

import (
	"fmt"

	"gorm.io/gorm/clause"

	"berth/gpu"
	"berth/models"
)

// PutDevices makes list what a node has now: new cards are added, known ones
// updated (also when they moved from another node), and those the node no longer
// reports are marked absent, since their past leases still name them.
func (tx *Tx) PutDevices(node models.NodeID, list []models.Device) error {
	tx.Changed("fleet")
	present := make([]string, 0, len(list)+1)
	for i := range list {
		list[i].NodeID = node
		if list[i].Slices == nil {
			list[i].Slices = []gpu.Placement{} // gorm writes nil as NULL
		}
		if list[i].Profiles == nil {
			list[i].Profiles = []gpu.Profile{}
		}
		if list[i].Layout == nil {
			list[i].Layout = []gpu.Placement{}
		}
		present = append(present, list[i].UUID)
	}
	if len(list) > 0 {
		if err := tx.db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "uuid"}}, UpdateAll: true}).Create(&list).Error; err != nil {
			return err
		}
	}
	return tx.db.Model(&models.Device{}).Where("node_id = ? AND uuid NOT IN ?", node, append(present, "")).
		Updates(map[string]any{"state": models.DeviceAbsent, "detail": "Its node no longer reports it.", "slices": "[]"}).Error
}

// SetDeviceSlices notes which slices lie on a card.
func (tx *Tx) SetDeviceSlices(d models.Device) error {
	tx.Changed("fleet")
	return tx.db.Model(&models.Device{}).Where("uuid = ?", d.UUID).Select("Slices").Updates(&d).Error
}

// SetDeviceLayout notes how a card is to be divided.
func (tx *Tx) SetDeviceLayout(d models.Device) error {
	tx.Changed("fleet")
	return tx.db.Model(&models.Device{}).Where("uuid = ?", d.UUID).Select("Layout").Updates(&d).Error
}

// SetDeviceSharing notes how a card is shared.
func (tx *Tx) SetDeviceSharing(d models.Device) error {
	tx.Changed("fleet")
	return tx.db.Model(&models.Device{}).Where("uuid = ?", d.UUID).Select("Sharing", "Mixed").Updates(&d).Error
}

// Device reads one card. It fails with a NotFound Problem.
func (tx *Tx) Device(uuid string) (d models.Device, err error) {
	return d, lookup("device", uuid, tx.db.First(&d, "uuid = ?", uuid).Error)
}

// Devices lists every card, by node and index.
func (tx *Tx) Devices() (list []models.Device, err error) {
	return list, tx.db.Order(`node_id, "index", uuid`).Find(&list).Error
}

// DevicesOf lists the cards of a node and those of the given UUIDs, wherever they
// are.
func (tx *Tx) DevicesOf(node models.NodeID, uuids []string) (list []models.Device, err error) {
	return list, tx.db.Where("node_id = ? OR uuid IN ?", node, append(uuids, "")).Find(&list).Error
}

// NodeDevices lists the cards of a node by index.
func (tx *Tx) NodeDevices(node models.NodeID) (list []models.Device, err error) {
	return list, tx.db.Where("node_id = ?", node).Order(`"index", uuid`).Find(&list).Error
}

// DevicesByUUID reads several at once. A card that is not known is an error,
// since a lease names it.
func (tx *Tx) DevicesByUUID(uuids []string) (map[string]models.Device, error) {
	var list []models.Device
	if err := tx.db.Where("uuid IN ?", uuids).Find(&list).Error; err != nil {
		return nil, err
	}
	out := make(map[string]models.Device, len(list))
	for _, d := range list {
		out[d.UUID] = d
	}
	for _, u := range uuids {
		if _, ok := out[u]; !ok {
			return nil, fmt.Errorf("device %s has leases but no row", u)
		}
	}
	return out, nil
}

// AddDeviceEvents notes what became of cards, each after what is noted of it.
func (tx *Tx) AddDeviceEvents(list []models.DeviceEvent) error {
	for _, e := range list {
		if err := tx.db.Model(&models.DeviceEvent{}).Select("COALESCE(MAX(seq), 0) + 1").Where("device_uuid = ?", e.DeviceUUID).Scan(&e.Seq).Error; err != nil {
			return err
		}
		if err := tx.db.Create(&e).Error; err != nil {
			return err
		}
	}
	return nil
}

// DeviceEvents lists the newest events of a card, the newest first.
func (tx *Tx) DeviceEvents(uuid string, limit int) (list []models.DeviceEvent, err error) {
	return list, tx.db.Order("seq DESC").Limit(limit).Find(&list, "device_uuid = ?", uuid).Error
}

// NodeDeviceEvents lists the newest events of the cards of a node, the newest first.
func (tx *Tx) NodeDeviceEvents(node models.NodeID, limit int) (list []models.DeviceEvent, err error) {
	return list, tx.db.Order("at DESC, device_uuid").Limit(limit).Find(&list, "node_id = ?", node).Error
}

// DropDeviceEvents deletes at most so many events from before a moment, and returns
// how many.
func (tx *Tx) DropDeviceEvents(before models.Instant, limit int) (int64, error) {
	res := tx.db.Exec(`DELETE FROM device_events WHERE (device_uuid, seq) IN (SELECT device_uuid, seq FROM device_events WHERE at < ? LIMIT ?)`, before, limit)
	return res.RowsAffected, res.Error
}
