package agent

import (
	"slices"
	"testing"
	"time"
)

// C15: a thousand nodes lose one portal at 0 s, which is back at 5 s. Taken over
// many rounds, so that what is tested is the spread and not its noise.
func TestThousandReconnects(t *testing.T) {
	const agents, rounds = 1000, 100
	back, bin := 5*time.Second, 100*time.Millisecond
	var bins [600]int // of the first minute, over all rounds
	for range rounds {
		for range agents {
			var b backoff
			at := b.next(time.Hour) // the connection had lived
			for at < back {
				at += b.next(0)
			}
			if at > 120*time.Second {
				t.Fatalf("a node came back after %s", at)
			}
			if i := int(at / bin); i < len(bins) {
				bins[i]++
			}
		}
	}
	// The mean is over the time in which nodes return: from the portal's return to
	// when 95 of 100 are there.
	total, first, last := 0, int(back/bin), 0
	for i := first; i < len(bins); i++ {
		if total += bins[i]; total <= agents*rounds*95/100 {
			last = i
		}
	}
	if total < agents*rounds*99/100 {
		t.Errorf("%d of %d came back within a minute", total, agents*rounds)
	}
	peak := float64(slices.Max(bins[:])) / rounds
	mean := float64(agents) * 0.95 / float64(last-first+1)
	t.Logf("peak %.1f, mean %.1f connections in 100 ms; 95 of 100 back after %s", peak, mean, time.Duration(last+1)*bin)
	if peak > 3*mean {
		t.Errorf("peak of %.1f connections in 100 ms is above 3 times the mean of %.1f", peak, mean)
	}
}

// Each wait is spread evenly over all of its range, and the range grows to 30 s.
func TestBackoffIsFullJitter(t *testing.T) {
	for failures, ceiling := range []time.Duration{500 * time.Millisecond, 2500 * time.Millisecond, 12500 * time.Millisecond, 30 * time.Second, 30 * time.Second} {
		var quarters [4]int
		for range 4000 {
			b := backoff{failures: failures}
			d := b.next(0)
			if d < 0 || d > ceiling {
				t.Fatalf("after %d failures: waits %s, ceiling %s", failures, d, ceiling)
			}
			quarters[min(3, int(4*d/ceiling))]++
		}
		for q, n := range quarters {
			if n < 800 || n > 1200 { // 1000 ± 7 standard deviations
				t.Errorf("after %d failures: %d of 4000 waits in quarter %d", failures, n, q)
			}
		}
	}
}

func TestBackoffForgetsOnlyAfterALife(t *testing.T) {
	b := backoff{failures: 3}
	b.next(backoffLived - 1)
	if b.failures != 4 {
		t.Errorf("a connection that fell over at once reset the back-off")
	}
	b.next(backoffLived)
	if b.failures != 1 {
		t.Errorf("a connection that lived did not reset the back-off")
	}
}
