package server

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"berth/fleet"
	"berth/gpu"
	"berth/web"
)

// The charts' widest window, and how many readings the server draws: script gets
// all of them, the drawing needs no more than it has pixels.
const (
	chartWindow = 15 * time.Minute
	chartPoints = 180
)

// chartSpans are the windows of a chart, so that a young instance's has no empty
// minutes. Script has the same.
var chartSpans = []time.Duration{time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, chartWindow}

// chartSpan is the narrowest window that shows all readings of the present run.
func chartSpan(k instanceFacts) time.Duration {
	for _, s := range k.samples {
		if s.Run != k.in.Run {
			continue
		}
		for _, span := range chartSpans {
			if k.at.Sub(s.At) <= span {
				return span
			}
		}
		return chartWindow
	}
	return chartSpans[0]
}

// liveView draws the last minutes of a running instance.
func liveView(k instanceFacts) *web.Live {
	memory, top, limit, slow := 0, 0.0, 0.0, 0.0
	whole, shared := true, false
	for _, s := range k.in.Slices {
		if whole = whole && s.Profile == gpu.Whole; gpu.IsShare(s.Profile) {
			shared = true
			memory += s.Model.MemoryMiB // nothing keeps it to its part
		} else {
			memory += s.MemoryMiB
		}
		top, slow = max(top, float64(s.Model.TDPWatt)), float64(s.Model.SlowdownC)
	}
	limit = top
	power := web.Chart{Key: "power_w", Label: "Power", Unit: " W", Top: max(100, top), Limit: limit, Right: fmt.Sprintf("limit %.0f W", limit)}
	if !whole || limit == 0 {
		power.Limit, power.Right = 0, "of the whole card only"
	}
	utilisation := web.Chart{Key: "utilization_percent", Label: "GPU utilisation", Unit: " %", Top: 100}
	used := web.Chart{Key: "memory_mib", Label: "Memory", Unit: fmt.Sprintf(" of %s MiB", thousands(int64(memory))), Top: float64(max(1, memory))}
	if shared {
		utilisation.Right = "of the whole card only"
		used.Label, used.Unit = "Memory of your programs", used.Unit+", shared"
	}
	temperature := web.Chart{Key: "temperature_c", Label: "Temperature", Unit: " °C", Top: 100, Limit: slow}
	if slow > 0 {
		temperature.Right = fmt.Sprintf("limit %.0f °C", slow)
	}
	charts := []struct {
		web.Chart
		read func(fleet.Sample) *float64
		peak bool
	}{
		{utilisation, func(s fleet.Sample) *float64 { return s.UtilizationPercent }, true},
		{used, func(s fleet.Sample) *float64 {
			if s.MemoryMiB == nil {
				return nil
			}
			v := float64(*s.MemoryMiB)
			return &v
		}, false},
		{temperature, func(s fleet.Sample) *float64 { return s.TemperatureC }, false},
		{power, func(s fleet.Sample) *float64 { return s.PowerW }, false},
	}
	live := &web.Live{Window: "15 minutes are kept", WindowSeconds: int(chartWindow / time.Second)}
	span := chartSpan(k)
	for _, ch := range charts {
		ch.Left = fmt.Sprintf("−%d min", span/time.Minute)
		top := fillChart(&ch.Chart, k, span, ch.read)
		if ch.peak {
			ch.Peak = "–"
			if top != nil {
				ch.Peak = reading(*top)
			}
		}
		live.Charts = append(live.Charts, ch.Chart)
	}
	return live
}

// fillChart puts the window's readings in, one per step of time, and the newest
// as a number. It returns the highest reading, nil without any.
func fillChart(ch *web.Chart, k instanceFacts, span time.Duration, read func(fleet.Sample) *float64) (peak *float64) {
	begin := k.at.Add(-span)
	steps := make([]*float64, chartPoints)
	for _, s := range k.samples {
		i := int(s.At.Sub(begin) * chartPoints / span)
		if i < 0 || i > chartPoints || s.Run != k.in.Run {
			continue
		}
		i = min(i, chartPoints-1)
		v := read(s)
		if v == nil {
			continue
		}
		if steps[i] == nil || *v > *steps[i] { // a spike shorter than a step stays visible
			steps[i] = v
		}
		if peak == nil || *v > *peak {
			peak = v
		}
	}
	if n := len(k.samples); n > 0 && k.at.Sub(k.samples[n-1].At) < freshFor*time.Second {
		if v := read(k.samples[n-1]); v != nil {
			ch.Now = reading(*v)
		}
	}
	measured := false
	for i, v := range steps {
		if v == nil && !measured {
			continue // nothing is drawn before the first reading
		}
		measured = true
		ch.Points = append(ch.Points, web.Point{X: float64(i+1) / chartPoints, Y: v})
	}
	return peak
}

// reading writes a number as script does: one decimal at most, none from 1000.
func reading(v float64) string {
	if v >= 1000 {
		return thousands(int64(math.Round(v)))
	}
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
}
