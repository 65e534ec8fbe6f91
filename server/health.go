package server

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// healthz handles GET /healthz: the process lives.
func (s *Server) healthz(c echo.Context) error {
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.String(http.StatusOK, "ok\n")
}

// readyz handles GET /readyz: the portal can serve. It says no while it shuts
// down, so that nothing new is sent here.
func (s *Server) readyz(c echo.Context) error {
	c.Response().Header().Set("Cache-Control", "no-store")
	if s.closing.Err() != nil {
		return c.String(http.StatusServiceUnavailable, "shutting down\n")
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), 2*time.Second)
	defer cancel()
	if err := s.store.Ping(ctx); err != nil {
		s.log.Warn("not ready", "error", err)
		return c.String(http.StatusServiceUnavailable, "the database does not answer\n")
	}
	return c.String(http.StatusOK, "ready\n")
}
