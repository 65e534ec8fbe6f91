package billing

import (
	"testing"
	"time"

	"berth/models"
)

// TestMonthsWithoutMidnight: where clocks go forward at midnight of the first, a
// month begins at one o'clock. Its border must lie in it, or cutting never ends.
func TestMonthsWithoutMidnight(t *testing.T) {
	for _, c := range []struct {
		zone  string
		month time.Time
		want  string // UTC
	}{
		{"America/Asuncion", time.Date(2017, 9, 15, 0, 0, 0, 0, time.UTC), "2017-10-01T04:00:00Z"},
		{"America/Sao_Paulo", time.Date(1987, 9, 15, 0, 0, 0, 0, time.UTC), "1987-10-01T03:00:00Z"},
		{"Europe/Budapest", time.Date(2026, 3, 15, 0, 0, 0, 0, time.UTC), "2026-03-31T22:00:00Z"},
		{"America/Havana", time.Date(2026, 10, 15, 0, 0, 0, 0, time.UTC), "2026-11-01T04:00:00Z"}, // midnight comes twice: the first
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		border := nextMonth(models.At(c.month), zone)
		if got := border.Time().Format(time.RFC3339); got != c.want {
			t.Errorf("%s: the month after %s begins %s, want %s", c.zone, c.month.Format(time.DateOnly), got, c.want)
		}
		if start := monthStart(border, zone); start != border {
			t.Errorf("%s: the border %s lies in the month from %s", c.zone, border.Time(), start.Time())
		}
		if start := monthStart(border-1, zone); start >= border {
			t.Errorf("%s: the last moment before %s lies in the month from %s", c.zone, border.Time(), start.Time())
		}
		if next := nextMonth(border, zone); next <= border {
			t.Errorf("%s: after %s comes %s", c.zone, border.Time(), next.Time())
		}
	}
}
