package server

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"berth/fleet"
	"berth/gpu"
	"berth/models"
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

// chartSpan is the narrowest window that shows all samples.
func chartSpan(samples []fleet.Sample, at models.Instant) time.Duration {
	if len(samples) == 0 {
		return chartSpans[0]
	}
	for _, span := range chartSpans {
		if at.Sub(samples[0].At) <= span {
			return span
		}
	}
	return chartWindow
}

// scale is what the charts of an instance, a card or a node reach up to.
type scale struct {
	memoryMiB int
	watt      float64 // the most that is drawn; 0: not known
	whole     bool    // all of a card, so that its power is the subject's own
	slowdown  float64 // °C; 0: not known
	sums      string  // what the figures are of, when it is several cards
	shared    bool    // in time with others: nothing keeps it to its part of the memory
}

func instanceScale(in fleet.InstanceView) scale {
	s := scale{whole: true}
	for _, l := range in.Slices {
		if s.whole = s.whole && l.Profile == gpu.Whole; gpu.IsShare(l.Profile) {
			s.shared = true
			s.memoryMiB += l.Model.MemoryMiB
		} else {
			s.memoryMiB += l.MemoryMiB
		}
		s.watt, s.slowdown = max(s.watt, float64(l.Model.TDPWatt)), float64(l.Model.SlowdownC)
	}
	return s
}

func cardScale(d fleet.DeviceView) scale {
	return scale{memoryMiB: d.MemoryMiB, watt: float64(d.Facts.TDPWatt), whole: true, slowdown: float64(d.Facts.SlowdownC)}
}

func nodeScale(n fleet.NodeView) scale {
	s := scale{whole: true}
	for _, d := range n.Devices {
		s.memoryMiB += d.MemoryMiB
		s.watt += float64(d.Facts.TDPWatt)
		if t := float64(d.Facts.SlowdownC); t > 0 && (s.slowdown == 0 || t < s.slowdown) {
			s.slowdown = t
		}
	}
	if len(n.Devices) > 1 {
		s.sums = "all cards"
	}
	return s
}

// gauge is one kind of reading: its chart, and where to read it.
type gauge struct {
	web.Chart
	live  func(fleet.Sample) *float64
	past  func(models.Rollup) models.Figures
	parts float64 // of the unit, that rollups are in
	peak  bool
}

func (s scale) gauges() []gauge {
	power := web.Chart{Key: "power_w", Label: "Power", Unit: " W", Top: max(100, s.watt), Limit: s.watt, Right: fmt.Sprintf("limit %s W", reading(s.watt))}
	if !s.whole || s.watt == 0 {
		power.Limit, power.Right = 0, "of the whole card only"
	}
	temperature := web.Chart{Key: "temperature_c", Label: "Temperature", Unit: " °C", Top: 100, Limit: s.slowdown}
	if s.slowdown > 0 {
		temperature.Right = fmt.Sprintf("limit %.0f °C", s.slowdown)
	}
	utilisation := web.Chart{Key: "utilization_percent", Label: "GPU utilisation", Unit: " %", Top: 100}
	memory := web.Chart{Key: "memory_mib", Label: "Memory", Unit: fmt.Sprintf(" of %s MiB", thousands(int64(s.memoryMiB))), Top: float64(max(1, s.memoryMiB))}
	if s.shared {
		utilisation.Right = "of the whole card only"
		memory.Label, memory.Unit = "Memory of your programs", memory.Unit+", shared"
	}
	if s.sums != "" {
		utilisation.Label, temperature.Label = "GPU utilisation, mean", "Temperature, hottest"
		memory.Right = s.sums
	}
	return []gauge{
		{utilisation, func(s fleet.Sample) *float64 { return s.UtilizationPercent }, func(r models.Rollup) models.Figures { return r.Utilization }, 10, true},
		{memory, func(s fleet.Sample) *float64 {
			if s.MemoryMiB == nil {
				return nil
			}
			v := float64(*s.MemoryMiB)
			return &v
		}, func(r models.Rollup) models.Figures { return r.Memory }, 1, false},
		{temperature, func(s fleet.Sample) *float64 { return s.TemperatureC }, func(r models.Rollup) models.Figures { return r.Temperature }, 10, false},
		{power, func(s fleet.Sample) *float64 { return s.PowerW }, func(r models.Rollup) models.Figures { return r.Power }, 10, false},
	}
}

// liveView draws the last minutes of a subject whose samples come from a socket.
func liveView(socket string, of scale, samples []fleet.Sample, at models.Instant) *web.Live {
	live := &web.Live{Socket: socket, Window: "15 minutes are kept", WindowSeconds: int(chartWindow / time.Second)}
	span := chartSpan(samples, at)
	for _, g := range of.gauges() {
		g.Left = fmt.Sprintf("−%d min", span/time.Minute)
		top := fillChart(&g.Chart, samples, at, span, g.live)
		if g.peak {
			g.Peak = "–"
			if top != nil {
				g.Peak = reading(*top)
			}
		}
		live.Charts = append(live.Charts, g.Chart)
	}
	return live
}

// fillChart puts the window's readings in, one per step of time, and the newest
// as a number. It returns the highest reading, nil without any. A step is two
// seconds at least, so that one without a reading is a gap.
func fillChart(ch *web.Chart, samples []fleet.Sample, at models.Instant, span time.Duration, read func(fleet.Sample) *float64) (peak *float64) {
	begin, points := at.Add(-span), min(chartPoints, int(span/(2*time.Second)))
	steps := make([]*float64, points)
	for _, s := range samples {
		i := int(s.At.Sub(begin) * time.Duration(points) / span)
		if i < 0 || i > points {
			continue
		}
		i = min(i, points-1)
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
	if n := len(samples); n > 0 && at.Sub(samples[n-1].At) < freshFor*time.Second {
		if v := read(samples[n-1]); v != nil {
			ch.Now = reading(*v)
		}
	}
	measured := false
	for i, v := range steps {
		if v == nil && !measured {
			continue // nothing is drawn before the first reading
		}
		measured = true
		ch.Points = append(ch.Points, web.Point{X: float64(i+1) / float64(points), Y: v})
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
