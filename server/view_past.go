package server

import (
	"fmt"
	"strings"
	"time"

	"berth/fleet"
	"berth/models"
	"berth/web"
)

// pastPoints is how many steps of the past the server draws: a chart is no wider.
const pastPoints = 120

// rangeNames are the switch's words.
var rangeNames = map[string]string{"1h": "1 h", "24h": "24 h", "30d": "30 d"}

// rangeLinks is the switch of a page; current is the range shown, empty: live.
func rangeLinks(page, current string) []web.FilterLink {
	out := []web.FilterLink{{Label: "Live", Href: page, Current: current == ""}}
	for _, r := range fleet.Ranges {
		out = append(out, web.FilterLink{Label: rangeNames[r.Name], Href: page + "?range=" + r.Name, Current: current == r.Name})
	}
	return out
}

// pastView draws a history whose points script fetches from source.
func pastView(source string, of scale, h fleet.History) *web.Past {
	v := &web.Past{Source: source + "?range=" + h.Name, StepSeconds: int(h.Step / time.Second),
		Note: "mean, and from the lowest to the highest second of each " + stepName(h.Step)}
	if len(h.Points) == 0 {
		v.Empty = "Nothing was measured in this time."
		if h.Step == time.Minute {
			v.Empty += " What is measured now shows here when its first minute is over."
		}
		return v
	}
	drawn := h.Thin(pastPoints)
	for _, g := range of.gauges() {
		g.Left = rangeNames[h.Name] + " ago"
		fillPast(&g, drawn)
		v.Charts = append(v.Charts, g.Chart)
	}
	return v
}

func stepName(d time.Duration) string {
	switch d {
	case time.Minute:
		return "minute"
	case time.Hour:
		return "hour"
	}
	return fmt.Sprintf("%d minutes", d/time.Minute)
}

// fillPast puts in a point for each step, without a value where nothing was
// measured, and the mean of all.
func fillPast(g *gauge, h fleet.History) {
	at := make(map[models.Instant]models.Figures, len(h.Points))
	var all models.Figures
	for _, p := range h.Points {
		at[p.At] = g.past(p)
		all.Merge(g.past(p))
	}
	for t := h.From.Floor(h.Step); t < h.To; t = t.Add(h.Step) {
		x := min(1, max(0, float64(t.Add(h.Step/2).Sub(h.From))/float64(h.To.Sub(h.From))))
		point, reach := web.Point{X: x}, web.Reach{X: x}
		if f := figuresJSON(at[t], g.parts); f != nil {
			point.Y, reach.Low, reach.High = &f.Mean, &f.Min, &f.Max
		}
		g.Points, g.Band = append(g.Points, point), append(g.Band, reach)
	}
	if f := figuresJSON(all, g.parts); f != nil {
		g.Now = reading(f.Mean)
		g.Right, g.Peak, g.Top = "", reading(f.Max), max(g.Top, f.Max)
	}
	if g.Key == "memory_mib" { // its unit does not fit twice on a phone
		if g.Unit = " MiB"; g.Peak != "" {
			g.Peak, g.Right = "", "peak "+g.Peak
		}
	}
	if !strings.HasSuffix(g.Label, ", mean") {
		g.Label += ", mean"
	}
}
