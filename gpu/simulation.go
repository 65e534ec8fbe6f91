package gpu

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrSimulation says that a list of cards to simulate cannot be read.
var ErrSimulation = errors.New("cannot read the cards to simulate")

// maxSimulated is the most cards of one model on a simulated host.
const maxSimulated = 64

// ModelCount is a number of cards of one model.
type ModelCount struct {
	Model ModelID
	Count int
}

// ParseSimulation reads "a100-80gb:2,h100-80gb:1,rtx4090": models with their
// numbers, 1 where none is given, in that order. It fails with ErrSimulation.
func ParseSimulation(s string) ([]ModelCount, error) {
	var counts []ModelCount
	seen := map[ModelID]bool{}
	for _, part := range strings.Split(s, ",") {
		name, number, given := strings.Cut(strings.TrimSpace(part), ":")
		if name == "" {
			return nil, fmt.Errorf("%w %q: write model:number, such as a100-80gb:2,rtx4090:1", ErrSimulation, s)
		}
		m, err := Lookup(ModelID(name))
		if err != nil {
			return nil, fmt.Errorf("%w %q: %w", ErrSimulation, s, err)
		}
		if seen[m.ID] {
			return nil, fmt.Errorf("%w %q: %s is named twice; add the numbers up", ErrSimulation, s, m.ID)
		}
		seen[m.ID] = true
		n := 1
		if given {
			if n, err = strconv.Atoi(number); err != nil || n < 1 || n > maxSimulated {
				return nil, fmt.Errorf("%w %q: the number of %s is %q; use 1 to %d", ErrSimulation, s, m.ID, number, maxSimulated)
			}
		}
		counts = append(counts, ModelCount{Model: m.ID, Count: n})
	}
	return counts, nil
}
