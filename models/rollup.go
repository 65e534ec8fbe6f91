package models

import "time"

// Rollup is what was measured of one subject (an instance, a card, a node) in the
// Step that begins at At. Memory is in MiB, the others in tenths: of a percent, of
// a degree Celsius, of a watt.
type Rollup struct {
	Step    Seconds `gorm:"primaryKey;autoIncrement:false"`
	At      Instant `gorm:"primaryKey;autoIncrement:false"`
	Subject string  `gorm:"primaryKey"`
	Samples int64   // taken in, measured or not

	Utilization Figures `gorm:"embedded;embeddedPrefix:utilization_"`
	Memory      Figures `gorm:"embedded;embeddedPrefix:memory_"`
	Temperature Figures `gorm:"embedded;embeddedPrefix:temperature_"`
	Power       Figures `gorm:"embedded;embeddedPrefix:power_"`
}

// Seconds is a whole number of seconds.
type Seconds int64

// The steps that are stored.
const (
	Minute Seconds = 60
	Hour   Seconds = 3600
)

// Duration returns s as a time.Duration.
func (s Seconds) Duration() time.Duration { return time.Duration(s) * time.Second }

// Floor returns the begin of the step that i lies in, counted from 1970 UTC.
func (i Instant) Floor(step time.Duration) Instant {
	us := Instant(step / time.Microsecond)
	return i - (i%us+us)%us
}

// Figures are the readings of one kind. Count is how many there were; without any
// the others are nil, so that what was not measured is never a zero.
type Figures struct {
	Count         int64
	Min, Max, Sum *int64
}

// Add takes in one reading.
func (f *Figures) Add(v int64) { f.Merge(Figures{Count: 1, Min: &v, Max: &v, Sum: &v}) }

// Merge takes in the readings of other seconds. It keeps no pointer of o.
func (f *Figures) Merge(o Figures) {
	if o.Count == 0 {
		return
	}
	low, high, sum := *o.Min, *o.Max, *o.Sum
	if f.Count > 0 {
		low, high, sum = min(low, *f.Min), max(high, *f.Max), sum+*f.Sum
	}
	*f = Figures{Count: f.Count + o.Count, Min: &low, Max: &high, Sum: &sum}
}

// Merge takes in the rollup of another part of the same step.
func (r *Rollup) Merge(o Rollup) {
	r.Samples += o.Samples
	r.Utilization.Merge(o.Utilization)
	r.Memory.Merge(o.Memory)
	r.Temperature.Merge(o.Temperature)
	r.Power.Merge(o.Power)
}
