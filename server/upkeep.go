package server

import (
	"net/http"

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
func upkeepView(n models.Node, on int) web.Upkeep {
	u := web.Upkeep{Cordoned: n.Cordoned}
	if n.State != models.NodeOnline {
		u.Retire = []web.Consequence{
			{Text: count(on, "instance") + " there will be terminated, and their disks are gone."},
			{Text: "Its key is worth nothing any more: the machine can only join anew."},
			{Keep: true, Text: "They are charged to their last confirmed second, and what they hold is free."},
		}
	}
	return u
}
