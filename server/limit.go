package server

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits are how often something may be tried: at once, and then one more per
// Every. The zero value takes the default of its use.
type Limits struct {
	Burst int
	Every time.Duration
}

func (l Limits) or(d Limits) Limits {
	if l.Burst <= 0 || l.Every <= 0 {
		return d
	}
	return l
}

// bucketsKept bounds a limiter's memory: at most twice as many buckets are held.
const bucketsKept = 20_000

// limiter counts tries by key. Its memory is bounded: when one generation of
// buckets is full it becomes the old one, and what the old one held is forgotten
// unless it was used since. A bucket thus outlives at least bucketsKept others.
type limiter struct {
	limits Limits

	mu         sync.Mutex
	young, old map[string]*rate.Limiter
}

func newLimiter(l Limits) *limiter {
	return &limiter{limits: l, young: map[string]*rate.Limiter{}}
}

// allow takes one try of key, or says after how long the next one is free.
func (l *limiter) allow(key string, at time.Time) (wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, found := l.young[key]
	if !found {
		if b, found = l.old[key]; !found {
			b = rate.NewLimiter(rate.Every(l.limits.Every), l.limits.Burst)
		}
		if len(l.young) >= bucketsKept {
			l.old, l.young = l.young, make(map[string]*rate.Limiter, bucketsKept)
		}
		l.young[key] = b
	}
	r := b.ReserveN(at, 1)
	if wait := r.DelayFrom(at); wait > 0 {
		r.CancelAt(at)
		return wait, false
	}
	return 0, true
}

// networkOf is what is counted as one visitor: an IPv4 address, or the /64 that
// every IPv6 subscriber has for themselves.
func networkOf(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	ip = ip.Unmap()
	if ip.Is4() {
		return ip.String()
	}
	prefix, err := ip.WithZone("").Prefix(64)
	if err != nil {
		return address
	}
	return prefix.String()
}
