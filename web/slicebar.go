package web

import (
	"strconv"
	"strings"
)

// The picture's measures, in its own units: it is 560 wide whatever the card.
const barWidth = 560.0

// measure are the heights and roundings of one of the two forms of a bar.
type measure struct {
	memory, neck, compute float64 // deck, slant between the decks, keel
	gap                   float64 // between two hulls
	corner                float64
	patterns              string // suffix of the coarser patterns
}

var (
	flatBar = measure{memory: 36, neck: 12, compute: 22, gap: 3, corner: 4}
	tallBar = measure{memory: 58, neck: 14, compute: 34, gap: 4.8, corner: 7, patterns: "-t"}
)

func (b SliceBar) measure() measure {
	if b.Tall {
		return tallBar
	}
	return flatBar
}

func (m measure) height() float64 { return m.memory + m.neck + m.compute }

// barShape is one element of the picture: a rectangle when Path is empty.
type barShape struct {
	Class, Fill         string
	Path                string
	X, Y, Width, Height string
	Radius              string
}

// viewBox leaves one unit above and below for the edges' strokes.
func (b SliceBar) viewBox() string {
	return "0 -1 560 " + num(b.measure().height()+2)
}

// shapes lays the bar out: free cells where no hull is, then a hull for each hold
// with the marks of the slices it spans.
func (b SliceBar) shapes() []barShape {
	m := b.measure()
	if b.Memory == 0 || b.Compute == 0 {
		s := barShape{Class: "cell", X: num(m.gap / 2), Y: "0", Width: num(barWidth - m.gap), Height: num(m.height()), Radius: num(m.corner)}
		if len(b.Holds) > 0 {
			s.Class, s.Fill = hullClass(b.Holds[0].Kind, m)
		}
		return []barShape{s}
	}
	var out []barShape
	out = append(out, freeCells(m, b.Memory, 0, m.memory, func(i int) bool {
		for _, h := range b.Holds {
			if i >= h.Start && i < h.Start+h.Size {
				return true
			}
		}
		return false
	})...)
	out = append(out, freeCells(m, b.Compute, m.memory+m.neck, m.compute, func(i int) bool {
		for _, h := range b.Holds {
			if s := b.computeStart(h); i >= s && i < s+h.Compute {
				return true
			}
		}
		return false
	})...)
	for _, h := range b.Holds {
		out = append(out, b.hull(h, m)...)
	}
	return out
}

func freeCells(m measure, count int, y, height float64, taken func(int) bool) []barShape {
	var out []barShape
	width := barWidth / float64(count)
	for i := range count {
		if taken(i) {
			continue
		}
		out = append(out, barShape{Class: "cell", X: num(width*float64(i) + m.gap/2), Y: num(y), Width: num(width - m.gap), Height: num(height), Radius: num(m.corner / 2)})
	}
	return out
}

// computeStart is where a hold's compute slices are drawn: at the index of its
// memory, or as far right as they fit.
func (b SliceBar) computeStart(h Hold) int {
	return max(0, min(h.Start, b.Compute-h.Compute))
}

// hull is one holder's outline: its memory span above, slanting over the neck to
// its compute span below; and the marks between its slices.
func (b SliceBar) hull(h Hold, m measure) []barShape {
	mw, cw := barWidth/float64(b.Memory), barWidth/float64(b.Compute)
	cs := b.computeStart(h)
	x1, x2 := mw*float64(h.Start)+m.gap/2, mw*float64(h.Start+h.Size)-m.gap/2
	a, z := cw*float64(cs)+m.gap/2, cw*float64(cs+h.Compute)-m.gap/2
	y1, y2, bottom, c := m.memory, m.memory+m.neck, m.height(), m.corner

	var d strings.Builder
	put := func(letter string, values ...float64) {
		d.WriteString(letter)
		for i, v := range values {
			if i > 0 {
				d.WriteByte(' ')
			}
			d.WriteString(num(v))
		}
	}
	put("M", x1+c, 0)
	put("H", x2-c)
	put("Q", x2, 0, x2, c)
	put("V", y1)
	put("L", z, y2)
	put("V", bottom-c)
	put("Q", z, bottom, z-c, bottom)
	put("H", a+c)
	put("Q", a, bottom, a, bottom-c)
	put("V", y2)
	put("L", x1, y1)
	put("V", c)
	put("Q", x1, 0, x1+c, 0)
	d.WriteByte('Z')
	class, fill := hullClass(h.Kind, m)
	out := []barShape{{Class: class, Fill: fill, Path: d.String()}}

	if b.Tall && (h.Kind == KindSpot || h.Kind == KindReserved || h.Kind == KindYoursSpot) {
		return out // marks would be lost in the coarse pattern
	}
	d.Reset()
	for i := h.Start + 1; i < h.Start+h.Size; i++ {
		put("M", mw*float64(i), 5)
		put("V", m.memory-2)
	}
	for i := cs + 1; i < cs+h.Compute; i++ {
		put("M", cw*float64(i), y2+2)
		put("V", bottom-5)
	}
	if d.Len() > 0 {
		class := "div"
		if h.Kind == KindGhost || h.Kind == KindReady {
			class = "gdiv"
		}
		out = append(out, barShape{Class: class, Path: d.String()})
	}
	return out
}

func hullClass(k Kind, m measure) (class, fill string) {
	switch k {
	case KindYours:
		return "hull h-you", ""
	case KindGhost, KindReady:
		return "ghost", ""
	}
	return "hull", "url(#p-" + string(k) + m.patterns + ")"
}

// legendText says what each kind means. The order is that of a legend.
var legendOrder = []struct {
	kind Kind
	text string
}{
	{KindGhost, "Where it will land"},
	{KindYours, "Yours"},
	{KindYoursSpot, "Yours, on spot"},
	{KindOther, "Other instances"},
	{KindSpot, "Spot, can be reclaimed"},
	{KindReserved, "Reserved"},
	{KindReady, "Lies ready"},
	{KindFree, "Free"},
	{KindFault, "Faulted"},
}

// legendOf returns the kinds that bars show, free included where one has free
// slices, in the legend's order.
func legendOf(bars ...SliceBar) []Kind {
	shown := map[Kind]bool{}
	for _, b := range bars {
		for _, h := range b.Holds {
			shown[h.Kind] = true
		}
		for _, s := range b.shapes() {
			if s.Class == "cell" {
				shown[KindFree] = true
			}
		}
	}
	var out []Kind
	for _, l := range legendOrder {
		if shown[l.kind] {
			out = append(out, l.kind)
		}
	}
	return out
}

func legendText(k Kind) string {
	for _, l := range legendOrder {
		if l.kind == k {
			return l.text
		}
	}
	return string(k)
}

// num writes a number for SVG: at most two digits after the point, no trailing zeros.
func num(v float64) string {
	s := strconv.FormatFloat(v, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}
