package server

import (
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"berth/models"
	"berth/models/store"
	"berth/web"
)

// tokensMax is how many tokens one user may hold in one account.
const tokensMax = 100

// tokenNameMax is the longest name of a token, in characters.
const tokenNameMax = 64

// account handles GET /account.
func (s *Server) account(c echo.Context) error {
	return s.showAccount(c, http.StatusOK, accountForms{})
}

// accountForms is what was typed on the account's page and what came of it.
type accountForms struct {
	tokenName         web.Field
	newToken          string
	current, password web.Field // never with a value
}

func (s *Server) showAccount(c echo.Context, status int, f accountForms) error {
	id, at := identityOf(c), models.At(s.now())
	var sessions []models.Session
	var tokens []models.Token
	err := s.store.View(c.Request().Context(), func(tx *store.Tx) (err error) {
		if sessions, err = tx.Sessions(id.User.ID, at); err != nil {
			return err
		}
		tokens, err = tx.Tokens(id.Account.ID, id.User.ID)
		return err
	})
	if err != nil {
		return err
	}
	v := accountView(id, sessions, tokens, at)
	v.TokenName, v.NewToken, v.CurrentPassword, v.NewPassword = f.tokenName, f.newToken, f.current, f.password
	if v.Layout, err = s.layout(c, "Account", web.NavAccount); err != nil {
		return err
	}
	return s.render(c, status, web.AccountPage(v))
}

// revokeSession handles POST /account/sessions/{id}/revoke.
func (s *Server) revokeSession(c echo.Context) error {
	id, hash := identityOf(c), c.Param("id")
	err := s.store.InTx(c.Request().Context(), func(tx *store.Tx) error { return tx.RevokeSession(id.User.ID, hash) })
	if err != nil {
		return err
	}
	if hash == id.Session {
		s.setCookie(c, s.cookieName(c), "", 0)
		return back(c, "/login")
	}
	if err := s.done(c, "Signed out there."); err != nil {
		return err
	}
	return back(c, "/account")
}

// revokeSessions handles POST /account/sessions/revoke-all: here too.
func (s *Server) revokeSessions(c echo.Context) error {
	id := identityOf(c)
	err := s.store.InTx(c.Request().Context(), func(tx *store.Tx) error { return tx.RevokeSessions(id.User.ID, "") })
	if err != nil {
		return err
	}
	s.setCookie(c, s.cookieName(c), "", 0)
	return back(c, "/login")
}

// changePassword handles POST /account/password. It needs the present one, and
// signs the user out everywhere else. Tokens go on: they are listed beside it.
func (s *Server) changePassword(c echo.Context) error {
	ctx, id, at := c.Request().Context(), identityOf(c), s.now()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	if wrong := passwordWrong(f.raw("password")); wrong != "" {
		return s.showAccount(c, http.StatusUnprocessableEntity, accountForms{password: web.Field{Error: wrong}})
	}
	if wait, ok := s.limits.pair.allow(networkOf(c.RealIP())+" "+hashSecret(id.User.Email), at); !ok {
		return tooMany(c, wait)
	}
	right, err := s.hasher.matches(ctx, clip(f.raw("current"), passwordMax), id.User.PasswordHash)
	if err != nil {
		return err
	}
	if !right {
		return s.showAccount(c, http.StatusUnprocessableEntity, accountForms{current: web.Field{Error: "This is not your present password."}})
	}
	hash, err := s.hasher.hash(ctx, f.raw("password"))
	if err != nil {
		return err
	}
	err = s.store.InTx(ctx, func(tx *store.Tx) error {
		if err := tx.SetPasswordHash(id.User.ID, hash); err != nil {
			return err
		}
		return tx.RevokeSessions(id.User.ID, id.Session)
	})
	if err != nil {
		return err
	}
	if err := s.done(c, "Your password is changed. You are signed out everywhere else."); err != nil {
		return err
	}
	return back(c, "/account")
}

// newToken handles POST /account/tokens and shows the token, this once.
func (s *Server) newToken(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	name, id := f.text("name"), identityOf(c)
	if wrong := tokenNameWrong(name); wrong != "" {
		return s.showAccount(c, http.StatusUnprocessableEntity, accountForms{tokenName: web.Field{Value: clip(name, 4*tokenNameMax), Error: wrong}})
	}
	var secret string
	err = s.store.InTx(c.Request().Context(), func(tx *store.Tx) (err error) {
		secret, _, err = createToken(tx, id.User.ID, id.Account.ID, name, s.now())
		return err
	})
	if models.HasCode(err, models.Conflict) {
		return s.showAccount(c, http.StatusConflict, accountForms{tokenName: web.Field{Value: name, Error: problemOf(err).What + " " + problemOf(err).Next}})
	}
	if err != nil {
		return err
	}
	return s.showAccount(c, http.StatusCreated, accountForms{newToken: secret})
}

// tokenNameWrong says what is wrong with a token's name; empty for nothing.
func tokenNameWrong(name string) string {
	switch {
	case name == "":
		return "A token needs a name, so that you know it when you revoke it."
	case utf8.RuneCountInString(name) > tokenNameMax || strings.ContainsFunc(name, isControl):
		return "Use at most 64 characters, on one line."
	}
	return ""
}

// createToken makes an API token of a user for an account and returns its
// secret, of which only the hash is kept. It fails with a Conflict Problem when
// there are too many.
func createToken(tx *store.Tx, user models.UserID, account models.AccountID, name string, at time.Time) (secret string, t models.Token, err error) {
	have, err := tx.Tokens(account, user)
	if err != nil {
		return "", t, err
	}
	if len(have) >= tokensMax {
		return "", t, &models.Problem{Code: models.Conflict, What: "You have 100 tokens, which is the most.", Next: "Revoke one that you do not use."}
	}
	secret = tokenPrefix + newSecret()
	t = models.Token{ID: models.TokenID(store.NewID("tok", at)), UserID: user, AccountID: account, Name: name, Hash: hashSecret(secret), CreatedAt: models.At(at)}
	return secret, t, tx.CreateToken(t)
}

// revokeToken handles POST /account/tokens/{id}/revoke.
func (s *Server) revokeToken(c echo.Context) error {
	id := identityOf(c)
	err := s.store.InTx(c.Request().Context(), func(tx *store.Tx) error {
		return tx.RevokeToken(id.Account.ID, id.User.ID, models.TokenID(c.Param("id")))
	})
	if err != nil {
		return err
	}
	if err := s.done(c, "The token is revoked. What used it gets no further answer."); err != nil {
		return err
	}
	return back(c, "/account")
}
