package server

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"berth/web"
)

// flashCookie carries one message to the next page. Whoever forges it speaks to
// themselves only: the text is drawn as text, and links stay on this site.
const flashCookie = "berth-flash"

// flashLength is what of a message is kept: browsers drop a cookie of over 4 KB.
const flashLength = 500

// flash leaves a message for the next page.
func (s *Server) flash(c echo.Context, f web.Flash) error {
	f.Text = clip(f.Text, flashLength)
	body, err := json.Marshal(f)
	if err != nil {
		return err
	}
	s.setCookie(c, flashCookie, base64.RawURLEncoding.EncodeToString(body), time.Minute)
	return nil
}

// done is a flash that something was done.
func (s *Server) done(c echo.Context, text string) error {
	return s.flash(c, web.Flash{Tone: web.ToneRunning, Text: text})
}

// takeFlash returns the message left for this page, and forgets it.
func (s *Server) takeFlash(c echo.Context) *web.Flash {
	cookie, err := c.Cookie(flashCookie)
	if err != nil || cookie.Value == "" {
		return nil
	}
	s.setCookie(c, flashCookie, "", 0)
	body, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	var f web.Flash
	if err != nil || json.Unmarshal(body, &f) != nil || f.Text == "" {
		return nil
	}
	switch f.Tone {
	case web.ToneRunning, web.ToneWarn, web.ToneFailed:
	default:
		f.Tone = ""
	}
	f.Text = clip(f.Text, flashLength)
	if f.Href != "" {
		f.Href = localPath(f.Href, "/")
	}
	return &f
}

// themeCookie remembers light or dark; script on the page need not read it.
const themeCookie = "berth-theme"

func theme(c echo.Context) string {
	if cookie, err := c.Cookie(themeCookie); err == nil && (cookie.Value == "light" || cookie.Value == "dark") {
		return cookie.Value
	}
	return "system"
}

// setTheme handles POST /theme.
func (s *Server) setTheme(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	switch chosen := f.text("theme"); chosen {
	case "light", "dark":
		s.setCookie(c, themeCookie, chosen, 365*24*time.Hour)
	default:
		s.setCookie(c, themeCookie, "", 0)
	}
	return c.Redirect(http.StatusSeeOther, localPath(f.text("return"), "/"))
}
