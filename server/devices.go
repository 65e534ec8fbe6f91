package server

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"berth/api"
	"berth/fleet"
	"berth/gpu"
	"berth/models"
	"berth/web"
)

// devicePage handles GET /fleet/{id}/devices/{uuid}.
func (s *Server) devicePage(c echo.Context) error {
	ctx, at := c.Request().Context(), models.At(s.now())
	if index, err := strconv.Atoi(c.Param("uuid")); err == nil {
		return s.cardByIndex(c, index)
	}
	card, err := s.fleet.Card(ctx, models.NodeID(c.Param("id")), c.Param("uuid"))
	if err != nil {
		return err
	}
	v := deviceView(card, at)
	page := cardHref(card.DeviceView)
	if r, ok := rangeOf(c); ok {
		h, err := s.fleet.CardHistory(ctx, card.UUID, r, at)
		if err != nil {
			return err
		}
		v.Past = pastView(api.Prefix+"/devices/"+url.PathEscape(card.UUID)+"/history", cardScale(card.DeviceView), h)
		v.Ranges = rangeLinks(page, r.Name)
	} else {
		v.Ranges = rangeLinks(page, "")
		v.Live = liveView(page+"/live", cardScale(card.DeviceView), s.recent(fleet.OfCard(card.NodeID, card.UUID), at), at)
	}
	if v.Layout, err = s.layout(c, v.Name+" of "+v.Node, web.NavFleet); err != nil {
		return err
	}
	return s.render(c, http.StatusOK, web.DevicePage(v))
}

// cardByIndex leads to the page of a card that is named by its number in the node,
// as the fleet page does.
func (s *Server) cardByIndex(c echo.Context, index int) error {
	n, _, err := s.fleet.Node(c.Request().Context(), models.NodeID(c.Param("id")))
	if err != nil {
		return err
	}
	for _, d := range n.Devices {
		if d.Index == index && d.State != models.DeviceAbsent || d.Index == index && len(d.Leases) > 0 {
			return c.Redirect(http.StatusSeeOther, cardHref(d))
		}
	}
	return models.Missing("device", index)
}

// recent are the samples that live charts show.
func (s *Server) recent(of fleet.Subject, at models.Instant) []fleet.Sample {
	return s.fleet.Samples(of, at.Add(-chartWindow).Time().Unix())
}

// deviceLive handles the WebSocket of a card's samples.
func (s *Server) deviceLive(c echo.Context) error {
	card, err := s.fleet.Card(c.Request().Context(), models.NodeID(c.Param("id")), c.Param("uuid"))
	if err != nil {
		return err
	}
	return s.watch(c, scene{of: []fleet.Subject{fleet.OfCard(card.NodeID, card.UUID)}}, afterOf(c))
}

// nodeLive handles the WebSocket of the samples of all cards of a node together.
func (s *Server) nodeLive(c echo.Context) error {
	n, _, err := s.fleet.Node(c.Request().Context(), models.NodeID(c.Param("id")))
	if err != nil {
		return err
	}
	return s.watch(c, scene{of: []fleet.Subject{fleet.OfNode(n.ID)}}, afterOf(c))
}

// fleetLive handles the WebSocket of what each card does now, of all nodes or of
// one.
func (s *Server) fleetLive(c echo.Context) error {
	of := fleet.Cards
	if id := c.QueryParam("node"); id != "" {
		of = fleet.CardsOf(models.NodeID(id))
	}
	return s.watch(c, scene{of: []fleet.Subject{of}, list: true}, 0)
}

// afterOf is the sequence number that a socket goes on after; absent or odd: from
// the oldest kept.
func afterOf(c echo.Context) int64 {
	after, _ := strconv.ParseInt(c.QueryParam("after"), 10, 64)
	return after
}

func cardHref(d fleet.DeviceView) string {
	return "/fleet/" + string(d.NodeID) + "/devices/" + url.PathEscape(d.UUID)
}

