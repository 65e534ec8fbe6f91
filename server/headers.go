package server

import (
	"strings"

	"github.com/labstack/echo/v4"
)

// policy is the Content-Security-Policy of every answer. Chromium applies
// form-action to redirects too, so the payment page's origin stands in it: the
// top-up form is sent on to there.
func policy(styles, checkoutOrigin string) string {
	actions := strings.TrimSpace("'self' " + checkoutOrigin)
	return strings.Join([]string{
		"default-src 'none'", "script-src 'self'", "style-src " + styles, "img-src 'self' data:", "font-src 'self'",
		"connect-src 'self'", "form-action " + actions, "frame-ancestors 'none'", "base-uri 'none'",
	}, "; ")
}

// headers sets what every answer carries. Handlers may replace it: the terminal
// page alone has another policy.
func (s *Server) headers(next echo.HandlerFunc) echo.HandlerFunc {
	csp := policy("'self'", s.cfg.CheckoutOrigin)
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("Content-Security-Policy", csp)
		h.Set("X-Content-Type-Options", "nosniff")
		// Not "no-referrer": with that, browsers send "Origin: null" with our own forms.
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
		h.Set("X-Frame-Options", "DENY")
		if s.secure(c) {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		return next(c)
	}
}

// terminalPolicy lets xterm.js style itself: its style elements carry the nonce
// that a script of ours puts on them, and its true-colour cells have style
// attributes. Only the terminal's page has it.
func (s *Server) terminalPolicy(c echo.Context) (nonce string) {
	nonce = newSecret()
	c.Response().Header().Set("Content-Security-Policy",
		policy("'self' 'nonce-"+nonce+"'; style-src-attr 'unsafe-inline'", s.cfg.CheckoutOrigin))
	return nonce
}

// secure tells whether the browser talks to us over TLS, here or at the proxy in
// front that the configured address speaks of.
func (s *Server) secure(c echo.Context) bool {
	return c.Request().TLS != nil || strings.HasPrefix(s.cfg.BaseURL, "https://")
}

// base is the origin that browsers reach us at.
func (s *Server) base(c echo.Context) string {
	switch {
	case s.cfg.BaseURL != "":
		return strings.TrimSuffix(s.cfg.BaseURL, "/")
	case c.Request().TLS != nil:
		return "https://" + c.Request().Host
	}
	return "http://" + c.Request().Host
}
