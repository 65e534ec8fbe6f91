package shim

import "time"

// meter counts a run's usable seconds. Its times are readings of a monotonic
// clock, so a changed wall clock or a suspended host adds nothing. The zero value
// has not begun, has no limit and reads 0.
type meter struct {
	begun  bool
	since  time.Duration
	limit  int64 // in seconds; 0: none
	frozen bool
	final  int64
}

// begin starts it; a second call changes nothing.
func (m *meter) begin(now time.Duration) {
	if !m.begun && !m.frozen {
		m.begun, m.since = true, now
	}
}

// seconds are whole, rounded down, and never above the limit.
func (m *meter) seconds(now time.Duration) int64 {
	switch {
	case m.frozen:
		return m.final
	case !m.begun:
		return 0
	}
	n := int64((now - m.since) / time.Second)
	if m.limit > 0 {
		n = min(n, m.limit)
	}
	return n
}

// freeze ends it at its present reading for good.
func (m *meter) freeze(now time.Duration) {
	m.final = m.seconds(now)
	m.frozen = true
}

// setLimit says how many seconds are paid. A limit that has been passed already
// cannot take back what was counted: the meter stands still where it is.
func (m *meter) setLimit(now time.Duration, n int64) {
	if m.frozen || n <= 0 {
		return
	}
	if had := m.seconds(now); n < had {
		n = had
	}
	m.limit = n
}

// left is the time until the limit is reached; ok is false if it never will be.
func (m *meter) left(now time.Duration) (d time.Duration, ok bool) {
	if !m.begun || m.frozen || m.limit == 0 {
		return 0, false
	}
	return max(0, m.since+time.Duration(m.limit)*time.Second-now), true
}