// deviceView draws one card in full, charts apart.
func deviceView(card fleet.CardView, at models.Instant) web.DeviceView {
	d := card.DeviceView
	drawn := nodeDevice(card.Node.Name, d, nil)
	v := web.DeviceView{NodeHref: "/fleet/" + string(d.NodeID), Node: card.Node.Name, Name: drawn.Name, Model: drawn.Model, UUID: d.UUID, State: drawn.State, Tone: drawn.Tone,
		Simulated: card.Node.HostInfo.Simulated, LayoutHref: drawn.LayoutHref, Part: drawn.Part}
	if need, ok := cardNeed(card.Node.Name, d); ok {
		need.Href = ""
		if x, ok := xidOf(d.Detail); ok {
			need.Next = x.Remedy + "; it is sold again when the driver reports it well."
		}
		v.Need = &need
	}
	v.Health = cardHealth(card, at)
	v.Facts = []web.Pair{{Term: "Memory", Value: thousands(int64(d.MemoryMiB)) + " MiB"}}
	if d.Facts.TDPWatt > 0 {
		v.Facts = append(v.Facts, web.Pair{Term: "Power limit", Value: fmt.Sprintf("%d W", d.Facts.TDPWatt)})
	}
	mig := "off"
	if d.MIG {
		mig = "on"
	}
	v.Facts = append(v.Facts, web.Pair{Term: "MIG mode", Value: mig}, web.Pair{Term: "Driver's name", Value: orDash(d.Name)}, web.Pair{Term: "NUMA node", Value: strconv.Itoa(d.NUMANode)})
	if drawn.Divided != "" {
		v.Facts = append(v.Facts, web.Pair{Term: "Divided into", Value: profileCounts(d.Layout)})
	}
	for _, l := range card.Past {
		row := web.CardLease{Instance: l.Instance.Name, Account: l.Account, Slice: fmt.Sprintf("%s@%d", l.Profile, l.Start), From: dayTime(l.CreatedAt, time.UTC), Until: "held"}
		if !d.Facts.Partitions() || l.Profile == gpu.Whole {
			row.Slice = "whole card"
		}
		if l.ReleasedAt != 0 {
			row.Until = "to " + dayTime(l.ReleasedAt, time.UTC)
		} else {
			row.State, _ = stateView(l.Instance)
		}
		v.Leases = append(v.Leases, row)
	}
	v.Events = cardEvents(card.Events, nil)
	return v
}

// cardHealth says how a card is and was.
func cardHealth(card fleet.CardView, at models.Instant) []web.Pair {
	out := []web.Pair{{Term: "State", Value: strings.TrimSuffix(deviceState(card.DeviceView), ".")}}
	if len(card.Events) > 0 {
		out = append(out, web.Pair{Term: "Since", Value: ago(card.Events[0].At, at, time.UTC)})
	}
	last := web.Pair{Term: "Last Xid", Value: "none noted"}
	for _, e := range card.Events {
		if x, ok := xidOf(e.Detail); ok {
			last.Value = fmt.Sprintf("%d, %s, %s", x.Number, x.Name, ago(e.At, at, time.UTC))
			break
		}
	}
	return append(out, last)
}

// xidOf reads which Xid a card's detail tells of.
func xidOf(detail string) (gpu.Xid, bool) {
	var n int
	if _, err := fmt.Sscanf(detail, "Xid %d", &n); err != nil {
		return gpu.Xid{}, false
	}
	return gpu.LookupXid(n), true
}

// cardEvents writes what became of cards. names are theirs by UUID, when there are
// several.
func cardEvents(list []models.DeviceEvent, names map[string]string) (out []web.Event) {
	for _, e := range list {
		w := web.Event{At: dayTime(e.At, time.UTC), DateTime: machineTime(e.At), Lead: "Healthy.", Text: "It is sold."}
		switch e.State {
		case models.DeviceAbsent:
			w.Lead, w.Text = "Absent.", e.Detail
		case models.DeviceSick:
			w.Lead, w.Text = "Not sold.", e.Detail
		}
		if name := names[e.DeviceUUID]; name != "" {
			w.Lead = name + ": " + strings.ToLower(w.Lead)
		}
		out = append(out, w)
	}
	return out
}
