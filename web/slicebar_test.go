package web

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSliceBars(t *testing.T) {
	for name, b := range map[string]SliceBar{
		"mixed":     mig("Mixed", other(0, 1, 1), yours(1, 1, 1), Hold{2, 2, 2, KindSpot}, Hold{4, 4, 3, KindReserved}),
		"landing":   mig("Landing", other(0, 4, 4), ghost(4, 4, 3)),
		"free":      mig("Free"),
		"whole-mig": mig("Whole", yours(0, 8, 7)),
		"uncut":     whole("Held", KindOther),
		"uncut-0":   whole("Free"),
		"tall":      tall(mig("Tall", other(0, 2, 2), Hold{2, 2, 2, KindSpot}, Hold{4, 4, 3, KindFault})),
		"a30":       {Label: "A30", Memory: 4, Compute: 4, Holds: []Hold{yours(2, 2, 2)}},
	} {
		t.Run(name, func(t *testing.T) { compare(t, "slicebar-"+name+".svg", golden(render(t, sliceBar(b)))) })
	}
}

// TestHullAsDesigned compares one hull with the drawing that the design gives for it.
func TestHullAsDesigned(t *testing.T) {
	b := mig("", yours(4, 4, 3))
	shapes := b.hull(b.Holds[0], flatBar)
	if want := "M285.5 0H554.5Q558.5 0 558.5 4V36L558.5 48V66Q558.5 70 554.5 70H325.5Q321.5 70 321.5 66V48L281.5 36V4Q281.5 0 285.5 0Z"; shapes[0].Path != want {
		t.Errorf("hull\n%s, want\n%s", shapes[0].Path, want)
	}
	if want := "M350 5V34M420 5V34M490 5V34M400 50V65M480 50V65"; shapes[1].Path != want {
		t.Errorf("marks %s, want %s", shapes[1].Path, want)
	}
}

// TestEverySliceIsDrawnOnce: a memory slice is either a free cell or inside a hull.
func TestEverySliceIsDrawnOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := SliceBar{Memory: rapid.IntRange(1, 8).Draw(t, "memory"), Compute: rapid.IntRange(1, 8).Draw(t, "compute"), Tall: rapid.Bool().Draw(t, "tall")}
		held := 0
		for start := 0; start < b.Memory; {
			size := rapid.IntRange(1, b.Memory-start).Draw(t, "size")
			if rapid.Bool().Draw(t, "held") {
				b.Holds = append(b.Holds, Hold{start, size, rapid.IntRange(1, b.Compute).Draw(t, "hold compute"), KindOther})
				held += size
			}
			start += size
		}
		cells, hulls := 0, 0
		for _, s := range b.shapes() {
			switch {
			case s.Class == "cell" && s.Y == "0":
				cells++
			case strings.HasPrefix(s.Class, "hull"):
				hulls++
			}
		}
		if cells != b.Memory-held || hulls != len(b.Holds) {
			t.Fatalf("%d free cells and %d hulls for %+v", cells, hulls, b)
		}
	})
}

func TestChartHasGaps(t *testing.T) {
	one, two := 1.0, 2.0
	c := Chart{Top: 2, Points: []Point{{0, &one}, {.25, &two}, {.5, nil}, {.75, &one}}}
	runs := c.runs()
	if len(runs) != 2 || runs[0].Line != "0,32 60,4" || runs[1].Line != "180,32" {
		t.Errorf("runs %+v", runs)
	}
	if got := (Chart{}).reading(); got != "not measurable" {
		t.Errorf("no reading is called %q", got)
	}
}
