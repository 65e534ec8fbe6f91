package store_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"berth/models"
	"berth/models/store"
	"berth/models/store/storetest"
)

func TestRollups(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, s *store.Store) {
		hour := models.At(time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC))
		in := func(work func(tx *store.Tx) error) {
			t.Helper()
			if err := s.InTx(context.Background(), work); err != nil {
				t.Fatal(err)
			}
		}
		read := func(step models.Seconds, subject string, from, to models.Instant) (list []models.Rollup) {
			t.Helper()
			in(func(tx *store.Tx) (err error) { list, err = tx.Rollups(step, step, subject, from, to); return err })
			return list
		}
		var all []models.Rollup
		var wholeHour models.Rollup
		for i := range 120 {
			r := models.Rollup{Step: models.Minute, At: hour.Add(time.Duration(i) * time.Minute), Subject: "device:a", Samples: 60}
			if i%3 > 0 { // every third minute it could not be measured
				for range 60 {
					r.Utilization.Add(int64(i))
				}
			}
			r.Memory.Add(0) // a true zero is one
			all = append(all, r)
			if i < 60 {
				wholeHour.Merge(r)
			}
			r.Subject = "device:b"
			all = append(all, r)
		}
		in(func(tx *store.Tx) error { return tx.PutRollups(all) })

		got := read(models.Minute, "device:a", hour.Add(10*time.Minute), hour.Add(20*time.Minute))
		if len(got) != 10 || got[0].At != hour.Add(10*time.Minute) || got[9].At != hour.Add(19*time.Minute) {
			t.Fatalf("%d read", len(got))
		}
		if not, zero := got[2].Utilization, got[2].Memory; not.Count != 0 || not.Min != nil || not.Max != nil || not.Sum != nil || zero.Sum == nil || *zero.Sum != 0 {
			t.Errorf("not measured: %+v, a zero: %+v", not, zero)
		}
		if u := got[1].Utilization; u.Count != 60 || *u.Min != 11 || *u.Max != 11 || *u.Sum != 660 {
			t.Errorf("%+v", u)
		}

		var want models.Rollup
		for _, r := range read(models.Minute, "device:a", hour.Add(5*time.Minute), hour.Add(10*time.Minute)) {
			want.Merge(r)
		}
		in(func(tx *store.Tx) error {
			five, err := tx.Rollups(models.Minute, 5*models.Minute, "device:a", hour, hour.Add(time.Hour))
			want.Step, want.At, want.Subject = 5*models.Minute, hour.Add(5*time.Minute), "device:a"
			if len(five) != 12 || !reflect.DeepEqual(five[1], want) {
				t.Errorf("%d of five minutes, the second %+v, want %+v", len(five), five[1], want)
			}
			return err
		})

		// The same again changes nothing, fewer samples do not replace more, more do.
		less, more := all[0], all[2]
		less.Samples, more.Samples = 20, 61
		in(func(tx *store.Tx) error { return tx.PutRollups([]models.Rollup{less, more}) })
		in(func(tx *store.Tx) error { return tx.PutRollups(all[4:]) })
		if got := read(models.Minute, "device:a", hour, hour.Add(3*time.Minute)); got[0].Samples != 60 || got[1].Samples != 61 || got[2].Samples != 60 {
			t.Errorf("%d, %d, %d samples", got[0].Samples, got[1].Samples, got[2].Samples)
		}

		// An hour gathered is the minutes merged, however often it is gathered.
		for range 2 {
			in(func(tx *store.Tx) error {
				return tx.GatherRollups(models.Minute, models.Hour, hour, hour.Add(time.Hour))
			})
		}
		wholeHour.Step, wholeHour.At, wholeHour.Subject, wholeHour.Samples = models.Hour, hour, "device:a", 60*60+1
		if got := read(models.Hour, "device:a", hour, hour.Add(2*time.Hour)); !reflect.DeepEqual(got, []models.Rollup{wholeHour}) {
			t.Errorf("gathered %+v\nmerged   %+v", got, wholeHour)
		}
		in(func(tx *store.Tx) error {
			at, err := tx.NewestRollup(models.Hour)
			if at != hour {
				t.Errorf("newest hour %v", at.Time())
			}
			return err
		})

		// Old ones go a batch at a time, oldest first, of their step only.
		var dropped []int64
		for n := int64(1); n > 0; {
			in(func(tx *store.Tx) (err error) {
				n, err = tx.DropRollups(models.Minute, hour.Add(time.Hour), 70)
				return err
			})
			dropped = append(dropped, n)
		}
		if !reflect.DeepEqual(dropped, []int64{70, 50, 0}) {
			t.Errorf("dropped %v", dropped)
		}
		if a, h := read(models.Minute, "device:a", hour, hour.Add(2*time.Hour)), read(models.Hour, "device:b", hour, hour.Add(time.Hour)); len(a) != 60 || len(h) != 1 {
			t.Errorf("%d minutes and %d hours are left", len(a), len(h))
		}
	})
}
