package server

import (
	"context"
	"errors"
	"net/http"
	"net/mail"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"berth/models"
	"berth/models/store"
	"berth/web"
)

// wrongPair is the one answer to an unknown e-mail, to a wrong password, and to
// a sign-up for an e-mail that has an account: they must not be told apart.
var wrongPair = &web.Problem{What: "This e-mail and password do not belong together.", Next: "Check both. If you are new here, create an account."}

// signupPage handles GET /signup.
func (s *Server) signupPage(c echo.Context) error {
	if identityOf(c).known() {
		return back(c, localPath(c.QueryParam("next"), "/"))
	}
	return s.showSignup(c, http.StatusOK, web.SignupView{Next: localPath(c.QueryParam("next"), "")})
}

func (s *Server) showSignup(c echo.Context, status int, v web.SignupView) (err error) {
	if v.Layout, err = s.layout(c, "Create an account", ""); err != nil {
		return err
	}
	if v.From, err = s.cheapest(c.Request().Context()); err != nil {
		return err
	}
	return s.render(c, status, web.SignupPage(v))
}

// signup handles POST /signup. An e-mail that has an account is treated as an
// attempt to sign in to it, with the same limits, words, status and time: with
// the right password it succeeds, and else it says what a wrong sign-in says.
// Without a letter to the address, nothing more can be hidden from somebody who
// tries: a free address is then theirs. So trying is limited, and never silent.
func (s *Server) signup(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	u, bad := newUser(f.text("name"), f.text("email"), f.raw("password"))
	view := web.SignupView{
		Name:  web.Field{Value: clip(f.text("name"), 4*nameMax), Error: bad["name"]},
		Email: web.Field{Value: clip(f.text("email"), emailMax), Error: bad["email"]}, Password: web.Field{Error: bad["password"]},
		Next: localPath(f.text("next"), ""),
	}
	if len(bad) > 0 {
		return s.showSignup(c, http.StatusUnprocessableEntity, view)
	}
	at := s.now()
	if wait, ok := s.limits.signup.allow(networkOf(c.RealIP()), at); !ok {
		return tooMany(c, wait)
	}
	known, err := s.emailKnown(c.Request().Context(), u.Email)
	if err != nil {
		return err
	}
	if !known {
		u.PasswordHash, err = s.hasher.hash(c.Request().Context(), f.raw("password"))
		if err != nil {
			return err
		}
		err = s.signUp(c, u, at)
		if err == nil {
			return back(c, localPath(view.Next, "/"))
		}
		if !errors.Is(err, store.ErrEmailTaken) { // by a racing sign-up: go on as if it had been first
			return err
		}
	}
	return s.signIn(c, u.Email, f.raw("password"), view.Next)
}

func (s *Server) emailKnown(ctx context.Context, email string) (bool, error) {
	err := s.store.View(ctx, func(tx *store.Tx) error {
		_, err := tx.UserByEmail(email)
		return err
	})
	if models.HasCode(err, models.NotFound) {
		return false, nil
	}
	return err == nil, err
}

// signUp makes the user with an account and wallet, and signs them in: all of
// it, or nothing.
func (s *Server) signUp(c echo.Context, u models.User, at time.Time) error {
	var secret string
	err := s.store.InTx(c.Request().Context(), func(tx *store.Tx) error {
		account, err := s.createUser(tx, &u, at)
		if err != nil {
			return err
		}
		secret, err = s.newSession(c, tx, u, account, at)
		return err
	})
	if err == nil {
		s.setCookie(c, s.cookieName(c), secret, sessionLife)
	}
	return err
}

// createUser inserts a user, who gets an id, with an account of their own, which
// they own, and its wallet.
func (s *Server) createUser(tx *store.Tx, u *models.User, at time.Time) (models.AccountID, error) {
	u.ID, u.CreatedAt = models.UserID(store.NewID("usr", at)), models.At(at)
	if err := tx.CreateUser(*u); err != nil {
		return "", err
	}
	account := models.Account{ID: models.AccountID(store.NewID("acc", at)), Name: u.Name, Currency: s.currency.Code, TimeZone: "UTC", CreatedAt: models.At(at)}
	if err := tx.CreateAccount(account, u.ID); err != nil {
		return "", err
	}
	return account.ID, s.billing.OpenWallet(tx, account)
}

