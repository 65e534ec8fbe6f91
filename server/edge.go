package server

import (
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"
	"github.com/labstack/echo/v4"

	"berth/models"
	"berth/wire"
)

// requestID is the number of a request, shown on error pages and found in the log.
func requestID(c echo.Context) string {
	id, _ := c.Get("request").(string)
	return id
}

// observe numbers, counts and logs each request, and turns panics and errors
// into answers. It logs the path and never the query: links may carry what is
// nobody's business, and a path here never does.
func (s *Server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		began := time.Now()
		id := hex.EncodeToString(randomBytes(8))
		c.Set("request", id)
		c.Response().Header().Set("X-Request-Id", id)
		if err := s.recovered(c, next); err != nil {
			s.fail(err, c)
		}
		took := time.Since(began)
		route := c.Path()
		if route == "" {
			route = "none" // an unknown address is no label: there is no end of them
		}
		s.metrics.observe(c.Request().Method, route, c.Response().Status, took)
		level := slog.LevelInfo
		if quiet(route) {
			level = slog.LevelDebug
		}
		s.log.LogAttrs(c.Request().Context(), level, "request",
			slog.String("request", id), slog.String("method", c.Request().Method), slog.String("path", c.Request().URL.Path),
			slog.Int("status", c.Response().Status), slog.Int64("bytes", c.Response().Size), slog.Duration("took", took),
			slog.String("address", c.RealIP()), slog.String("account", string(identityOf(c).Account.ID)))
		return nil
	}
}

// quiet routes are asked for all the time and say nothing.
func quiet(route string) bool {
	return route == "/healthz" || route == "/readyz" || route == "/metrics" || strings.HasPrefix(route, "/assets/")
}

// recovered calls next; a panic becomes an internal error with its stack logged.
func (s *Server) recovered(c echo.Context, next echo.HandlerFunc) (err error) {
	defer func() {
		if what := recover(); what != nil {
			if what == http.ErrAbortHandler {
				panic(what)
			}
			s.log.Error("panic", "request", requestID(c), "panic", fmt.Sprint(what), "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", what)
		}
	}()
	return next(c)
}

// webhookPath is where the payment provider posts: from its own servers, signed.
const webhookPath = "/webhooks/stripe"

// protect refuses what must not be acted on however it is signed in: requests
// that another site's page made, secrets in an address, where proxies, histories
// and Referer headers keep them, bodies beyond formMax, and addresses and hosts that are none.
func (s *Server) protect(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		r.Body = http.MaxBytesReader(c.Response(), r.Body, formMax)
		if r.ContentLength != 0 {
			// It stands until net/http has read or dropped the body, and sets another
			// for the next request. Writers without deadlines (a test's) need none.
			_ = http.NewResponseController(c.Response()).SetReadDeadline(time.Now().Add(s.cfg.BodyPatience))
		}
		if !readable(r) {
			return &models.Problem{Code: codeMalformed, What: "The address or a header has text that is not valid UTF-8, a NUL, or a broken escape.",
				Next: "Check what was sent; nothing was changed."}
		}
		if !reads(c) && s.cfg.BaseURL == "" && checkOrigin("http://"+r.Host) != nil {
			return &models.Problem{Code: codeMalformed, What: "The Host header is not a host, with a port or without.",
				Next: "Open this portal by its address."} // links back are made of it
		}
		if strings.Contains(r.URL.RawQuery, tokenPrefix) {
			return &models.Problem{Code: codeInAddress, What: "An API token stands in the address, where it does not stay secret.",
				Next: "Send it in the header \"Authorization: Bearer …\", and revoke this one."}
		}
		if r.URL.Path != webhookPath {
			if err := s.origins.Check(acting(r)); err != nil {
				return &models.Problem{Code: codeForeign, What: "This request was made by a page of another site.",
					Next: "Open the page here and send the form from it."}
			}
		}
		return next(c)
	}
}

// acting is a request as it is checked for where it came from. A WebSocket begins
// as a GET, which is let through from anywhere, but acts like any form: a terminal
// opens a shell.
func acting(r *http.Request) *http.Request {
	if !websocket.IsWebSocketUpgrade(r) {
		return r
	}
	as := r.WithContext(r.Context())
	as.Method = http.MethodPost
	return as
}

// readable tells whether what comes into statements from an address or a header
// is text that both databases take: valid UTF-8 without NUL. Forms and JSON are
// looked at where they are read.
func readable(r *http.Request) bool {
	if _, err := url.ParseQuery(r.URL.RawQuery); err != nil {
		return false // net/http would leave the broken pair out
	}
	texts := []string{r.URL.Path, r.Header.Get("Idempotency-Key"), r.Header.Get(wire.NodeHeader)}
	for key, values := range r.URL.Query() {
		texts = append(append(texts, key), values...)
	}
	return !slices.ContainsFunc(texts, func(s string) bool { return !utf8.ValidString(s) || strings.ContainsRune(s, 0) })
}
