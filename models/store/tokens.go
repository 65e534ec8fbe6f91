package store

import (
	"berth/models"
)

// CreateToken inserts an API token, of which only the hash is known here.
func (tx *Tx) CreateToken(t models.Token) error { return tx.db.Create(&t).Error }

// TokenIdentity reads the token with this hash and who it stands for. It fails
// with a NotFound Problem for a token that is revoked or never was.
func (tx *Tx) TokenIdentity(hash string) (t models.Token, who Identity, err error) {
	if err := tx.db.First(&t, "hash = ?", hash).Error; err != nil {
		return t, who, lookup("token", "like this", err)
	}
	who, err = tx.identity(t.UserID, t.AccountID)
	return t, who, err
}

// TokenIsStale tells whether TouchToken is worth a write.
func TokenIsStale(t models.Token, at models.Instant) bool { return at.Sub(t.LastUsedAt) >= touchAfter }

// TouchToken notes that a token was used.
func (tx *Tx) TouchToken(id models.TokenID, at models.Instant) error {
	return tx.db.Model(&models.Token{}).Where("id = ?", id).Update("last_used_at", at).Error
}

// Tokens lists the API tokens that a user made for an account, newest first.
func (tx *Tx) Tokens(account models.AccountID, user models.UserID) (list []models.Token, err error) {
	return list, tx.db.Order("id DESC").Find(&list, "account_id = ? AND user_id = ?", account, user).Error
}

// RevokeToken ends an API token that a user made for an account, and wakes
// SignOuts. It fails with a NotFound Problem when it is not theirs.
func (tx *Tx) RevokeToken(account models.AccountID, user models.UserID, id models.TokenID) error {
	res := tx.db.Delete(&models.Token{}, "id = ? AND account_id = ? AND user_id = ?", id, account, user)
	if res.Error == nil && res.RowsAffected == 0 {
		return models.Missing("token", id)
	}
	tx.Changed(SignOuts)
	return res.Error
}

// GoodTokens returns which of these tokens TokenIdentity would find.
func (tx *Tx) GoodTokens(ids []models.TokenID) (good []models.TokenID, err error) {
	return good, tx.db.Model(&models.Token{}).
		Joins("JOIN members ON members.user_id = tokens.user_id AND members.account_id = tokens.account_id").
		Where("tokens.id IN ?", ids).Pluck("tokens.id", &good).Error
}
