package server

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"berth/api"
	"berth/fleet"
	"berth/gpu"
	"berth/models"
	"berth/models/store"
	"berth/money"
	"berth/web"
)

// fleetPage handles GET /fleet.
func (s *Server) fleetPage(c echo.Context) error { return s.showFleet(c, http.StatusOK, nil) }

func (s *Server) showFleet(c echo.Context, status int, join *web.JoinCommand) error {
	k, err := s.fleetFacts(c)
	if err != nil {
		return err
	}
	v := fleetView(s.currency, k)
	v.Join = join
	if v.Layout, err = s.layout(c, "Fleet", web.NavFleet); err != nil {
		return err
	}
	return s.render(c, status, web.FleetPage(v))
}

func (s *Server) fleetFacts(c echo.Context) (k fleetFacts, err error) {
	ctx := c.Request().Context()
	k.at = models.At(s.now())
	if k.nodes, err = s.fleet.Nodes(ctx); err != nil {
		return k, err
	}
	err = s.store.View(ctx, func(tx *store.Tx) (err error) {
		k.burn, err = tx.TotalBurn()
		return err
	})
	k.samples = s.newest(k.nodes...)
	return k, err
}

// newest are the present readings of the cards of nodes, by UUID.
func (s *Server) newest(nodes ...fleet.NodeView) map[string]fleet.Sample {
	out := map[string]fleet.Sample{}
	for _, n := range nodes {
		for _, d := range n.Devices {
			if recent := s.fleet.Samples(fleet.OfCard(n.ID, d.UUID), s.now().Unix()-freshFor); len(recent) > 0 {
				out[d.UUID] = recent[len(recent)-1]
			}
		}
	}
	return out
}

// joinToken handles POST /fleet/join-tokens and shows the command, this once.
func (s *Server) joinToken(c echo.Context) error {
	token, row, err := s.fleet.CreateJoinToken(c.Request().Context(), identityOf(c).User.ID, models.At(s.now()))
	if err != nil {
		return err
	}
	return s.showFleet(c, http.StatusCreated, &web.JoinCommand{
		Command: joinCommand(s.base(c), token),
		Expires: "It joins one node, and works until " + row.ExpiresAt.Time().Format("15:04") + " UTC. On a host without NVIDIA cards add --simulate a100-80gb:1, or other models.",
	})
}

// nodePage handles GET /fleet/{id}.
func (s *Server) nodePage(c echo.Context) error { return s.showNode(c, http.StatusOK, "") }

// showNode draws a node; refused is why something that was asked was not done.
func (s *Server) showNode(c echo.Context, status int, refused string) error {
	n, on, err := s.fleet.Node(c.Request().Context(), models.NodeID(c.Param("id")))
	if err != nil {
		return err
	}
	k := fleetFacts{at: models.At(s.now()), samples: s.newest(n)}
	ids := make([]models.AccountID, len(on))
	for i, in := range on {
		ids[i] = in.AccountID
	}
	var names map[models.AccountID]string
	err = s.store.View(c.Request().Context(), func(tx *store.Tx) (err error) {
		names, err = tx.AccountNames(ids)
		return err
	})
	if err != nil {
		return err
	}
	v := nodeView(n, on, names, k)
	v.Upkeep = upkeepView(n.Node, len(on), k.at)
	if v.Layout, err = s.layout(c, n.Name, web.NavFleet); err != nil {
		return err
	}
	if err := s.measureNode(c, n, &v, k.at); err != nil {
		return err
	}
	if refused != "" {
		v.Flash = &web.Flash{Tone: web.ToneFailed, Text: refused}
	}
	return s.render(c, status, web.NodePage(v))
}

// nodeEvents is how many events of its cards a node's page shows.
const nodeEvents = 20

// measureNode adds the charts and the events of a node's cards.
func (s *Server) measureNode(c echo.Context, n fleet.NodeView, v *web.NodeView, at models.Instant) error {
	ctx, page := c.Request().Context(), "/fleet/"+string(n.ID)
	list, err := s.fleet.CardEvents(ctx, n.ID, nodeEvents)
	if err != nil {
		return err
	}
	names := map[string]string{}
	for _, d := range n.Devices {
		names[d.UUID] = fmt.Sprintf("GPU %d", d.Index)
	}
	v.Events = cardEvents(list, names)
	if len(n.Devices) == 0 {
		return nil
	}
	r, past := rangeOf(c)
	v.Ranges = rangeLinks(page, r.Name)
	if !past {
		v.Live = liveView(page+"/live", nodeScale(n), s.recent(fleet.OfNode(n.ID), at), at)
		return nil
	}
	h, err := s.fleet.NodeHistory(ctx, n.ID, r, at)
	if err != nil {
		return err
	}
	v.Past = pastView(api.Prefix+"/nodes/"+string(n.ID)+"/history", nodeScale(n), h)
	return nil
}

// prices handles GET /prices.
func (s *Server) prices(c echo.Context) error {
	return s.showPrices(c, http.StatusOK, c.QueryParam("sku"), models.Fieldset{}, "", "")
}

