package server

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"berth/fleet"
	"berth/models"
	"berth/models/store"
	"berth/money"
	"berth/web"
)

func instanceID(c echo.Context) models.InstanceID { return models.InstanceID(c.Param("id")) }

// instancePage handles GET /instances/{id}.
func (s *Server) instancePage(c echo.Context) error {
	return s.showInstance(c, http.StatusOK, "")
}

func (s *Server) showInstance(c echo.Context, status int, terminateError string) error {
	ctx, id, at := c.Request().Context(), identityOf(c), models.At(s.now())
	in, err := s.fleet.Instance(ctx, id.Account.ID, instanceID(c))
	if err != nil {
		return err
	}
	k := instanceFacts{in: in, at: at, zone: zoneOf(id.Account), allowed: mayRun.check(id) == nil}
	if k.events, err = s.fleet.Events(ctx, id.Account.ID, in.ID, 0); err != nil {
		return err
	}
	if k.charged, err = s.chargedFor(ctx, in.ID); err != nil {
		return err
	}
	if r, ok := rangeOf(c); ok {
		if k.past, err = s.fleet.InstanceHistory(ctx, id.Account.ID, in.ID, r, at); err != nil {
			return err
		}
	} else if in.State == models.Running {
		for _, sample := range s.fleet.Samples(fleet.OfInstance(in.ID), at.Add(-chartWindow).Time().Unix()) {
			if sample.Run == in.Run {
				k.samples = append(k.samples, sample)
			}
		}
	}
	l, err := s.layout(c, in.Name, web.NavInstances)
	if err != nil {
		return err
	}
	k.purse = l.Purse
	v := instanceView(s.currency, k)
	v.Layout, v.TerminateError = l, terminateError
	return s.render(c, status, web.InstancePage(v))
}

// rangeOf is the part of the past that a page was asked for; none: live.
func rangeOf(c echo.Context) (fleet.Range, bool) {
	r, err := fleet.LookupRange(c.QueryParam("range"))
	return r, err == nil
}

func (s *Server) chargedFor(ctx context.Context, id models.InstanceID) (sum money.Amount, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		sums, err := tx.Charged([]models.InstanceID{id})
		sum = sums[id]
		return err
	})
	return sum, err
}

// stop handles POST /instances/{id}/stop.
func (s *Server) stop(c echo.Context) error { return s.act(c, s.fleet.Stop, "") }

// start handles POST /instances/{id}/start.
func (s *Server) start(c echo.Context) error { return s.act(c, s.fleet.Start, "") }

// restart handles POST /instances/{id}/restart.
func (s *Server) restart(c echo.Context) error { return s.act(c, s.fleet.Restart, "") }

// terminate handles POST /instances/{id}/terminate: what cannot be undone wants
// the instance's name typed.
func (s *Server) terminate(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	in, err := s.fleet.Instance(c.Request().Context(), identityOf(c).Account.ID, instanceID(c))
	if err != nil {
		return err
	}
	if f.text("confirm") != in.Name {
		return s.showInstance(c, http.StatusUnprocessableEntity, "The name did not match. Type "+in.Name+" to confirm.")
	}
	return s.act(c, s.fleet.Terminate, in.Name+" is being terminated. Its disk is erased.")
}

// act does something to an instance and shows its page again. What its state or
// the wallet does not allow is said there.
func (s *Server) act(c echo.Context, do func(context.Context, models.AccountID, models.InstanceID, models.Instant) (models.Instance, error), said string) error {
	page := "/instances/" + string(instanceID(c))
	in, err := do(c.Request().Context(), identityOf(c).Account.ID, instanceID(c), models.At(s.now()))
	if err != nil {
		p := problemOf(err)
		f := web.Flash{Tone: web.ToneFailed, Text: p.What + " " + p.Next}
		switch p.Code {
		case models.Conflict:
			f.Text = p.What // where to look is where this is shown
		case models.Stale, models.NoCapacity, models.AccountFrozen:
		case models.InsufficientFunds:
			f.Href, f.Link = "/wallet", "Top up"
		default:
			return err
		}
		if wantsJSON(c) {
			return err
		}
		if err := s.flash(c, f); err != nil {
			return err
		}
		return back(c, page)
	}
	if said != "" {
		if err := s.done(c, said); err != nil {
			return err
		}
	}
	return back(c, "/instances/"+string(in.ID))
}

// terminalPage handles GET /instances/{id}/terminal.
func (s *Server) terminalPage(c echo.Context) error {
	in, err := s.fleet.Instance(c.Request().Context(), identityOf(c).Account.ID, instanceID(c))
	if err != nil {
		return err
	}
	v := web.TerminalView{ID: string(in.ID), Name: in.Name}
	if v.Layout, err = s.layout(c, in.Name+" terminal", web.NavInstances); err != nil {
		return err
	}
	if in.State != models.Running {
		state, _ := stateView(in.Instance)
		v.Problem = &web.Problem{What: "There is no shell while it is not running: " + state + ".", Next: "Open the terminal when it runs.", Href: "/instances/" + v.ID, Link: "To the instance"}
		return s.render(c, http.StatusConflict, web.TerminalPage(v))
	}
	v.Nonce = s.terminalPolicy(c)
	return s.render(c, http.StatusOK, web.TerminalPage(v))
}
