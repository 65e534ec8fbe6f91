package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"berth/api"
	"berth/models"
	"berth/money"
	"berth/web"
)

// Codes that only the HTTP edge gives.
const (
	codeInternal  models.Code = "internal"
	codeMethod    models.Code = "method_not_allowed"
	codeTooLarge  models.Code = "too_large"
	codeMalformed models.Code = "malformed"
	codeMediaType models.Code = "unsupported_media_type"
	codeForeign   models.Code = "cross_origin"
	codeInAddress models.Code = "secret_in_address"
	codeSlow      models.Code = "request_timeout"
	codeGone      models.Code = "client_gone" // logged only: nobody is there to read it
)

// statusGone is what proxies log for a client that went away; it is never seen.
const statusGone = 499

// statuses maps each Problem to its HTTP status.
var statuses = map[models.Code]int{
	models.Invalid:           http.StatusUnprocessableEntity,
	models.NotFound:          http.StatusNotFound,
	models.Unauthorized:      http.StatusUnauthorized,
	models.Forbidden:         http.StatusForbidden,
	models.Conflict:          http.StatusConflict,
	models.Stale:             http.StatusConflict,
	models.KeyReused:         http.StatusConflict,
	models.InsufficientFunds: http.StatusPaymentRequired,
	models.AccountFrozen:     http.StatusPaymentRequired,
	models.NoCapacity:        http.StatusConflict,
	models.TooMany:           http.StatusTooManyRequests,
	models.Unavailable:       http.StatusServiceUnavailable,
	models.PaymentFailed:     http.StatusBadGateway,
	codeInternal:             http.StatusInternalServerError,
	codeMethod:               http.StatusMethodNotAllowed,
	codeTooLarge:             http.StatusRequestEntityTooLarge,
	codeMalformed:            http.StatusBadRequest,
	codeMediaType:            http.StatusUnsupportedMediaType,
	codeForeign:              http.StatusForbidden,
	codeInAddress:            http.StatusBadRequest,
	codeSlow:                 http.StatusRequestTimeout,
	codeGone:                 statusGone,
}

// statusOf returns the HTTP status of a Problem.
func statusOf(p *models.Problem) int {
	if status, ok := statuses[p.Code]; ok {
		return status
	}
	return http.StatusInternalServerError
}

// problemOf turns any error into the Problem that is shown for it. What is not a
// Problem, nor something that HTTP itself has a word for, is an internal error:
// its text stays in the log.
func problemOf(err error) *models.Problem {
	var p *models.Problem
	var tooLarge *http.MaxBytesError
	var he *echo.HTTPError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &tooLarge):
		return &models.Problem{Code: codeTooLarge, What: fmt.Sprintf("This is more than the %d kB that can be sent here.", tooLarge.Limit>>10), Next: "Send less; nothing was changed."}
	case errors.Is(err, context.Canceled):
		return &models.Problem{Code: codeGone, What: "The connection was closed before the answer.", Next: "Try again."}
	case errors.As(err, &he):
		return httpProblem(he.Code)
	}
	return &models.Problem{Code: codeInternal, What: "Something went wrong on our side.", Next: "Try again. If it stays, tell the operator the request number."}
}

func httpProblem(status int) *models.Problem {
	switch status {
	case http.StatusNotFound:
		return &models.Problem{Code: models.NotFound, What: "There is nothing at this address.", Next: "Check the address, or start from the catalogue."}
	case http.StatusMethodNotAllowed:
		return &models.Problem{Code: codeMethod, What: "This address does not take that kind of request.", Next: "Open it in the browser, or send the form on its page."}
	case http.StatusRequestEntityTooLarge:
		return &models.Problem{Code: codeTooLarge, What: "This is more than can be sent here.", Next: "Send less; nothing was changed."}
	case http.StatusUnsupportedMediaType:
		return &models.Problem{Code: codeMediaType, What: "This cannot be read in the form it was sent in.", Next: "Send a plain form, or JSON where the API asks for it."}
	}
	if status >= 400 && status < 500 {
		return &models.Problem{Code: codeMalformed, What: "This request cannot be understood.", Next: "Check what was sent; nothing was changed."}
	}
	return problemOf(errors.New("internal"))
}

// problemJSON writes p for request number request, as the API has it.
func problemJSON(p *models.Problem, request string) *api.Problem {
	status := statusOf(p)
	amount := func(a *money.Amount) *api.Money {
		if a == nil {
			return nil
		}
		return &api.Money{Micros: int64(*a), Currency: p.Currency}
	}
	return &api.Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: string(p.Code), Detail: p.What, Next: p.Next,
		Fields: p.Fields, Have: amount(p.Have), Need: amount(p.Need), Alternatives: p.Alternatives, Request: request}
}

// fail is the one place where errors become answers: a page for people, RFC 9457
// for programs.
func (s *Server) fail(err error, c echo.Context) {
	p := problemOf(err)
	status := statusOf(p)
	if p.Code == codeInternal {
		s.log.Error("request failed", "request", requestID(c), "route", c.Path(), "error", err)
	}
	if c.Response().Committed {
		return
	}
	if status == http.StatusUnauthorized && wantsJSON(c) {
		c.Response().Header().Set("WWW-Authenticate", `Bearer realm="berth"`)
	}
	if wantsJSON(c) {
		s.failJSON(c, p)
		return
	}
	if status == http.StatusMethodNotAllowed && reads(c) { // reloaded after a form was refused, or typed
		_ = c.Redirect(http.StatusSeeOther, formHome(c.Request().URL.Path))
		return
	}
	if !identityOf(c).known() { // an address that has no page belongs to nobody, but somebody asked
		if id, err := s.identify(c); err == nil {
			c.Set("identity", id)
		}
	}
	c.SetRequest(c.Request().WithContext(context.WithoutCancel(c.Request().Context()))) // the answer may still reach somebody
	layout := s.bareLayout(c)
	layout.Title = p.What
	view := web.ErrorView{Layout: layout, Status: status, What: p.What, Next: p.Next, Request: requestID(c)}
	if p.Code == models.InsufficientFunds {
		view.Href, view.Link = "/wallet", "Top up"
	}
	if err := s.render(c, status, web.ErrorPage(view)); err != nil {
		s.log.Error("draw the error page", "request", requestID(c), "error", err)
		_ = c.String(http.StatusInternalServerError, "Something went wrong on our side. Request "+requestID(c)+".")
	}
}

func (s *Server) failJSON(c echo.Context, p *models.Problem) {
	var body bytes.Buffer
	if err := json.NewEncoder(&body).Encode(problemJSON(p, requestID(c))); err != nil {
		s.log.Error("write a problem", "request", requestID(c), "error", err)
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	// The peer may be gone; there is nobody else to tell.
	_ = c.Blob(statusOf(p), "application/problem+json", body.Bytes())
}

// wantsJSON tells programs from browsers: by the address first, then by Accept.
func wantsJSON(c echo.Context) bool {
	path := c.Request().URL.Path
	for _, prefix := range []string{"/api/", "/agent/", "/webhooks/"} {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	accept := c.Request().Header.Get("Accept")
	return !strings.Contains(accept, "text/html") && (strings.Contains(accept, "json") || strings.Contains(accept, "text/event-stream"))
}

// tooMany answers that a limit was reached, with when to come back.
func tooMany(c echo.Context, wait time.Duration) error {
	seconds := int(wait/time.Second) + 1
	c.Response().Header().Set("Retry-After", strconv.Itoa(seconds))
	return &models.Problem{Code: models.TooMany, What: "Too many tries.", Next: fmt.Sprintf("Wait %d s, then try again.", seconds)}
}
