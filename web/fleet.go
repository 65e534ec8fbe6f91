package web

import "strconv"

func rackLegend(nodes []NodeRack) []Kind {
	var bars []SliceBar
	for _, n := range nodes {
		for _, d := range n.Devices {
			bars = append(bars, d.Bar)
		}
	}
	return legendOf(bars...)
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
