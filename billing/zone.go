package billing

import (
	"fmt"
	"time"
	_ "time/tzdata" // the smallest images have no zone files, and months must not be cut wrong there

	"berth/models"
)

// zoneOf is the time zone that decides where an account's months are cut.
func zoneOf(a models.Account) (*time.Location, error) {
	zone, err := time.LoadLocation(a.TimeZone) // empty is UTC
	if err != nil {
		return nil, fmt.Errorf("account %s: %w; set its time zone to a name such as Europe/Budapest", a.ID, err)
	}
	return zone, nil
}

// monthStart is the first moment of the month that at lies in, in zone.
func monthStart(at models.Instant, zone *time.Location) models.Instant {
	t := at.Time().In(zone)
	return firstOf(t.Year(), t.Month(), zone)
}

// nextMonth is the first moment of the month after the one that at lies in.
func nextMonth(at models.Instant, zone *time.Location) models.Instant {
	t := at.Time().In(zone)
	return firstOf(t.Year(), t.Month()+1, zone)
}

// firstOf is the first moment of a month in zone. Where clocks go forward at that
// midnight there is none, and time.Date answers with an hour of the month before:
// then the month begins with the new time.
func firstOf(year int, month time.Month, zone *time.Location) models.Instant {
	t := time.Date(year, month, 1, 0, 0, 0, 0, zone)
	if t.Day() != 1 {
		_, t = t.ZoneBounds()
	}
	return models.At(t)
}

// secondsBetween is the number of whole seconds from start to at, 0 if none.
func secondsBetween(start, at models.Instant) int64 {
	return max(0, int64(at-start)/1_000_000)
}

// secondsUntil is how many of the seconds of a span that began at start begin
// before a moment: the distance in seconds, rounded up; 0 if none.
func secondsUntil(start, at models.Instant) int64 {
	if at <= start {
		return 0
	}
	return (int64(at-start) + 999_999) / 1_000_000
}

// monthCuts returns where the seconds (from, to] of a span that began at start
// are cut: at each border of a month in zone, and at to. A second belongs to the
// month in which it begins.
func monthCuts(start models.Instant, from, to int64, zone *time.Location) []int64 {
	var cuts []int64
	for border := nextMonth(after(start, from), zone); ; border = nextMonth(border, zone) {
		at := secondsUntil(start, border)
		if at >= to {
			return append(cuts, to)
		}
		if at > from {
			cuts = append(cuts, at)
		}
	}
}

// after is the moment seconds later.
func after(start models.Instant, seconds int64) models.Instant {
	return start + models.Instant(seconds*1_000_000)
}
