package server

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"berth/fleet"
	"berth/gpu"
	"berth/models"
	"berth/web"
)

// cardLayoutPage handles GET /fleet/{id}/devices/{uuid}/layout. With plan set the
// query says how many of each profile are wanted.
func (s *Server) cardLayoutPage(c echo.Context) error {
	q := c.QueryParams()
	if !q.Has("plan") {
		return s.showCardLayout(c, http.StatusOK, nil, false)
	}
	wanted, err := countsOf(q)
	if err != nil {
		return err
	}
	return s.showCardLayout(c, http.StatusOK, wanted, true)
}

// setCardLayout handles POST /fleet/{id}/devices/{uuid}/layout.
func (s *Server) setCardLayout(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	wanted := strings.Fields(f.text("profiles"))
	plan, err := s.fleet.SetLayout(c.Request().Context(), c.Param("uuid"), wanted)
	if models.HasCode(err, models.Conflict) || models.HasCode(err, models.Invalid) {
		return s.showCardLayout(c, statusOf(problemOf(err)), wanted, true)
	}
	if err != nil {
		return err
	}
	said := "The card is being divided; its slices lie ready in a moment."
	if len(plan.Layout) == 0 {
		said = "The card is sold as is asked for from now on."
	}
	if err := s.done(c, said); err != nil {
		return err
	}
	return back(c, "/fleet/"+c.Param("id"))
}

const maxCount = 16 // of one profile: more than any card has

// countsOf reads how many of each profile are wanted, in the order of the query.
func countsOf(q url.Values) (wanted []string, err error) {
	for _, field := range slices.Sorted(func(yield func(string) bool) {
		for k := range q {
			if !yield(k) {
				return
			}
		}
	}) {
		profile, ok := strings.CutPrefix(field, "n-")
		if !ok {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(q.Get(field)))
		if q.Get(field) != "" && (err != nil || n < 0 || n > maxCount) {
			return nil, models.Fieldset{field: fmt.Sprintf("Use a whole number from 0 to %d.", maxCount)}.Problem()
		}
		for range n {
			wanted = append(wanted, profile)
		}
	}
	return wanted, nil
}

// showCardLayout draws the page; with planned, also how to come to what is wanted.
func (s *Server) showCardLayout(c echo.Context, status int, wanted []string, planned bool) error {
	ctx, uuid := c.Request().Context(), c.Param("uuid")
	n, _, err := s.fleet.Node(ctx, models.NodeID(c.Param("id")))
	if err != nil {
		return err
	}
	i := slices.IndexFunc(n.Devices, func(d fleet.DeviceView) bool { return d.UUID == uuid })
	if i < 0 {
		return models.Missing("device", uuid)
	}
	d := n.Devices[i]
	var plan *fleet.LayoutPlan
	var refused *web.Problem
	if planned || !d.Facts.Partitions() {
		p, err := s.fleet.PlanLayout(ctx, uuid, wanted)
		problem := problemOf(err)
		switch {
		case err == nil:
			plan = &p
		case problem.Fields["profiles"] != "":
			refused = &web.Problem{What: problem.Fields["profiles"], Next: "Nothing was changed."}
		case problem.Code == models.Conflict:
			refused = &web.Problem{What: problem.What, Next: problem.Next}
		default:
			return err
		}
	}
	v := cardLayoutView(n, d, wanted, planned, plan)
	v.Problem = refused
	if v.Layout, err = s.layout(c, v.Card+" of "+n.Name, web.NavFleet); err != nil {
		return err
	}
	return s.render(c, status, web.CardLayoutPage(v))
}

func cardLayoutView(n fleet.NodeView, d fleet.DeviceView, wanted []string, planned bool, plan *fleet.LayoutPlan) web.CardLayoutView {
	v := web.CardLayoutView{NodeHref: "/fleet/" + string(n.ID), Node: n.Name, Card: fmt.Sprintf("GPU %d", d.Index), Model: cardName(d),
		Action: cardLayoutHref(n.ID, d.UUID), Now: deviceBar(n.Name, d), NowText: "Its slices are made as they are asked for."}
	if len(d.Layout) > 0 {
		v.NowText = "Divided into " + profileCounts(d.Layout) + "; it is sold in these only."
	}
	if !planned {
		for _, p := range d.Layout {
			wanted = append(wanted, p.Profile)
		}
	}
	for _, p := range d.Facts.Sold() {
		if p.Name == gpu.Whole {
			continue
		}
		n, most := 0, d.Facts.CountFit(p, nil)
		for _, w := range wanted {
			if w == p.Name {
				n++
			}
		}
		v.Profiles = append(v.Profiles, web.ProfileCount{Name: p.Name, Field: "n-" + p.Name, Value: strconv.Itoa(n), Most: most,
			Hint: fmt.Sprintf("%s MiB, %d of %d compute slices, at most %d", thousands(int64(p.MemoryMiB)), p.ComputeSlices, d.Facts.ComputeSlices, most)})
	}
	if plan == nil {
		return v
	}
	then := emptyBar(d.Facts)
	var keep []gpu.Placement
	busy := 0
	for _, h := range plan.Keep {
		keep = append(keep, h.Placement)
		kind := web.KindReady
		if h.Holder != "" {
			kind, busy = web.KindOther, busy+1
		}
		then.Holds = append(then.Holds, holdOf(d.Facts, h.Placement, kind))
	}
	for _, p := range plan.Make {
		then.Holds = append(then.Holds, holdOf(d.Facts, p, web.KindReady))
	}
	p := web.CardPlan{Then: then, Profiles: strings.Join(wanted, " "), Button: "Divide it so",
		Nothing: len(plan.Remove)+len(plan.Make) == 0 && (len(plan.Layout) > 0) == (len(d.Layout) > 0)}
	p.Then.Label = "Afterwards: " + profileCounts(plan.Layout)
	if len(plan.Layout) == 0 {
		p.Button, p.Then.Label = "Sell it as is asked for", "Afterwards: "+profileCounts(keep)
	}
	if len(keep) > 0 {
		text := fmt.Sprintf("Keeps %d: %s", len(keep), profileCounts(keep))
		if busy > 0 {
			text += fmt.Sprintf(", %d of them in use", busy)
		}
		p.Steps = append(p.Steps, web.Consequence{Keep: true, Text: text + "."})
	}
	if len(plan.Remove) > 0 {
		p.Steps = append(p.Steps, web.Consequence{Text: fmt.Sprintf("Removes %d that nobody uses: %s.", len(plan.Remove), profileCounts(plan.Remove))})
	}
	if len(plan.Make) > 0 {
		p.Steps = append(p.Steps, web.Consequence{Keep: true, Text: fmt.Sprintf("Makes %d: %s.", len(plan.Make), profileCounts(plan.Make))})
	}
	v.Plan = &p
	return v
}

func cardLayoutHref(node models.NodeID, uuid string) string {
	return "/fleet/" + string(node) + "/devices/" + url.PathEscape(uuid) + "/layout"
}

// profileCounts writes "4 × 1g.10gb, 1 × 3g.40gb", in the order of the places.
func profileCounts(ps []gpu.Placement) string {
	counts, order := map[string]int{}, []string{}
	for _, p := range ps {
		if counts[p.Profile] == 0 {
			order = append(order, p.Profile)
		}
		counts[p.Profile]++
	}
	for i, name := range order {
		order[i] = fmt.Sprintf("%d × %s", counts[name], name)
	}
	if len(order) == 0 {
		return "nothing"
	}
	return strings.Join(order, ", ")
}
