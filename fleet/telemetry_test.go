package fleet

import (
	"reflect"
	"sync"
	"testing"
	"time"

	"berth/models"
)

func TestRing(t *testing.T) {
	tel := newTelemetry()
	start := models.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	util, memory := 50.0, int64(7)
	for i := range KeptSamples + 50 {
		s := Sample{At: start.Add(time.Duration(i) * time.Second), Run: 3, Seconds: int64(i)}
		if i%2 == 0 {
			s.UtilizationPercent, s.MemoryMiB = &util, &memory
		}
		tel.take([]Reading{{Subject: "k", Sample: s}})
	}
	all := tel.samples("k", 0)
	if len(all) != KeptSamples || all[0].Seconds != 50 || all[KeptSamples-1].Seconds != KeptSamples+49 {
		t.Fatalf("%d kept, from second %d", len(all), all[0].Seconds)
	}
	for i, s := range all {
		if i > 0 && s.Seq != all[i-1].Seq+1 || s.Run != 3 {
			t.Fatalf("%+v after %+v", s, all[i-1])
		}
		if even := s.Seconds%2 == 0; (s.UtilizationPercent != nil) != even || (s.MemoryMiB != nil) != even || s.TemperatureC != nil || s.PowerW != nil {
			t.Fatalf("a reading was made up or lost: %+v", s)
		}
	}
	if got := tel.samples("k", all[KeptSamples-11].Seq); len(got) != 10 {
		t.Errorf("%d after the tenth last", len(got))
	}
	if got := tel.samples("other", 0); got != nil {
		t.Errorf("%v", got)
	}
	// A portal that begins anew numbers above what it numbered before.
	fresh := newTelemetry()
	fresh.take([]Reading{{Subject: "k", Sample: Sample{At: start.Add((KeptSamples + 50) * time.Second)}}})
	if got := fresh.samples("k", 0)[0].Seq; got <= all[KeptSamples-1].Seq {
		t.Errorf("numbers begin again at %d", got)
	}
	// Two in one second, or a clock that goes back, do not repeat a number.
	for range 3 {
		fresh.take([]Reading{{Subject: "k", Sample: Sample{At: start}}})
	}
	got := fresh.samples("k", 0)
	for i := 1; i < len(got); i++ {
		if got[i].Seq <= got[i-1].Seq {
			t.Errorf("%d after %d", got[i].Seq, got[i-1].Seq)
		}
	}
	tel.forget(start)
	if len(tel.samples("k", 0)) == 0 {
		t.Error("forgot what is new")
	}
	tel.forget(start.Add(time.Hour))
	if len(tel.samples("k", 0)) == 0 {
		t.Error("forgot a minute that is not stored")
	}
	tel.ended(start.Add(time.Hour))
	tel.stored(start.Add(time.Hour))
	tel.forget(start.Add(time.Hour))
	if len(tel.samples("k", 0)) != 0 {
		t.Error("kept what is old")
	}
}

// TestSubscribers: who subscribed gets each tick once, with all of it that they
// asked for and already kept, until they leave.
func TestSubscribers(t *testing.T) {
	tel := newTelemetry()
	at := models.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	var one, two, all [][]int64
	note := func(to *[][]int64) func([]Reading) {
		return func(list []Reading) {
			var seconds []int64
			for _, r := range list {
				if kept := tel.samples(r.Subject, r.Seq-1); len(kept) != 1 || kept[0].Seq != r.Seq {
					t.Errorf("published %d, kept %+v", r.Seq, kept)
				}
				seconds = append(seconds, r.Seconds)
			}
			*to = append(*to, seconds)
		}
	}
	tick := func(first int64, ids ...Subject) {
		var list []Reading
		for i, id := range ids {
			list = append(list, Reading{Subject: id, groups: []Subject{"all"}, Sample: Sample{At: at, Seconds: first + int64(i)}})
		}
		tel.take(list)
	}
	leaveOne := tel.subscribe([]Subject{"a"}, note(&one))
	defer tel.subscribe([]Subject{"all"}, note(&all))()
	leaveTwo := tel.subscribe([]Subject{"a", "b"}, note(&two))
	tick(1, "a", "b", "c")
	tick(4, "c")
	leaveOne()
	leaveOne()
	tick(5, "a")
	tel.forget(at.Add(time.Hour)) // not what is watched
	tick(6, "b", "a")
	leaveTwo()
	tick(8, "a", "b")
	if want := [][]int64{{1}}; !reflect.DeepEqual(one, want) {
		t.Errorf("%v, want %v", one, want)
	}
	if want := [][]int64{{1, 2}, {5}, {6, 7}}; !reflect.DeepEqual(two, want) {
		t.Errorf("%v, want %v", two, want)
	}
	if want := [][]int64{{1, 2, 3}, {4}, {5}, {6, 7}, {8, 9}}; !reflect.DeepEqual(all, want) {
		t.Errorf("of the group: %v, want %v", all, want)
	}
	tel.ended(at.Add(time.Hour))
	tel.stored(at.Add(time.Hour))
	tel.forget(at.Add(time.Hour))
	if len(tel.keys) != 1 {
		t.Error("a series that nobody reads is kept")
	}
}

// TestManyReadersAtOnce is for the race detector.
func TestManyReadersAtOnce(t *testing.T) {
	tel := newTelemetry()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				leave := tel.subscribe([]Subject{"k"}, func([]Reading) {})
				tel.samples("k", 0)
				leave()
			}
		})
	}
	wg.Go(func() {
		for i := range 500 {
			tel.take([]Reading{{Subject: "k", Sample: Sample{At: models.Instant(i) * 1e6}}})
		}
	})
	wg.Wait()
}
