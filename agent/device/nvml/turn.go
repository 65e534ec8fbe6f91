//go:build nvml && cgo

package nvml

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"berth/agent/device"
)

// card is one GPU in the session.
type card struct {
	uuid string
	turn chan struct{} // capacity 1: whoever has put something in calls the library for this card

	// What only the one whose turn it is may touch. dev is nil until it is looked
	// up, and again after a change of mode or an error: it may not hold then.
	dev    nvml.Device
	fixed  fixed
	table  []entry
	live   []live
	meters map[string]*meter // of slices, by UUID
	unmade map[int]string    // GPU instance → UUID its slice had before its compute instance went

	mu    sync.Mutex
	seen  device.Card // at the last look
	began time.Time   // of the turn now taken; zero: none is
	xid   int         // the last fault reported in this session
	ends  []string    // the card and what its NVLinks lead to, by PCI address; nil: not known yet
}

func (c *card) remember(now device.Card) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = now
}

func (c *card) remembered() (device.Card, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.seen
	seen.Slices = slices.Clone(seen.Slices)
	return seen, c.xid
}

// busy is for how long the present turn has been taken.
func (c *card) busy() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.began.IsZero() {
		return 0
	}
	return time.Since(c.began)
}

func (c *card) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.began = time.Now()
}

func (c *card) end() {
	c.mu.Lock()
	c.began = time.Time{}
	c.mu.Unlock()
	<-c.turn
}

// inTurn runs fn when the card is free, alone with the card. When ctx ends first it
// returns at once: a call of the library cannot be broken off, so fn goes on by
// itself, with the card, and what it then achieves is undone.
func inTurn[T any](ctx context.Context, c *card, fn func() (T, error), undo func(T)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return none, ctx.Err()
	}
	c.begin()
	done := make(chan answer, 1)
	var mu sync.Mutex
	left := false
	go func() {
		value, err := fn()
		mu.Lock()
		defer mu.Unlock()
		if left && err == nil && undo != nil {
			undo(value)
		}
		c.end()
		done <- answer{value, err}
	}()
	select {
	case a := <-done:
		return a.value, a.err
	case <-ctx.Done():
	}
	if !mu.TryLock() { // fn is through and says so now
		a := <-done
		return a.value, a.err
	}
	defer mu.Unlock()
	select {
	case a := <-done:
		return a.value, a.err
	default:
		left = true
		return none, ctx.Err()
	}
}

// read is inTurn with little patience, for what is read every second: it fails with
// errSilent rather than wait for a card that is being changed, or hangs.
func read[T any](ctx context.Context, d *Driver, c *card, fn func() (T, error)) (T, error) {
	var none T
	silent := func() error {
		return fmt.Errorf("%w: %s, for %s now", errSilent, c.uuid, c.busy().Round(time.Second))
	}
	if c.busy() > d.patience {
		return none, silent()
	}
	short, cancel := context.WithTimeout(ctx, d.patience)
	defer cancel()
	value, err := inTurn(short, c, fn, nil)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return none, silent()
	}
	return value, err
}
