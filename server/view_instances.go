package server

import (
	"fmt"
	"strings"

	"berth/fleet"
	"berth/gpu"
	"berth/models"
	"berth/money"
	"berth/web"
)

// instanceShows are the filters of the list.
var instanceShows = []struct {
	id, label string
	states    []models.InstanceState // empty: all but terminated
}{
	{"", "Current", nil},
	{"active", "Active", []models.InstanceState{models.Placing, models.Pulling, models.Starting, models.Running, models.Stopping, models.Lost}},
	{"terminated", "Terminated", []models.InstanceState{models.Terminated}},
}

// showOf finds a filter by id; an unknown one is the first.
func showOf(id string) (index int, f fleet.InstanceFilter) {
	for i, s := range instanceShows {
		if s.id == id {
			return i, fleet.InstanceFilter{States: s.states}
		}
	}
	return 0, fleet.InstanceFilter{}
}

// instancesFacts is what the portal knows when it draws the list.
type instancesFacts struct {
	list        []fleet.InstanceView
	counts      map[models.InstanceState]int
	charged     map[models.InstanceID]money.Amount
	utilization map[models.InstanceID]float64 // measured in the last seconds
	burn        money.Rate
	at          models.Instant
	allowed     bool // the role may stop
}

// instancesView draws the list under the filter with the given index.
func instancesView(c money.Currency, show int, k instancesFacts) web.InstancesView {
	v := web.InstancesView{Summary: "None yet."}
	total := 0
	for _, n := range k.counts {
		total += n
	}
	v.Any = total > 0
	if v.Any {
		v.Summary = summarize(k.counts)
	}
	if k.burn > 0 {
		v.Burn = perHour(c, k.burn) + " per hour"
	}
	for i, s := range instanceShows {
		n := 0
		for state, many := range k.counts {
			if len(s.states) == 0 && state != models.Terminated || contains(s.states, state) {
				n += many
			}
		}
		href := "/instances"
		if s.id != "" {
			href += "?show=" + s.id
		}
		link := web.FilterLink{Label: s.label + " " + thousands(int64(n)), Href: href, Current: i == show}
		v.Filters = append(v.Filters, link)
		if n > 0 && i != show && v.Elsewhere.Href == "" {
			v.Elsewhere = link
		}
	}
	for _, in := range k.list {
		v.Rows = append(v.Rows, instanceRow(c, in, k))
	}
	return v
}

func contains(states []models.InstanceState, s models.InstanceState) bool {
	for _, other := range states {
		if other == s {
			return true
		}
	}
	return false
}

// summarize says how many are in which state: "3 running, 1 starting."
func summarize(counts map[models.InstanceState]int) string {
	starting := counts[models.Queued] + counts[models.Placing] + counts[models.Pulling] + counts[models.Starting]
	var parts []string
	for _, p := range []struct {
		n    int
		word string
	}{{counts[models.Running], "running"}, {starting, "starting"}, {counts[models.Stopping], "stopping"}, {counts[models.Failed], "failed"},
		{counts[models.Lost], "lost"}, {counts[models.Interrupted], "interrupted"}, {counts[models.Stopped], "stopped"}} {
		if p.n > 0 {
			parts = append(parts, thousands(int64(p.n))+" "+p.word)
		}
	}
	if len(parts) == 0 {
		return "None now."
	}
	return strings.Join(parts, ", ") + "."
}

func instanceRow(c money.Currency, in fleet.InstanceView, k instancesFacts) web.InstanceRow {
	row := web.InstanceRow{ID: string(in.ID), Name: in.Name, SKU: skuName(in.SKU), Billing: billingName(in.BillingMode),
		Utilization: "–", Rate: c.Format(0), Run: "–", Cost: c.FormatSmall(k.charged[in.ID]), CanStop: k.allowed && in.State.Can(models.StopAsked)}
	row.State, row.Tone = stateView(in.Instance)
	row.Bar = rowBar(in)
	if len(in.Slices) > 0 {
		row.Where = whereOf(in, " · ")
		if in.Simulated {
			row.Where += " · simulated"
		}
	}
	if in.State == models.Failed || in.State == models.Lost {
		row.Note, _, _ = strings.Cut(in.Detail, ". ") // the page has all of it
		row.Note = strings.TrimSuffix(row.Note, ".")
	}
	if u, ok := k.utilization[in.ID]; ok && in.State == models.Running {
		row.Utilization = fmt.Sprintf("%.0f %%", u)
	}
	if in.State == models.Running {
		row.Live = true
		row.Rate = perHour(c, in.PricePerHour)
	}
	if in.Span.ID != "" {
		row.Run = roughly(ranFor(in, k.at))
	}
	return row
}

// ranFor is how long the present run has been usable, in whole seconds: what the
// meter has accepted, and while it runs the time since then too.
func ranFor(in fleet.InstanceView, at models.Instant) int64 {
	seconds := in.Span.Cursor
	if in.State == models.Running && in.Span.State == models.SpanRunning {
		seconds = max(seconds, int64(at.Sub(in.Span.StartAt).Seconds()))
	}
	return seconds
}

// rowBar is the small picture of what an instance holds: its first card.
func rowBar(in fleet.InstanceView) web.SliceBar {
	bar := web.SliceBar{Label: "Holds nothing"}
	if sku, err := gpu.ParseSKU(in.SKU); err == nil {
		if m, _, err := sku.Slice(); err == nil {
			bar = emptyBar(m)
			bar.Label = "Holds nothing"
		}
	}
	if len(in.Slices) > 0 && in.Slices[0].Model.ID != "" {
		s := in.Slices[0]
		bar = cardBar(s.Model, []gpu.Placement{s.Placement()}, web.KindYours, s.Others)
	}
	bar.Tall = true
	return bar
}

// whereOf is the node and cards of an instance: "kestrel, GPU 3".
func whereOf(in fleet.InstanceView, sep string) string {
	where := in.NodeName
	for i, s := range in.Slices {
		if i == 0 {
			where += fmt.Sprintf("%sGPU %d", sep, s.Device.Index)
			continue
		}
		where += fmt.Sprintf(", %d", s.Device.Index)
	}
	return where
}
