package web

// Measured is the part of a page with the charts: live, or of the past.
type Measured struct {
	// Ranges lead to the live charts and to those of the past; none: no switch.
	Ranges []FilterLink
	// Live holds the live charts; nil when there is nothing to measure now.
	Live *Live
	// LiveNote stands in place of the charts: "starts with the instance". Loading
	// draws the charts' places as being on their way.
	LiveNote string
	Loading  bool
	// Past takes the place of all of these.
	Past *Past
}

// Past are charts of the past, drawn here from fewer points than there are. Script
// fetches all of them from Source, anew every StepSeconds.
type Past struct {
	Source      string
	StepSeconds int
	// Note says what is drawn: "each point is 5 minutes".
	Note string
	// Empty is said in place of charts when there is nothing yet.
	Empty  string
	Charts []Chart
}

// Live are the live charts. Script opens a WebSocket at Socket?after=SEQ and gets
// one JSON object a second; after=0 asks for all that is kept. Without script the
// charts stand as drawn.
type Live struct {
	Socket string
	// Window is "15 minutes are kept"; WindowSeconds the same for script.
	Window        string
	WindowSeconds int
	Charts        []Chart
}

// Chart is one of the small charts.
type Chart struct {
	// Key is the field of the live message and of the history: utilization_percent,
	// memory_mib, temperature_c or power_w.
	Key, Label string
	// Now and Unit are the newest reading, or the mean of the past: "87", " %". Now
	// empty: not measurable.
	Now, Unit string
	// Top is the value at the upper edge. Limit, when not 0, is a dashed line.
	Top, Limit float64
	// Points are the readings of the window, or the means of each step, oldest first.
	Points []Point
	// Band is drawn of the past: the lowest and highest of each step.
	Band []Reach
	// Left stands under the left end: "−15 min".
	Left string
	// Peak is the highest reading of the window, without its unit; script keeps it
	// up. Right stands under the right end when there is no Peak: "limit 87 °C".
	Peak, Right string
}

// Point is one reading. X runs from 0 (window's begin) to 1 (now).
type Point struct {
	X float64
	// Y is nil when it was not measured: the line has a gap there.
	Y *float64
}

// Reach is from where to where readings went at X. Nil: not measured.
type Reach struct {
	X         float64
	Low, High *float64
}
