package server

import (
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"berth/api"
	"berth/models"
	"berth/wire"
)

var problemType = reflect.TypeFor[api.Problem]()

// describeSockets puts what huma cannot serve into the OpenAPI document.
func (a *restAPI) describeSockets() {
	for path, op := range map[string]huma.Operation{
		"/instances/{id}/live": {OperationID: "live", Summary: "WebSocket: one JSON sample a second",
			Description: "{seq, at, utilization_percent, memory_mib, temperature_c, power_w}; null is not measurable. ?after=SEQ resumes after a sample."},
		"/instances/{id}/terminal": {OperationID: "terminal", Summary: "WebSocket: a terminal in the instance",
			Description: "Binary messages both ways; text {\"resize\": {\"cols\", \"rows\"}}. ?session= names the shell, which lives on between connections."},
	} {
		op.Method, op.Path = http.MethodGet, path
		op.Parameters = []*huma.Param{{Name: "id", In: "path", Required: true, Schema: &huma.Schema{Type: "string"}}}
		op.Responses = map[string]*huma.Response{"101": {Description: "Switching protocols"}}
		a.huma.OpenAPI().AddOperation(&op)
	}
}

// instanceLive handles the WebSocket of an instance's samples.
func (s *Server) instanceLive(c echo.Context) error {
	in, err := s.fleet.Instance(c.Request().Context(), identityOf(c).Account.ID, models.InstanceID(c.Param("id")))
	if err != nil {
		return err
	}
	after, _ := strconv.ParseInt(c.QueryParam("after"), 10, 64) // absent or odd: from the oldest kept
	ws, err := s.sockets.upgrade(c.Response(), c.Request())
	if err != nil {
		return nil // the upgrader has answered
	}
	ctx, done := s.door.hold(s.closing, identityOf(c).pass())
	s.sockets.live(ctx, done, ws, in.ID, after)
	return nil
}

// instanceTerminal handles the WebSocket of a terminal in an instance.
func (s *Server) instanceTerminal(c echo.Context) error {
	in, err := s.fleet.Instance(c.Request().Context(), identityOf(c).Account.ID, models.InstanceID(c.Param("id")))
	if err != nil {
		return err
	}
	if in.State != models.Running {
		return &models.Problem{Code: models.Conflict, What: "A terminal opens in a running instance; this one is " + string(in.State) + ".", Next: "Start it, then open the terminal again."}
	}
	session := c.QueryParam("session")
	if session == "" {
		session = "main"
	}
	ctx, cancel := s.whileSignedIn(c)
	defer cancel()
	node, err := s.links.terminal(ctx, in.Instance, session, cells(c, "cols", 80), cells(c, "rows", 24))
	if err != nil {
		return err
	}
	defer node.Close()
	ws, err := s.sockets.upgrade(c.Response(), c.Request())
	if err != nil {
		return nil // the upgrader has answered
	}
	defer ws.Close()
	s.sockets.terminal(ctx, ws, node)
	return nil
}

// cells reads a terminal's width or height; absent or odd is usual.
func cells(c echo.Context, name string, usual int) int {
	n, err := strconv.Atoi(c.QueryParam(name))
	if err != nil || n < 1 || n > 1000 {
		return usual
	}
	return n
}

// linkRoutes are what agents call.
func (s *Server) linkRoutes() []route {
	return []route{
		{http.MethodPost, wire.JoinPath, anyone, s.links.join},
		{http.MethodGet, wire.ChallengePath, anyone, s.links.challenge},
		{http.MethodGet, wire.LinkPath, anyone, s.links.accept},
		{http.MethodGet, api.Prefix + "/instances/:id/live", mayView, s.instanceLive},
		{http.MethodGet, api.Prefix + "/instances/:id/terminal", mayRun, s.instanceTerminal},
	}
}
