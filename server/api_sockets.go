package server

import (
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gorilla/websocket"
	"github.com/labstack/echo/v4"

	"berth/api"
	"berth/fleet"
	"berth/models"
	"berth/models/store"
	"berth/wire"
)

var problemType = reflect.TypeFor[api.Problem]()

// describeSockets puts what huma cannot serve into the OpenAPI document.
func (a *restAPI) describeSockets() {
	for path, op := range map[string]huma.Operation{
		"/instances/{id}/live": {OperationID: "live", Summary: "WebSocket: one JSON sample a second",
			Description: "{seq, at, utilization_percent, memory_mib, temperature_c, power_w}; null is not measurable. ?after=SEQ resumes after a sample."},
		"/instances/live": {OperationID: "liveList", Summary: "WebSocket: what several instances do, one JSON array for each tick of a node",
			Description: "[{id, seq, at, utilization_percent, memory_mib, temperature_c, power_w}]; null is not measurable. ?id= may be given up to 100 times."},
		"/instances/{id}/terminal": {OperationID: "terminal", Summary: "WebSocket: a terminal in the instance",
			Description: "Binary messages both ways; text {\"resize\": {\"cols\", \"rows\"}}. ?session= names the shell, which lives on between connections."},
	} {
		op.Method, op.Path = http.MethodGet, path
		op.Parameters = []*huma.Param{{Name: "id", In: "path", Required: true, Schema: &huma.Schema{Type: "string"}}}
		if !strings.Contains(path, "{id}") {
			op.Parameters[0].In = "query"
		}
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
	return s.watch(c, scene{of: []fleet.Subject{fleet.OfInstance(in.ID)}}, afterOf(c))
}

// watchedMax is how many instances one socket may watch.
const watchedMax = 100

// instancesLive handles the WebSocket of what several instances of an account do.
func (s *Server) instancesLive(c echo.Context) error {
	var ids []models.InstanceID
	for _, id := range c.QueryParams()["id"] {
		ids = append(ids, models.InstanceID(id))
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) == 0 || len(ids) > watchedMax {
		return models.Fieldset{"id": "Name 1 to 100 instances, each as ?id=."}.Problem()
	}
	err := s.store.View(c.Request().Context(), func(tx *store.Tx) error {
		rows, err := tx.InstancesByID(ids)
		own := map[models.InstanceID]bool{}
		for _, in := range rows {
			own[in.ID] = in.AccountID == identityOf(c).Account.ID
		}
		for _, id := range ids {
			if err == nil && !own[id] {
				err = models.Missing("instance", id)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	what := scene{list: true}
	for _, id := range ids {
		what.of = append(what.of, fleet.OfInstance(id))
	}
	return s.watch(c, what, 0)
}

// watch makes a request a live socket.
func (s *Server) watch(c echo.Context, what scene, after int64) error {
	ws, err := s.sockets.upgrade(c.Response(), c.Request())
	if err != nil {
		return err
	}
	ctx, done := s.door.hold(s.closing, identityOf(c).pass())
	s.sockets.live(ctx, done, ws, what, after)
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
	if !websocket.IsWebSocketUpgrade(c.Request()) { // no shell for what cannot show it
		return &models.Problem{Code: codeMalformed, What: "A terminal is a WebSocket, and this is a plain request.", Next: "Open it on the instance's page, or with a WebSocket client."}
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
		return err
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
		{http.MethodGet, api.Prefix + "/instances/live", mayView, s.instancesLive},
		{http.MethodGet, api.Prefix + "/instances/:id/live", mayView, s.instanceLive},
		{http.MethodGet, api.Prefix + "/instances/:id/terminal", mayRun, s.instanceTerminal},
	}
}
