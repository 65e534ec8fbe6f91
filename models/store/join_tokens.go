package store

import (
	"berth/models"
)

// InsertJoinToken keeps a token's hash.
func (tx *Tx) InsertJoinToken(t models.JoinToken) error { return tx.db.Create(&t).Error }

// LockJoinToken reads a token by its hash, so that it is used once. It fails
// with a NotFound Problem.
func (tx *Tx) LockJoinToken(hash string) (t models.JoinToken, err error) {
	return t, lookup("join token", "like this", tx.forUpdate().First(&t, "hash = ?", hash).Error)
}

// UseJoinToken marks a token used by a node.
func (tx *Tx) UseJoinToken(hash string, node models.NodeID, at models.Instant) error {
	return tx.db.Model(&models.JoinToken{}).Where("hash = ?", hash).
		Updates(map[string]any{"used_at": at, "node_id": node}).Error
}
