package agent

import (
	"math/rand/v2"
	"time"
)

// backoff spaces the attempts to reach the portal: full jitter (any moment of
// [0, ceiling] is equally likely) under a ceiling of 0.5, 2.5, 12.5 and then
// 30 s, so that a thousand nodes that lost one portal do not return in one
// beat. Doubling instead lets three times as many return in the worst tenth of a
// second after an outage of 5 s. The zero value is ready.
type backoff struct {
	failures int
}

const (
	backoffFirst  = 500 * time.Millisecond
	backoffGrowth = 5
	backoffMost   = 30 * time.Second
	// backoffLived is how long a connection must hold to count as a success. A
	// portal that accepts and then falls over must not be met at full speed.
	backoffLived = 10 * time.Second
)

// next is the wait before the next attempt, given how long the last
// connection lived (zero when there was none).
func (b *backoff) next(lived time.Duration) time.Duration {
	if lived >= backoffLived {
		b.failures = 0
	}
	ceiling := backoffFirst
	for range b.failures {
		ceiling = min(backoffMost, backoffGrowth*ceiling)
	}
	b.failures = min(b.failures+1, 10)
	return time.Duration(rand.Int64N(int64(ceiling) + 1))
}
