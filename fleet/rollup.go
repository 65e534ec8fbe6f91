package fleet

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"berth/models"
	"berth/models/store"
)

const (
	// minuteDays is how long rollups of a minute are kept: they are drawn for a day,
	// and read for what happened last week. Beyond it there are those of an hour,
	// since a month has 43,200 minutes.
	minuteDays = 7
	// settled is how long after its end a minute is stored, so that the readings of
	// its last second are in.
	settled = 2 * time.Second
	// waitingMinutes is how many minutes of a subject wait for a database that is away.
	waitingMinutes = 60
	dropBatch      = 2000 // rows that one transaction deletes
	dropBatches    = 100  // in one go; what is left is deleted with the next minute
)

// rolling rolls up the samples of one subject, minute by minute. It must be used
// under the telemetry's lock.
type rolling struct {
	now   *models.Rollup  // the minute under way; nil: none
	ended []models.Rollup // not stored yet, oldest first
	upTo  models.Instant  // minutes that begin before it are given out, and take nothing more
}

// add takes in a sample. One of a minute that is over is late and counts no more.
func (r *rolling) add(s Sample) {
	minute := s.At.Floor(time.Minute)
	if minute < r.upTo || r.now != nil && minute < r.now.At {
		return
	}
	if r.now != nil && minute > r.now.At {
		r.end()
	}
	if r.now == nil {
		r.now = &models.Rollup{Step: models.Minute, At: minute}
	}
	r.now.Samples++
	tenths := func(f *models.Figures, v *float64) {
		if v != nil {
			f.Add(int64(math.Round(*v * 10)))
		}
	}
	tenths(&r.now.Utilization, s.UtilizationPercent)
	tenths(&r.now.Temperature, s.TemperatureC)
	tenths(&r.now.Power, s.PowerW)
	if s.MemoryMiB != nil {
		r.now.Memory.Add(*s.MemoryMiB)
	}
}

func (r *rolling) end() {
	if len(r.ended) == waitingMinutes {
		r.ended = r.ended[1:]
	}
	r.ended = append(r.ended, *r.now)
	r.now = nil
}

// before returns the minutes that begin before a moment. They take nothing more.
func (r *rolling) before(moment models.Instant) []models.Rollup {
	r.upTo = max(r.upTo, moment)
	if r.now != nil && r.now.At < moment {
		r.end()
	}
	return r.ended
}

func (r *rolling) waits() bool { return r.now != nil || len(r.ended) > 0 }

// ended returns all minutes that begin before a moment and are not stored.
func (t *telemetry) ended(moment models.Instant) (list []models.Rollup) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for subject, s := range t.keys {
		for _, r := range s.roll.before(moment) {
			r.Subject = string(subject)
			list = append(list, r)
		}
	}
	return list
}

// stored forgets the minutes that ended returned for the same moment.
func (t *telemetry) stored(moment models.Instant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.keys {
		n := 0
		for n < len(s.roll.ended) && s.roll.ended[n].At < moment {
			n++
		}
		s.roll.ended = s.roll.ended[n:]
		if n > 0 && len(s.roll.ended) == 0 {
			s.roll.ended = nil
		}
	}
}

// runHistory stores each minute once it is over, until ctx ends.
func (s *Service) runHistory(ctx context.Context) {
	for {
		now := models.At(time.Now())
		if err := s.RollUp(ctx, now); err != nil && ctx.Err() == nil {
			s.log.Error("store what was measured", "error", err)
		}
		next := now.Add(-settled).Floor(time.Minute).Add(time.Minute + settled)
		timer := time.NewTimer(next.Sub(now))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// RollUp stores the minutes that are over at a moment, all in one transaction, with
// the hours that they complete, then deletes what is too old in small ones. What
// cannot be stored is tried again with the next minute.
func (s *Service) RollUp(ctx context.Context, at models.Instant) error {
	over := at.Add(-settled).Floor(time.Minute)
	list := s.telemetry.ended(over)
	hour := over.Floor(time.Hour)
	s.mu.Lock()
	made := s.hours
	s.mu.Unlock()
	if len(list) > 0 || made < hour {
		err := s.st.InTx(ctx, func(tx *store.Tx) error {
			own, err := ownCards(tx, list)
			if err != nil {
				return err
			}
			if err := tx.PutRollups(own); err != nil {
				return err
			}
			return gatherHours(tx, made, hour)
		})
		if err != nil {
			return err
		}
		s.telemetry.stored(over)
		s.mu.Lock()
		s.hours = max(s.hours, hour)
		s.mu.Unlock()
	}
	days := func(n int) models.Instant { return at.Add(-time.Duration(n) * 24 * time.Hour) }
	return errors.Join(
		s.drop(ctx, func(tx *store.Tx) (int64, error) {
			return tx.DropRollups(models.Minute, days(min(minuteDays, s.cfg.HistoryDays)), dropBatch)
		}),
		s.drop(ctx, func(tx *store.Tx) (int64, error) {
			return tx.DropRollups(models.Hour, days(s.cfg.HistoryDays), dropBatch)
		}),
		s.drop(ctx, func(tx *store.Tx) (int64, error) {
			return tx.DropDeviceEvents(days(s.cfg.HistoryDays), dropBatch)
		}))
}

// cardHistory is the subject under which a card is stored: a card is known by its
// UUID, also when it moves to another node.
func cardHistory(uuid string) Subject { return Subject("card:" + uuid) }

// ownCards leaves out cards that are not those of the node that spoke of them.
func ownCards(tx *store.Tx, list []models.Rollup) ([]models.Rollup, error) {
	if len(list) == 0 {
		return nil, nil
	}
	devices, err := tx.Devices()
	if err != nil {
		return nil, err
	}
	of := make(map[Subject]string, len(devices))
	for _, d := range devices {
		of[OfCard(d.NodeID, d.UUID)] = d.UUID
	}
	own := make([]models.Rollup, 0, len(list))
	for _, r := range list {
		if strings.HasPrefix(r.Subject, "card:") {
			uuid, ok := of[Subject(r.Subject)]
			if !ok {
				continue
			}
			r.Subject = string(cardHistory(uuid))
		}
		own = append(own, r)
	}
	return own, nil
}

// gatherHours makes the hours from one moment to another out of their minutes. When
// it is not known where to begin, that is after the newest hour there is.
func gatherHours(tx *store.Tx, from, to models.Instant) error {
	if from == 0 {
		newest, err := tx.NewestRollup(models.Hour)
		if err != nil {
			return err
		}
		from = newest // made again: the portal may have ended before all of it was stored
	}
	if from >= to {
		return nil
	}
	return tx.GatherRollups(models.Minute, models.Hour, from, to)
}

// drop deletes batch after batch, each in a transaction of its own so that nobody
// waits long for it.
func (s *Service) drop(ctx context.Context, batch func(tx *store.Tx) (int64, error)) error {
	for range dropBatches {
		var n int64
		err := s.st.InTx(ctx, func(tx *store.Tx) (err error) {
			n, err = batch(tx)
			return err
		})
		if err != nil || n < dropBatch {
			return err
		}
	}
	return nil
}
