package server

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"berth/models"
	"berth/models/store"
)

// tokenPrefix begins every API token, so that scanners find leaked ones.
const tokenPrefix = "brt_"

// identity is who acts, for which account, and by what. The zero value is
// nobody, and nobody may do nothing that is not open to everybody.
type identity struct {
	User    models.User
	Account models.Account
	Role    models.Role
	// Operator runs this Berth.
	Operator bool
	// Session is the hash of the session that says so, or Token the API token.
	Session string
	Token   models.TokenID
}

// known tells whether somebody is signed in.
func (id identity) known() bool { return id.User.ID != "" && id.Account.ID != "" }

// need is who may call a route.
type need string

// The needs, each with the roles that meet it.
const (
	anyone     need = "anyone"
	mayView    need = "view"    // every member
	mayRun     need = "run"     // launch, stop, terminals: owner, developer
	mayPay     need = "pay"     // top-ups: owner, billing
	mayOperate need = "operate" // operators of this Berth, whatever their role
)

// roles that meet a need.
var roles = map[need][]models.Role{
	mayView: {models.Owner, models.Billing, models.Developer, models.Viewer},
	mayRun:  {models.Owner, models.Developer},
	mayPay:  {models.Owner, models.Billing},
}

// check tells whether id meets n: nil, an Unauthorized or a Forbidden Problem.
// What is not in the tables is refused.
func (n need) check(id identity) error {
	if n == anyone {
		return nil
	}
	if !id.known() {
		return &models.Problem{Code: models.Unauthorized, What: "You are not signed in.", Next: "Sign in, or send an API token."}
	}
	if n == mayOperate {
		if id.Operator {
			return nil
		}
		return &models.Problem{Code: models.Forbidden, What: "This is for those who operate this Berth.", Next: "Ask an operator if you need it."}
	}
	if slices.Contains(roles[n], id.Role) {
		return nil
	}
	return &models.Problem{Code: models.Forbidden, What: "Your role in this account does not allow this.", Next: "Ask an owner of the account to do it, or for another role."}
}

// identityOf is who a request acts as; the zero identity for nobody.
func identityOf(c echo.Context) identity {
	id, _ := c.Get("identity").(identity)
	return id
}

// guard finds out who asks and lets only those through who meet n. A browser
// that is not signed in is sent to sign in, and comes back.
func (s *Server) guard(n need, next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		id, err := s.identify(c)
		if err != nil {
			return err
		}
		c.Set("identity", id)
		if err := n.check(id); err != nil {
			if reads(c) && !wantsJSON(c) && !id.known() && c.Request().Header.Get("Upgrade") == "" {
				return c.Redirect(http.StatusSeeOther, "/login?next="+url.QueryEscape(c.Request().URL.RequestURI()))
			}
			return err
		}
		return next(c)
	}
}

func reads(c echo.Context) bool {
	return c.Request().Method == http.MethodGet
}

// identify reads who asks from the Authorization header, else from the session
// cookie. A token that is not valid is an Unauthorized Problem even on an open
// page; a cookie that is not valid is nobody's.
func (s *Server) identify(c echo.Context) (identity, error) {
	if header := c.Request().Header.Get("Authorization"); header != "" {
		return s.byToken(c.Request().Context(), header)
	}
	cookie, err := c.Cookie(s.cookieName(c))
	if err != nil || cookie.Value == "" {
		return identity{}, nil
	}
	at := models.At(s.now())
	var session models.Session
	var who store.Identity
	err = s.store.View(c.Request().Context(), func(tx *store.Tx) error {
		session, who, err = tx.SessionIdentity(hashSecret(cookie.Value), at)
		return err
	})
	if models.HasCode(err, models.NotFound) {
		return identity{}, nil
	}
	if err != nil {
		return identity{}, err
	}
	if store.SessionIsStale(session, at) {
		if err := s.keepSession(c, cookie.Value, session.IDHash, at); err != nil {
			return identity{}, err
		}
	}
	return identity{User: who.User, Account: who.Account, Role: who.Role, Operator: who.User.Operator, Session: session.IDHash}, nil
}

func (s *Server) byToken(ctx context.Context, header string) (identity, error) {
	refused := &models.Problem{Code: models.Unauthorized, What: "This API token is not valid.", Next: "Make a new one on the account page, and send it as \"Authorization: Bearer brt_…\"."}
	scheme, secret, _ := strings.Cut(header, " ")
	if secret = strings.TrimSpace(secret); !strings.EqualFold(scheme, "Bearer") || !strings.HasPrefix(secret, tokenPrefix) {
		return identity{}, refused
	}
	at := models.At(s.now())
	var token models.Token
	var who store.Identity
	err := s.store.View(ctx, func(tx *store.Tx) (err error) {
		token, who, err = tx.TokenIdentity(hashSecret(secret))
		return err
	})
	if models.HasCode(err, models.NotFound) {
		return identity{}, refused
	}
	if err != nil {
		return identity{}, err
	}
	if store.TokenIsStale(token, at) {
		if err := s.store.InTx(ctx, func(tx *store.Tx) error { return tx.TouchToken(token.ID, at) }); err != nil {
			return identity{}, err
		}
	}
	return identity{User: who.User, Account: who.Account, Role: who.Role, Operator: who.User.Operator, Token: token.ID}, nil
}
