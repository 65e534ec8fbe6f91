package server

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"berth/models"
	"berth/models/store"
)

// sessionLife is how long a session holds after it was last used.
const sessionLife = 30 * 24 * time.Hour

// cookieName has the prefix that makes a browser refuse the cookie unless it is
// Secure, for the whole site, and set by this very host; that needs TLS.
func (s *Server) cookieName(c echo.Context) string {
	if s.secure(c) {
		return "__Host-berth"
	}
	return "berth"
}

func (s *Server) setCookie(c echo.Context, name, value string, life time.Duration) {
	cookie := &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: int(life / time.Second),
		HttpOnly: true, Secure: s.secure(c), SameSite: http.SameSiteLaxMode}
	if value == "" {
		cookie.MaxAge = -1
	}
	c.SetCookie(cookie)
}

// newSession makes a session of u acting for account in tx and returns its
// secret. It always is a new one, and the one that the browser came with, if
// any, ends: a planted session never becomes a signed-in one.
func (s *Server) newSession(c echo.Context, tx *store.Tx, u models.User, account models.AccountID, at time.Time) (secret string, err error) {
	now := models.At(at)
	if old, err := c.Cookie(s.cookieName(c)); err == nil {
		session, _, err := tx.SessionIdentity(hashSecret(old.Value), now)
		if err == nil {
			err = tx.RevokeSession(session.UserID, session.IDHash)
		}
		if err != nil && !models.HasCode(err, models.NotFound) {
			return "", err
		}
	}
	secret = newSecret()
	return secret, tx.CreateSession(models.Session{
		IDHash: hashSecret(secret), UserID: u.ID, AccountID: account,
		UserAgent: clip(c.Request().UserAgent(), 300), Address: c.RealIP(),
		CreatedAt: now, SeenAt: now, ExpiresAt: now.Add(sessionLife),
	})
}

// keepSession notes that a session was used, and makes it and its cookie last on.
func (s *Server) keepSession(c echo.Context, secret, hash string, at models.Instant) error {
	s.setCookie(c, s.cookieName(c), secret, sessionLife)
	return s.store.InTx(c.Request().Context(), func(tx *store.Tx) error {
		return tx.TouchSession(hash, at, at.Add(sessionLife))
	})
}
