package server

import (
	"errors"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"berth/models"
)

// Largest bodies in bytes.
const (
	formMax    = 1 << 20
	webhookMax = 64 << 10
)

// maxFields bounds how many values a form may have; a bulk stop has the most.
const maxFields = 1000

// form is a posted form: valid UTF-8 without NUL, which PostgreSQL refuses.
type form url.Values

// readForm reads a plain form of at most formMax bytes. It fails with a Problem
// for another kind of body, a broken encoding, or too much.
func readForm(c echo.Context) (form, error) {
	r := c.Request()
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.ContentLength != 0 && (err != nil || kind != "application/x-www-form-urlencoded") {
		return nil, httpProblem(http.StatusUnsupportedMediaType)
	}
	if err := r.ParseForm(); err != nil {
		return nil, unread(err)
	}
	n := 0
	for key, values := range r.PostForm {
		for _, v := range append(values, key) {
			if !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
				return nil, malformed("The form has text that is not valid UTF-8.")
			}
		}
		if n += len(values); n > maxFields {
			return nil, malformed("The form has too many fields.")
		}
	}
	return form(r.PostForm), nil
}

// unread says why a body could not be read.
func unread(err error) error {
	switch {
	case problemOf(err).Code == codeTooLarge:
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &models.Problem{Code: codeSlow, What: "The rest of this request did not come in time.", Next: "Send it again; nothing was changed."}
	}
	return malformed("The form's encoding is broken.")
}

func malformed(what string) *models.Problem {
	return &models.Problem{Code: codeMalformed, What: what, Next: "Send it again from the page; nothing was changed."}
}

// text is a field's first value without space around it.
func (f form) text(name string) string { return strings.TrimSpace(url.Values(f).Get(name)) }

// raw is a field's first value as it came.
func (f form) raw(name string) string { return url.Values(f).Get(name) }

// all is every value of a field.
func (f form) all(name string) []string { return url.Values(f)[name] }

// localPath returns where to go next if it is a path of this site, else
// fallback. Browsers take "//host", "/\host" and control characters within for
// another site's address.
func localPath(next, fallback string) string {
	if !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || len(next) > 2000 || strings.Contains(next, `\`) {
		return fallback
	}
	for _, r := range next {
		if r < ' ' || r == 0x7f {
			return fallback
		}
	}
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil {
		return fallback
	}
	return next
}

// clip shortens text to at most max bytes, between characters.
func clip(text string, max int) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")
	if len(text) <= max {
		return text
	}
	return strings.ToValidUTF8(text[:max], "")
}
