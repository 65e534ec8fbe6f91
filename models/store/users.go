package store

import (
	"errors"

	"gorm.io/gorm"

	"berth/models"
)

// ErrEmailTaken says that a user with this e-mail exists. It must never reach a
// person: who is told it learns who has an account here.
var ErrEmailTaken = errors.New("a user with this e-mail exists")

// CreateUser inserts a user whose e-mail is already in lower case. It fails with
// ErrEmailTaken, after which the transaction is of no more use.
func (tx *Tx) CreateUser(u models.User) error {
	err := tx.db.Create(&u).Error
	if errors.Is(err, gorm.ErrDuplicatedKey) {
		return ErrEmailTaken
	}
	return err
}

// User reads one user. It fails with a NotFound Problem.
func (tx *Tx) User(id models.UserID) (u models.User, err error) {
	return u, lookup("user", id, tx.db.First(&u, "id = ?", id).Error)
}

// UserByEmail reads the user with an e-mail in lower case. It fails with a
// NotFound Problem, which must not be shown to the person who asks.
func (tx *Tx) UserByEmail(email string) (u models.User, err error) {
	return u, lookup("user", email, tx.db.First(&u, "email = ?", email).Error)
}

// SetPasswordHash gives a user another password.
func (tx *Tx) SetPasswordHash(id models.UserID, hash string) error {
	return tx.db.Model(&models.User{}).Where("id = ?", id).Update("password_hash", hash).Error
}

// FirstOperator reads the oldest operator: the one made at the first start. It
// fails with a NotFound Problem when there is none yet.
func (tx *Tx) FirstOperator() (u models.User, err error) {
	return u, lookup("operator", "yet", tx.db.Order("id").First(&u, "operator = ?", true).Error)
}
