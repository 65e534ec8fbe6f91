package gpu

import (
	"slices"
	"strings"
	"testing"
)

// What ends work on a card, and what does not: a card that is quarantined for a
// program's mistake can be emptied by anybody who rents a part of it.
func TestXids(t *testing.T) {
	sick := []int{46, 48, 54, 62, 64, 74, 79, 95, 110, 119, 120, 136, 140, 143, 156, 158, 171, 172}
	well := []int{13, 31, 43, 45, 63, 68, 92, 94, 109, 0, 9999}
	for _, n := range slices.Concat(sick, well) {
		x := LookupXid(n)
		if x.Sick != slices.Contains(sick, n) || x.Number != n || x.Name == "" || x.Remedy == "" {
			t.Errorf("%+v", x)
		}
	}
	for i, x := range xids {
		if i > 0 && x.Number <= xids[i-1].Number {
			t.Errorf("Xid %d is out of order or there twice", x.Number)
		}
		if strings.Contains(x.Remedy, "program") && x.Sick {
			t.Errorf("%s, and yet the card is taken out of service", x)
		}
	}
}
