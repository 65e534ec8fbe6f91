package web

import (
	"slices"
	"strings"
)

// The measures of a small chart's drawing, in its own units: readings run from the
// floor at 60 up to the top at 4.
const (
	chartWidth = 240.0
	chartTop   = 4.0
	chartFloor = 60.0
)

// run is a stretch of readings without a gap.
type chartRun struct {
	// Line is the polyline's points; Area closes it down to the floor.
	Line, Area string
}

// runs draws the readings: one stretch for each piece between gaps.
func (c Chart) runs() []chartRun {
	var out []chartRun
	var line strings.Builder
	var first, last string
	flush := func() {
		if line.Len() > 0 {
			l := line.String()
			out = append(out, chartRun{Line: l, Area: first + "," + num(chartFloor) + " " + l + " " + last + "," + num(chartFloor)})
		}
		line.Reset()
	}
	for _, p := range c.Points {
		if p.Y == nil {
			flush()
			continue
		}
		x := num(p.X * chartWidth)
		if line.Len() == 0 {
			first = x
		} else {
			line.WriteByte(' ')
		}
		last = x
		line.WriteString(x + "," + num(c.height(*p.Y)))
	}
	flush()
	return out
}

// areas draws the band: one outline for each piece between gaps. A piece of one
// point is as wide as half a step of 120.
func (c Chart) areas() (out []string) {
	var over, under []string
	flush := func() {
		if len(over) > 0 {
			slices.Reverse(under)
			out = append(out, strings.Join(append(over, under...), " "))
		}
		over, under = nil, nil
	}
	for i, b := range c.Band {
		if b.Low == nil || b.High == nil {
			flush()
			continue
		}
		xs := []float64{b.X * chartWidth}
		if len(over) == 0 && (i+1 == len(c.Band) || c.Band[i+1].Low == nil) {
			xs = []float64{xs[0] - .5, xs[0] + .5}
		}
		for _, x := range xs {
			over = append(over, num(x)+","+num(c.height(*b.High)))
			under = append(under, num(x)+","+num(c.height(*b.Low)))
		}
	}
	flush()
	return out
}

// scripts are the modules that go on with what is drawn.
func (m Measured) scripts() []string {
	if m.Past != nil {
		return []string{"history.js"}
	}
	return []string{"chart.js"}
}

// height is where a value stands, kept inside the drawing.
func (c Chart) height(v float64) float64 {
	if c.Top <= 0 {
		return chartFloor
	}
	share := min(1, max(0, v/c.Top))
	return chartFloor - share*(chartFloor-chartTop)
}

// reading is the newest reading in words, or the mean of the past.
func (c Chart) reading() string {
	if c.Now == "" {
		return "not measurable"
	}
	if len(c.Band) > 0 {
		return c.Now + c.Unit
	}
	return "now " + c.Now + c.Unit
}
