package fleet

import (
	"context"
	"slices"
	"time"

	"berth/models"
	"berth/models/store"
)

// Range is how far back a history goes, and how far apart its points are.
type Range struct {
	Name string
	Span time.Duration
	Step time.Duration
}

// Ranges are those that can be asked for, the shortest first.
var Ranges = []Range{
	{"1h", time.Hour, time.Minute},
	{"24h", 24 * time.Hour, 5 * time.Minute},
	{"30d", 30 * 24 * time.Hour, time.Hour},
}

// LookupRange finds a range by its name. It fails with Invalid.
func LookupRange(name string) (Range, error) {
	for _, r := range Ranges {
		if r.Name == name {
			return r, nil
		}
	}
	return Range{}, models.Fieldset{"range": "Ask for 1h, 24h or 30d."}.Problem()
}

// History is what was measured of one subject: a point for each step with samples,
// oldest first. Where there is none, nothing was heard.
type History struct {
	Range
	From, To models.Instant // To is the end of the newest step
	Points   []models.Rollup
}

// InstanceHistory is that of an instance over all its runs. It fails with NotFound,
// also when it is another account's.
func (s *Service) InstanceHistory(ctx context.Context, account models.AccountID, id models.InstanceID, r Range, at models.Instant) (h History, err error) {
	err = s.st.View(ctx, func(tx *store.Tx) error {
		in, err := tx.Instance(id)
		if err == nil && in.AccountID != account {
			err = models.Missing("instance", id)
		}
		if err != nil {
			return err
		}
		h, err = s.history(tx, OfInstance(id), r, at)
		return err
	})
	return h, err
}

// CardHistory is that of a whole card, on whatever node it was. It fails with NotFound.
func (s *Service) CardHistory(ctx context.Context, uuid string, r Range, at models.Instant) (h History, err error) {
	err = s.st.View(ctx, func(tx *store.Tx) error {
		if _, err := tx.Device(uuid); err != nil {
			return err
		}
		h, err = s.history(tx, cardHistory(uuid), r, at)
		return err
	})
	return h, err
}

// NodeHistory is that of all cards of a node together, see OfNode. It fails with
// NotFound.
func (s *Service) NodeHistory(ctx context.Context, id models.NodeID, r Range, at models.Instant) (h History, err error) {
	err = s.st.View(ctx, func(tx *store.Tx) error {
		if _, err := tx.Node(id); err != nil {
			return err
		}
		h, err = s.history(tx, OfNode(id), r, at)
		return err
	})
	return h, err
}

// history reads a day or less from the minutes, and more from the hours, with the
// minutes of those that are not made yet.
func (s *Service) history(tx *store.Tx, of Subject, r Range, at models.Instant) (History, error) {
	h := History{Range: r, To: at.Floor(r.Step).Add(r.Step)}
	h.From = h.To.Add(-r.Span)
	minutes, step := h.From, models.Seconds(r.Step/time.Second)
	var list []models.Rollup
	if r.Step >= models.Hour.Duration() {
		newest, err := tx.NewestRollup(models.Hour)
		if err != nil {
			return h, err
		}
		minutes = max(minutes, newest.Add(models.Hour.Duration()))
		if list, err = tx.Rollups(models.Hour, step, string(of), h.From, minutes); err != nil {
			return h, err
		}
	}
	fine, err := tx.Rollups(models.Minute, step, string(of), max(minutes, at.Floor(time.Minute).Add(-minuteDays*24*time.Hour)), h.To)
	h.Points = coarsen(append(list, fine...), r.Step)
	return h, err
}

// Thin returns the history in at most so many steps, each a whole number of its
// own.
func (h History) Thin(most int) History {
	n := int(h.Span / h.Step)
	h.Step *= time.Duration((n + most - 1) / most)
	h.Points = coarsen(slices.Clone(h.Points), h.Step)
	return h
}

// coarsen merges rollups in order of time into steps.
func coarsen(list []models.Rollup, step time.Duration) (out []models.Rollup) {
	for _, r := range list {
		r.At, r.Step = r.At.Floor(step), models.Seconds(step/time.Second)
		if n := len(out); n > 0 && out[n-1].At == r.At {
			out[n-1].Merge(r)
		} else {
			out = append(out, r)
		}
	}
	return slices.Clip(out)
}
