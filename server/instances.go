package server

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"berth/fleet"
	"berth/models"
	"berth/models/store"
	"berth/web"
)

// rowsPerPage is how many rows a list shows at once.
const rowsPerPage = 50

// instances handles GET /instances.
func (s *Server) instances(c echo.Context) error {
	ctx, id := c.Request().Context(), identityOf(c)
	show, filter := showOf(c.QueryParam("show"))
	k := instancesFacts{at: models.At(s.now()), allowed: mayRun.check(id) == nil}
	list, next, err := s.fleet.Instances(ctx, id.Account.ID, filter, c.QueryParam("after"), rowsPerPage)
	if err != nil {
		return err
	}
	k.list = list
	ids := make([]models.InstanceID, len(list))
	for i, in := range list {
		ids[i] = in.ID
	}
	err = s.store.View(ctx, func(tx *store.Tx) (err error) {
		if k.counts, err = tx.InstanceCounts(id.Account.ID); err != nil {
			return err
		}
		k.charged, err = tx.Charged(ids)
		return err
	})
	if err != nil {
		return err
	}
	k.utilization = s.utilization(ids)
	w, err := s.walletOf(c)
	if err != nil {
		return err
	}
	k.burn = w.Burn
	v := instancesView(s.currency, show, k)
	if v.Layout, err = s.layout(c, "Instances", web.NavInstances); err != nil {
		return err
	}
	if !v.Any {
		if v.From, err = s.cheapest(ctx); err != nil {
			return err
		}
	}
	if next != "" {
		q := url.Values{"after": {next}}
		if show > 0 {
			q.Set("show", instanceShows[show].id)
		}
		v.NextHref = "/instances?" + q.Encode()
	}
	return s.render(c, http.StatusOK, web.InstancesPage(v))
}

// freshFor is how old a reading may be to be shown as the present one.
const freshFor = 5 // seconds

// utilization reads what instances did in the last seconds, as far as measured.
func (s *Server) utilization(ids []models.InstanceID) map[models.InstanceID]float64 {
	out := map[models.InstanceID]float64{}
	for _, id := range ids {
		// A sample's number is never below the Unix second it was taken.
		for _, sample := range s.fleet.Samples(fleet.OfInstance(id), s.now().Unix()-freshFor) {
			if sample.UtilizationPercent != nil {
				out[id] = *sample.UtilizationPercent
			}
		}
	}
	return out
}

// stopMany handles POST /instances/stop.
func (s *Server) stopMany(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	var ids []models.InstanceID
	for _, id := range f.all("ids") {
		if in := models.InstanceID(id); !slices.Contains(ids, in) {
			ids = append(ids, in)
		}
	}
	if len(ids) == 0 {
		if err := s.flash(c, web.Flash{Tone: web.ToneWarn, Text: "Nothing was selected. Tick the instances to stop."}); err != nil {
			return err
		}
		return back(c, "/instances")
	}
	stopped, refused, err := s.fleet.StopMany(c.Request().Context(), identityOf(c).Account.ID, ids, models.At(s.now()))
	if err != nil {
		return err
	}
	if err := s.flash(c, stoppedFlash(stopped, refused)); err != nil {
		return err
	}
	return back(c, "/instances")
}

// stoppedFlash says what a bulk stop did.
func stoppedFlash(stopped []models.Instance, refused map[models.InstanceID]error) web.Flash {
	var names []string
	for _, in := range stopped {
		names = append(names, in.Name)
	}
	f := web.Flash{Tone: web.ToneRunning}
	switch {
	case len(names) > 3:
		f.Text = fmt.Sprintf("%d instances are stopping. Their disks are kept.", len(names))
	case len(names) > 0:
		f.Text = strings.Join(names, ", ") + " stopping. The disk is kept."
	}
	if len(refused) > 0 {
		f.Tone = web.ToneFailed
		f.Text = strings.TrimSpace(f.Text + fmt.Sprintf(" %s could not be stopped.", count(len(refused), "instance")))
		if len(refused) == 1 {
			for _, err := range refused {
				f.Text += " " + problemOf(err).What
			}
		}
	}
	return f
}
