package server

import (
	"context"
	"encoding/base64"
	"errors"

	"berth/models"
	"berth/models/store"
)

// Bootstrapped is what the first start made. All is shown or written once: only
// hashes are kept.
type Bootstrapped struct {
	// Email is the operator's; Password is empty unless it was made now.
	Email, Password string
	// Token is the API token for the operator's scripts: the one given if it still
	// is good, else a new one.
	Token string
}

// Bootstrap makes sure that there is an operator who can sign in, and that token,
// the content of the operator's token file (empty if there is none), is good.
// Calling it again changes nothing, unless the operator shall have a new password,
// for one who has lost it: it ends all their sessions.
func (s *Server) Bootstrap(ctx context.Context, token string, newPassword bool) (b Bootstrapped, err error) {
	at := s.now()
	// The hash is made before the transaction, which holds the database; it is
	// thrown away at every start but the first.
	password := base64.RawURLEncoding.EncodeToString(randomBytes(15))
	hash := ""
	if exists, err := s.hasOperator(ctx); err != nil {
		return b, err
	} else if !exists || newPassword {
		if hash, err = s.hasher.hash(ctx, password); err != nil {
			return b, err
		}
	}
	err = s.store.InTx(ctx, func(tx *store.Tx) error {
		b = Bootstrapped{Token: token}
		operator, err := tx.FirstOperator()
		if models.HasCode(err, models.NotFound) && hash != "" {
			operator = models.User{Email: s.cfg.OperatorEmail, Name: "Operator", PasswordHash: hash, Operator: true}
			_, err = s.createUser(tx, &operator, at)
			b.Password = password
		}
		if err == nil && newPassword && b.Password == "" {
			b.Password = password
			if err := tx.SetPasswordHash(operator.ID, hash); err != nil {
				return err
			}
			err = tx.RevokeSessions(operator.ID, "")
		}
		if errors.Is(err, store.ErrEmailTaken) {
			return &models.Problem{Code: models.Conflict, What: "A user who is no operator has the operator's e-mail, " + s.cfg.OperatorEmail + ".",
				Next: "Start with another operator's e-mail."}
		}
		if err != nil {
			return err
		}
		b.Email = operator.Email
		t, _, err := tx.TokenIdentity(hashSecret(token))
		if err == nil && t.UserID == operator.ID {
			return nil
		}
		if err != nil && !models.HasCode(err, models.NotFound) {
			return err
		}
		home, err := tx.HomeAccount(operator.ID)
		if err != nil {
			return err
		}
		b.Token, _, err = createToken(tx, operator.ID, home.ID, "operator.token", at)
		return err
	})
	return b, err
}

func (s *Server) hasOperator(ctx context.Context) (bool, error) {
	err := s.store.View(ctx, func(tx *store.Tx) error {
		_, err := tx.FirstOperator()
		return err
	})
	if models.HasCode(err, models.NotFound) {
		return false, nil
	}
	return err == nil, err
}
