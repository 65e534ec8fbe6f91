package server

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"berth/billing"
	"berth/models"
	"berth/web"
)

// component is what package web draws.
type component interface {
	Render(ctx context.Context, w io.Writer) error
}

// render draws a page into a buffer first, so that an error never leaves half a
// page, and sends it compressed to who takes that. Pages are not kept by caches:
// they show money, and a form on them carries a key that is good once.
func (s *Server) render(c echo.Context, status int, page component) error {
	var body bytes.Buffer
	if err := page.Render(c.Request().Context(), &body); err != nil {
		return err
	}
	h := c.Response().Header()
	h.Set("Cache-Control", "no-store")
	h.Add("Vary", "Accept-Encoding")
	if body.Len() > 1000 && acceptsGzip(c.Request().Header.Get("Accept-Encoding")) {
		var small bytes.Buffer
		z := gzip.NewWriter(&small)
		if _, err := z.Write(body.Bytes()); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		h.Set("Content-Encoding", "gzip")
		body = small
	}
	h.Set("Content-Length", strconv.Itoa(body.Len()))
	return c.HTMLBlob(status, body.Bytes())
}

// acceptsGzip reports whether an Accept-Encoding header names gzip and does not
// refuse it with a weight of zero (RFC 9110, 12.5.3).
func acceptsGzip(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, weight, _ := strings.Cut(strings.ReplaceAll(part, " ", ""), ";")
		if strings.EqualFold(name, "gzip") {
			return strings.Trim(strings.TrimPrefix(weight, "q="), "0.") != "" || weight == ""
		}
	}
	return false
}

// layout is what every page has around its own part, with the account's purse.
func (s *Server) layout(c echo.Context, title string, nav web.Nav) (web.Layout, error) {
	l := s.bareLayout(c)
	l.Title, l.Nav = title, nav
	l.Flash = s.takeFlash(c)
	id := identityOf(c)
	if !id.known() {
		return l, nil
	}
	w, err := s.walletOf(c)
	if err != nil {
		return l, err
	}
	l.Purse = purseView(s.currency, w, models.At(s.now()))
	return l, nil
}

// walletOf is the money of the account that asks, read once for a page that
// shows it in several places.
func (s *Server) walletOf(c echo.Context) (billing.Wallet, error) {
	if w, ok := c.Get("wallet").(billing.Wallet); ok {
		return w, nil
	}
	w, err := s.billing.Wallet(c.Request().Context(), identityOf(c).Account.ID, models.At(s.now()))
	if err == nil {
		c.Set("wallet", w)
	}
	return w, err
}

// bareLayout is a layout that needs nothing of the database: enough for an error.
func (s *Server) bareLayout(c echo.Context) web.Layout {
	id := identityOf(c)
	return web.Layout{
		User: id.User.Name, Operator: id.Operator,
		TestPayments: s.billing.Config().TestPayments,
		Theme:        theme(c), Return: returnPath(c),
		Site: c.Request().Host, Version: s.cfg.Version, Currency: s.currency.Code,
	}
}

// returnPath is where a form in the page's frame comes back to: this page, or
// the one that a posted form belongs to.
func returnPath(c echo.Context) string {
	if reads(c) {
		return localPath(c.Request().URL.RequestURI(), "/")
	}
	return formHome(c.Request().URL.Path)
}

// formHome is the page of the form that is posted to path.
func formHome(path string) string {
	switch {
	case path == "/login", path == "/signup", path == "/launch", path == "/prices":
		return path
	case strings.HasPrefix(path, "/wallet/"):
		return "/wallet"
	case strings.HasPrefix(path, "/account/"):
		return "/account"
	case strings.HasPrefix(path, "/instances/"):
		if id, _, _ := strings.Cut(strings.TrimPrefix(path, "/instances/"), "/"); id != "stop" {
			return "/instances/" + id
		}
		return "/instances"
	case strings.HasPrefix(path, "/launch/"):
		return "/launch"
	case strings.HasPrefix(path, "/fleet/"):
		return "/fleet"
	}
	return "/"
}

// back sends a browser on after a form.
func back(c echo.Context, path string) error { return c.Redirect(http.StatusSeeOther, path) }