// loginPage handles GET /login.
func (s *Server) loginPage(c echo.Context) error {
	if identityOf(c).known() {
		return back(c, localPath(c.QueryParam("next"), "/"))
	}
	return s.showLogin(c, http.StatusOK, web.LoginView{Next: localPath(c.QueryParam("next"), "")})
}

func (s *Server) showLogin(c echo.Context, status int, v web.LoginView) (err error) {
	if v.Layout, err = s.layout(c, "Sign in", ""); err != nil {
		return err
	}
	if !reads(c) {
		v.Return = "/login" // a sign-up shows it too
	}
	return s.render(c, status, web.LoginPage(v))
}

// login handles POST /login.
func (s *Server) login(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	return s.signIn(c, strings.ToLower(f.text("email")), f.raw("password"), localPath(f.text("next"), ""))
}

// signIn begins a session when the password is right, within the limits.
func (s *Server) signIn(c echo.Context, email, password, next string) error {
	ctx, at := c.Request().Context(), s.now()
	network := networkOf(c.RealIP())
	if wait, ok := s.limits.address.allow(network, at); !ok {
		return tooMany(c, wait)
	}
	if wait, ok := s.limits.pair.allow(network+" "+hashSecret(email), at); !ok {
		return tooMany(c, wait)
	}
	var u models.User
	if len(email) <= emailMax {
		err := s.store.View(ctx, func(tx *store.Tx) (err error) {
			u, err = tx.UserByEmail(email)
			return err
		})
		if err != nil && !models.HasCode(err, models.NotFound) {
			return err
		}
	}
	right, err := s.hasher.matches(ctx, clip(password, passwordMax), u.PasswordHash)
	if err != nil {
		return err
	}
	if !right {
		return s.showLogin(c, http.StatusUnauthorized, web.LoginView{Email: web.Field{Value: clip(email, emailMax)}, Problem: wrongPair, Next: next})
	}
	var secret string
	err = s.store.InTx(ctx, func(tx *store.Tx) error {
		home, err := tx.HomeAccount(u.ID)
		if err != nil {
			return err
		}
		secret, err = s.newSession(c, tx, u, home.ID, at)
		return err
	})
	if err != nil {
		return err
	}
	s.setCookie(c, s.cookieName(c), secret, sessionLife)
	return back(c, localPath(next, "/"))
}

// logout handles POST /logout; signing out twice is no error.
func (s *Server) logout(c echo.Context) error {
	id := identityOf(c)
	if id.Session != "" {
		err := s.store.InTx(c.Request().Context(), func(tx *store.Tx) error { return tx.RevokeSession(id.User.ID, id.Session) })
		if err != nil && !models.HasCode(err, models.NotFound) {
			return err
		}
	}
	s.setCookie(c, s.cookieName(c), "", 0)
	return back(c, "/login")
}

const (
	nameMax  = 100 // characters
	emailMax = 254 // bytes: the limit of SMTP
)

// newUser reads what a sign-up says, and what is wrong with it by field.
func newUser(name, email, password string) (models.User, models.Fieldset) {
	bad := models.Fieldset{}
	if name == "" {
		bad.Add("name", "Say how you want to be called.")
	}
	if utf8.RuneCountInString(name) > nameMax || strings.ContainsFunc(name, isControl) {
		bad.Add("name", "Use at most 100 characters, on one line.")
	}
	email = strings.ToLower(email)
	parsed, err := mail.ParseAddress(email)
	if err != nil || parsed.Address != email || len(email) > emailMax || strings.ContainsFunc(email, isControl) {
		bad.Add("email", "Write an e-mail address, like you@example.org.")
	}
	if wrong := passwordWrong(password); wrong != "" {
		bad.Add("password", wrong)
	}
	return models.User{Name: name, Email: email}, bad
}

// passwordWrong says what is wrong with a new password; empty for nothing.
func passwordWrong(password string) string {
	switch {
	case len(password) < passwordMin:
		return "Use 12 characters or more."
	case len(password) > passwordMax:
		return "Use at most 1,024 characters."
	}
	return ""
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 }
