package web

import (
	"fmt"
	"strconv"
)

// look says what a bar looks like, whatever card it is.
func (b SliceBar) look() string {
	b.Label = ""
	return fmt.Sprint(b)
}

// differentBars are the bars of all cards, each look once, and where it stands.
func differentBars(nodes []NodeRack) (bars []SliceBar, at map[string]int) {
	at = map[string]int{}
	for _, n := range nodes {
		for _, d := range n.Devices {
			look := d.Bar.look()
			if _, ok := at[look]; !ok {
				at[look] = len(bars)
				bars = append(bars, d.Bar)
			}
		}
	}
	return bars, at
}

func count(n int) string { return strconv.Itoa(n) }

// ladderStatus is how a step of the runtime ladder is drawn, and its word.
func (s LadderStep) status() (StepStatus, string) {
	switch {
	case s.Chosen:
		return StepDone, "In use"
	case s.Tried:
		return StepFailed, "Not possible here"
	}
	return StepTodo, "Not needed"
}
