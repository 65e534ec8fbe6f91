// Package models holds the nouns of Berth and their rules: state tables,
// validation, the Problem that every layer speaks. It does no I/O, reads no
// clock and writes no log; time is an argument. Its structs carry gorm tags as
// strings, but the package does not import gorm.
package models

import "time"

// The identifiers are opaque strings, made by the store, sortable by age.
type (
	UserID     string
	AccountID  string
	TokenID    string
	InstanceID string
	NodeID     string
	SpanID     string
	TopupID    string
	InvoiceID  string
)

// Instant is a moment in microseconds since 1970 UTC. It is stored as an
// integer, so it compares and sorts alike on every database and has no zone.
// The zero value means "not yet" or "never".
type Instant int64

// At returns the instant of t.
func At(t time.Time) Instant {
	if t.IsZero() {
		return 0
	}
	return Instant(t.UnixMicro())
}

// Time returns i in UTC; the zero instant is the zero time.
func (i Instant) Time() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(i)).UTC()
}

// IsZero tells whether i is "not yet".
func (i Instant) IsZero() bool { return i == 0 }

// Sub returns the time between two instants.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i-j) * time.Microsecond }

// Add returns the instant d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d/time.Microsecond) }
