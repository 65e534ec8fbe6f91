package store

import (
	"time"

	"berth/models"
)

// Identity is who acts, for which account, and as what.
type Identity struct {
	User    models.User
	Account models.Account
	Role    models.Role
}

// touchAfter is how stale a "last seen" may be: writing it at every request
// would make every page a write.
const touchAfter = time.Minute

// CreateSession inserts a session.
func (tx *Tx) CreateSession(s models.Session) error { return tx.db.Create(&s).Error }

// SessionIdentity reads the session with this hash and who it stands for. It
// fails with a NotFound Problem for a session that is revoked or expired at the
// given moment, and when the user has left the account.
func (tx *Tx) SessionIdentity(hash string, at models.Instant) (s models.Session, who Identity, err error) {
	if err := tx.db.First(&s, "id_hash = ? AND expires_at > ?", hash, at).Error; err != nil {
		return s, who, lookup("session", "like this", err)
	}
	who, err = tx.identity(s.UserID, s.AccountID)
	return s, who, err
}

func (tx *Tx) identity(user models.UserID, account models.AccountID) (who Identity, err error) {
	if who.User, err = tx.User(user); err != nil {
		return who, err
	}
	if who.Account, err = tx.Account(account); err != nil {
		return who, err
	}
	m, err := tx.Member(account, user)
	who.Role = m.Role
	return who, err
}

// SessionIsStale tells whether TouchSession is worth a write.
func SessionIsStale(s models.Session, at models.Instant) bool { return at.Sub(s.SeenAt) >= touchAfter }

// TouchSession notes that a session was seen, and until when it holds now.
func (tx *Tx) TouchSession(hash string, at, expires models.Instant) error {
	return tx.db.Model(&models.Session{}).Where("id_hash = ?", hash).
		Updates(map[string]any{"seen_at": at, "expires_at": expires}).Error
}

// Sessions lists where a user is signed in, the last seen first.
func (tx *Tx) Sessions(user models.UserID, at models.Instant) (list []models.Session, err error) {
	return list, tx.db.Order("seen_at DESC, id_hash").Find(&list, "user_id = ? AND expires_at > ?", user, at).Error
}

// SignOuts is the topic that wakes when a session or a token was revoked, so that
// what was opened with it ends too.
const SignOuts = "sign-outs"

// GoodSessions returns which of the sessions with these hashes SessionIdentity
// would find.
func (tx *Tx) GoodSessions(hashes []string, at models.Instant) (good []string, err error) {
	return good, tx.db.Model(&models.Session{}).
		Joins("JOIN members ON members.user_id = sessions.user_id AND members.account_id = sessions.account_id").
		Where("sessions.id_hash IN ? AND sessions.expires_at > ?", hashes, at).Pluck("sessions.id_hash", &good).Error
}

// RevokeSession ends one session of a user and wakes SignOuts. It fails with a NotFound Problem when it
// is not theirs.
func (tx *Tx) RevokeSession(user models.UserID, hash string) error {
	res := tx.db.Delete(&models.Session{}, "id_hash = ? AND user_id = ?", hash, user)
	if res.Error == nil && res.RowsAffected == 0 {
		return models.Missing("session", hash)
	}
	tx.Changed(SignOuts)
	return res.Error
}

// RevokeSessions ends all sessions of a user but the one named (empty: all).
func (tx *Tx) RevokeSessions(user models.UserID, except string) error {
	tx.Changed(SignOuts)
	return tx.db.Delete(&models.Session{}, "user_id = ? AND id_hash <> ?", user, except).Error
}

// DropExpiredSessions deletes the sessions that have ended by themselves.
func (tx *Tx) DropExpiredSessions(at models.Instant) error {
	return tx.db.Delete(&models.Session{}, "expires_at <= ?", at).Error
}