func (s *Server) showPrices(c echo.Context, status int, sku string, bad models.Fieldset, price, from string) error {
	at := models.At(s.now())
	var now, planned []models.Price
	err := s.store.View(c.Request().Context(), func(tx *store.Tx) (err error) {
		if now, err = tx.PricesAt(models.OnDemand, at); err != nil {
			return err
		}
		planned, err = tx.PlannedPrices(models.OnDemand, at)
		return err
	})
	if err != nil {
		return err
	}
	v := pricesView(s.currency, now, planned, pricedSKUs(now), sku)
	v.SKUError = bad["sku"]
	v.Price = web.Field{Value: clip(price, 60), Error: bad["price_per_hour"]}
	v.EffectiveAt = web.Field{Value: clip(from, 60), Error: bad["effective_at"]}
	if v.Layout, err = s.layout(c, "Prices", web.NavFleet); err != nil {
		return err
	}
	return s.render(c, status, web.PricesPage(v))
}

// pricedSKUs are what the form offers: all that have a price, and every slice of
// every model that is known.
func pricedSKUs(now []models.Price) (ids []string) {
	for _, p := range now {
		ids = append(ids, p.SKU)
	}
	for _, m := range gpu.Models() {
		for _, p := range m.Usual() {
			if id := gpu.SKUFor(m.ID, p.Name, 1).ID; !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// momentForms are how a browser writes a date and time, to the minute or second.
var momentForms = []string{"2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339}

// setPrice handles POST /prices.
func (s *Server) setPrice(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	bad := models.Fieldset{}
	p := models.Price{SKU: f.text("sku"), BillingMode: models.OnDemand, CreatedBy: identityOf(c).User.ID}
	if p.PricePerHour, err = money.ParseRate(f.text("price_per_hour")); err != nil {
		bad.Add("price_per_hour", "Write a price like 1.99, with at most six digits after the point.")
	}
	if from := f.text("effective_at"); from != "" {
		if p.EffectiveAt, err = readMoment(from); err != nil {
			bad.Add("effective_at", "Write a date and time like 2027-01-31T00:00.")
		}
	}
	if len(bad) == 0 {
		_, err = s.billing.SetPrice(c.Request().Context(), p, models.At(s.now()))
		var problem *models.Problem
		switch {
		case errors.As(err, &problem) && problem.Code == models.Invalid:
			bad = problem.Fields
		case errors.As(err, &problem) && problem.Code == models.Conflict:
			bad.Add("effective_at", problem.What+" "+problem.Next)
		case err != nil:
			return err
		}
	}
	if len(bad) > 0 {
		return s.showPrices(c, http.StatusUnprocessableEntity, p.SKU, bad, f.text("price_per_hour"), f.text("effective_at"))
	}
	if err := s.done(c, skuName(p.SKU)+" has a new price. Running instances keep theirs."); err != nil {
		return err
	}
	return back(c, "/prices")
}

// readMoment reads a moment in UTC.
func readMoment(text string) (models.Instant, error) {
	var err error
	for _, form := range momentForms {
		var t time.Time
		if t, err = time.Parse(form, text); err == nil && t.Year() >= 2000 && t.Year() < 3000 {
			return models.At(t), nil
		}
	}
	return 0, errors.Join(errors.New("not a moment"), err)
}

// accountsPerPage bounds the operator's list of accounts.
const accountsPerPage = 50

// accounts handles GET /fleet/accounts.
func (s *Server) accounts(c echo.Context) error {
	var list []store.AccountSummary
	var next string
	var unbilled map[models.AccountID]money.Amount
	err := s.store.View(c.Request().Context(), func(tx *store.Tx) (err error) {
		if list, next, err = tx.Accounts(c.QueryParam("after"), accountsPerPage); err != nil {
			return err
		}
		ids := make([]models.AccountID, len(list))
		for i, a := range list {
			ids[i] = a.ID
		}
		unbilled, err = tx.Unbilled(ids)
		return err
	})
	if err != nil {
		return err
	}
	v := web.AccountsView{}
	for _, a := range list {
		row := web.AccountRow{ID: string(a.ID), Name: a.Name, Owner: a.Owner, Balance: s.currency.Format(a.Wallet.Balance - a.Wallet.Accrued),
			MonthToDate: s.currency.FormatSmall(unbilled[a.ID]), Instances: "none", CanClose: unbilled[a.ID] > 0}
		if a.Running > 0 {
			row.Instances = thousands(int64(a.Running)) + " running"
		}
		v.Rows = append(v.Rows, row)
	}
	if next != "" {
		v.NextHref = "/fleet/accounts?after=" + next
	}
	if v.Layout, err = s.layout(c, "Accounts", web.NavFleet); err != nil {
		return err
	}
	return s.render(c, http.StatusOK, web.AccountsPage(v))
}

// closeInvoice handles POST /accounts/{id}/close-invoice: up to now.
func (s *Server) closeInvoice(c echo.Context) error {
	at := models.At(s.now())
	inv, err := s.billing.CloseInvoice(c.Request().Context(), models.AccountID(c.Param("id")), at, at)
	if models.HasCode(err, models.Conflict) {
		p := problemOf(err)
		if err := s.flash(c, web.Flash{Tone: web.ToneWarn, Text: p.What + " " + p.Next}); err != nil {
			return err
		}
		return back(c, "/fleet/accounts")
	}
	if err != nil {
		return err
	}
	if err := s.done(c, "Invoice "+inv.Number+" is closed: "+s.currency.Format(inv.Total)+"."); err != nil {
		return err
	}
	return back(c, "/fleet/accounts")
}
