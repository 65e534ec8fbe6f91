package server

import (
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"berth/models"
	"berth/web"
)

// cordon handles POST /fleet/{id}/cordon, and uncordon POST /fleet/{id}/uncordon.
func (s *Server) cordon(c echo.Context) error {
	return s.setCordoned(c, true, "Nothing new starts there now. What runs goes on.")
}

func (s *Server) uncordon(c echo.Context) error {
	return s.setCordoned(c, false, "The node is open again.")
}

func (s *Server) setCordoned(c echo.Context, cordoned bool, said string) error {
	id := models.NodeID(c.Param("id"))
	if err := s.fleet.Cordon(c.Request().Context(), id, cordoned); err != nil {
		return err
	}
	if err := s.done(c, said); err != nil {
		return err
	}
	return back(c, "/fleet/"+string(id))
}

// maintain handles POST /fleet/{id}/maintenance: from when, and until when if known, in UTC.
func (s *Server) maintain(c echo.Context) error {
	id := models.NodeID(c.Param("id"))
	f, err := readForm(c)
	if err != nil {
		return err
	}
	from, err := readMoment(f.text("from"))
	if err != nil {
		return s.showNode(c, http.StatusUnprocessableEntity, "Write when the maintenance begins, such as 2027-01-31T18:00.")
	}
	until := models.Instant(0)
	if text := f.text("until"); text != "" {
		if until, err = readMoment(text); err != nil {
			return s.showNode(c, http.StatusUnprocessableEntity, "Write when the maintenance ends, such as 2027-01-31T20:00, or leave it empty.")
		}
	}
	err = s.fleet.SetMaintenance(c.Request().Context(), id, from, until, models.At(s.now()))
	if models.HasCode(err, models.Invalid) {
		bad := problemOf(err).Fields
		return s.showNode(c, http.StatusUnprocessableEntity, strings.TrimSpace(bad["from"]+" "+bad["until"]))
	}
	if err != nil {
		return err
	}
	if err := s.done(c, "Announced. Nothing new starts there, and its renters can read it on their pages."); err != nil {
		return err
	}
	return back(c, "/fleet/"+string(id))
}

// endMaintenance handles POST /fleet/{id}/maintenance/end.
func (s *Server) endMaintenance(c echo.Context) error {
	id := models.NodeID(c.Param("id"))
	if err := s.fleet.EndMaintenance(c.Request().Context(), id, models.At(s.now())); err != nil {
		return err
	}
	if err := s.done(c, "The node is open again; what the maintenance stopped starts in a moment."); err != nil {
		return err
	}
	return back(c, "/fleet/"+string(id))
}

// retire handles POST /fleet/{id}/retire. The node's name is typed to confirm it.
func (s *Server) retire(c echo.Context) error {
	ctx, id := c.Request().Context(), models.NodeID(c.Param("id"))
	f, err := readForm(c)
	if err != nil {
		return err
	}
	n, _, err := s.fleet.Node(ctx, id)
	if err != nil {
		return err
	}
	if f.text("confirm") != n.Name {
		return s.showNode(c, http.StatusUnprocessableEntity, "The name did not match. Type "+n.Name+" to confirm.")
	}
	ended, err := s.fleet.Retire(ctx, id, models.At(s.now()))
	if models.HasCode(err, models.Conflict) {
		p := problemOf(err)
		return s.showNode(c, http.StatusConflict, p.What+" "+p.Next)
	}
	if err != nil {
		return err
	}
	if err := s.done(c, n.Name+" is retired; "+count(ended, "instance")+" ended with it."); err != nil {
		return err
	}
	return back(c, "/fleet")
}

// upkeepView is what an operator can do with a node now.
func upkeepView(n models.Node, on int, at models.Instant) web.Upkeep {
	u := web.Upkeep{Cordoned: n.Cordoned, From: at.Add(time.Hour).Time().UTC().Format("2006-01-02T15:04")}
	if n.MaintenanceFrom != 0 {
		u.Maintenance = "Worked on from " + dayTime(n.MaintenanceFrom, time.UTC) + " UTC"
		if n.MaintenanceUntil != 0 {
			u.Maintenance += " until " + dayTime(n.MaintenanceUntil, time.UTC) + " UTC"
		}
		u.Maintenance += ". Nothing new starts there until it is over."
		if n.MaintenanceFrom > at {
			u.Maintenance += " What runs is stopped when it begins, and its renters have been told."
		}
	}
	if n.State != models.NodeOnline {
		u.Retire = []web.Consequence{
			{Text: count(on, "instance") + " there will be terminated, and their disks are gone."},
			{Text: "Its key is worth nothing any more: the machine can only join anew."},
			{Keep: true, Text: "They are charged to their last confirmed second, and what they hold is free."},
		}
	}
	return u
}
