package shim

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestMeterReadings(t *testing.T) {
	const s = time.Second
	for name, tc := range map[string]struct {
		do   func(m *meter)
		at   time.Duration
		want int64
	}{
		"not begun":                {func(m *meter) {}, 100 * s, 0},
		"rounds down":              {func(m *meter) { m.begin(5 * s) }, 7*s - 1, 1},
		"full seconds":             {func(m *meter) { m.begin(5 * s) }, 7 * s, 2},
		"second begin ignored":     {func(m *meter) { m.begin(5 * s); m.begin(6 * s) }, 8 * s, 3},
		"frozen stays":             {func(m *meter) { m.begin(0); m.freeze(3 * s) }, 100 * s, 3},
		"frozen before it began":   {func(m *meter) { m.freeze(3 * s); m.begin(4 * s) }, 100 * s, 0},
		"never above the limit":    {func(m *meter) { m.setLimit(0, 10); m.begin(0) }, 100 * s, 10},
		"late at the limit":        {func(m *meter) { m.setLimit(0, 10); m.begin(0); m.freeze(12 * s) }, 100 * s, 10},
		"limit cannot take back":   {func(m *meter) { m.begin(0); m.setLimit(20*s, 10) }, 100 * s, 20},
		"limit moves on":           {func(m *meter) { m.setLimit(0, 10); m.begin(0); m.setLimit(9*s, 50) }, 40 * s, 40},
		"zero limit changes none":  {func(m *meter) { m.setLimit(0, 10); m.begin(0); m.setLimit(5*s, 0) }, 100 * s, 10},
		"limit after the end does": {func(m *meter) { m.begin(0); m.freeze(5 * s); m.setLimit(6*s, 50) }, 100 * s, 5},
	} {
		t.Run(name, func(t *testing.T) {
			var m meter
			tc.do(&m)
			if got := m.seconds(tc.at); got != tc.want {
				t.Errorf("%d seconds, want %d", got, tc.want)
			}
		})
	}
}

// Whatever happens in whatever order, a reading never falls and never passes the
// limit in force, and the limit is hit on the dot.
func TestMeterNeverFalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m meter
		var now time.Duration
		var last int64
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now += time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "pause"))
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				m.begin(now)
			case 1:
				m.setLimit(now, rapid.Int64Range(-5, 200).Draw(t, "limit"))
			case 2:
				if rapid.IntRange(0, 9).Draw(t, "end") == 0 {
					m.freeze(now)
				}
			}
			got := m.seconds(now)
			if got < last {
				t.Fatalf("it fell from %d to %d", last, got)
			}
			if m.limit > 0 && got > m.limit {
				t.Fatalf("%d seconds with a limit of %d", got, m.limit)
			}
			if left, ok := m.left(now); ok {
				if at := m.seconds(now + left); at != m.limit {
					t.Fatalf("after the time left it reads %d, not %d", at, m.limit)
				}
			}
			last = got
		}
	})
}
