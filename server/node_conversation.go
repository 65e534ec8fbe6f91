package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"berth/fleet"
	"berth/models"
	"berth/wire"
)

const (
	callLimit   = 15 * time.Second // of one call to a node
	silentLimit = 15 * time.Second // without a tick the link is taken for dead
	resync      = 30 * time.Second // between looks at the node's whole state
	ackEvery    = 64               // events after which the stream is asked for again, which acknowledges
)

// converse tells a node what to do and takes in what it reports, until the link
// or ctx ends. Any failure ends the link: the node dials again and both sides
// start from whole state, so no step needs a remedy of its own.
func converse(ctx context.Context, f *fleet.Service, node models.NodeID, ch *nodeChannel, log *slog.Logger) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer ch.session.Close()
	go func() {
		<-ch.session.CloseChan()
		cancel(errors.New("the node's connection ended"))
	}()

	var state wire.State
	if err := ch.get(ctx, "/v1/state", &state); err != nil {
		return fmt.Errorf("read the node's state: %w", err)
	}
	cursor, err := f.NodeConnected(ctx, node, state, models.At(time.Now()))
	if err != nil {
		return fmt.Errorf("take in the node's state: %w", err)
	}
	var parts sync.WaitGroup
	for name, part := range map[string]func() error{
		"desired": func() error { return pushDesired(ctx, f, node, ch) },
		"events":  func() error { return readEvents(ctx, f, node, ch, cursor) },
		"samples": func() error { return readSamples(ctx, f, node, ch, state.Inventory, log) },
	} {
		parts.Go(func() {
			if err := part(); err != nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	parts.Wait()
	return context.Cause(ctx)
}

// pushDesired sends the node's whole desired state whenever its generation
// grows, and looks at its observed state when nothing happens.
func pushDesired(ctx context.Context, f *fleet.Service, node models.NodeID, ch *nodeChannel) error {
	sent := int64(-1)
	for {
		waiting, stop := context.WithTimeout(ctx, resync)
		desired, err := f.NextDesired(waiting, node, sent)
		idle := waiting.Err() != nil && ctx.Err() == nil
		stop()
		var state wire.State
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case idle:
			err = ch.get(ctx, "/v1/state", &state)
		case err == nil:
			err = ch.put(ctx, "/v1/desired", desired, &state)
			sent = desired.Generation
		}
		if err != nil {
			return err
		}
		if err := f.NodeState(ctx, node, state, models.At(time.Now())); err != nil {
			return err
		}
	}
}

// readEvents takes in journalled events from after cursor on. An event that
// cannot be stored ends the link: it stays in the node's journal and comes again.
func readEvents(ctx context.Context, f *fleet.Service, node models.NodeID, ch *nodeChannel, cursor int64) error {
	for {
		last, err := readEventStream(ctx, f, node, ch, cursor)
		if err != nil {
			return err
		}
		cursor = last
	}
}

func readEventStream(ctx context.Context, f *fleet.Service, node models.NodeID, ch *nodeChannel, cursor int64) (int64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body, err := ch.stream(ctx, "/v1/events?after="+strconv.FormatInt(cursor, 10))
	if err != nil {
		return cursor, err
	}
	defer body.Close()
	lines := json.NewDecoder(body)
	for n := 0; n < ackEvery; n++ {
		var ev wire.Event
		if err := lines.Decode(&ev); err != nil {
			return cursor, err
		}
		if err := f.NodeEvent(ctx, node, ev, models.At(time.Now())); err != nil {
			return cursor, fmt.Errorf("take in event %d: %w", ev.Seq, err)
		}
		cursor = max(cursor, ev.Seq)
	}
	return cursor, nil
}

// readSamples takes in the node's seconds. A tick that cannot be stored is let
// go: the next one carries the same meter. When one says that cards have changed,
// the state is read again: a card that failed is off sale within the second.
func readSamples(ctx context.Context, f *fleet.Service, node models.NodeID, ch *nodeChannel, inventory int64, log *slog.Logger) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	body, err := ch.stream(ctx, "/v1/samples")
	if err != nil {
		return err
	}
	defer body.Close()
	silent := time.AfterFunc(silentLimit, func() {
		cancel(fmt.Errorf("no sample for %s", silentLimit))
		body.Close()
	})
	defer silent.Stop()
	for lines := json.NewDecoder(body); ; {
		var tick wire.Tick
		if err := lines.Decode(&tick); err != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		silent.Reset(silentLimit)
		if err := f.NodeTick(ctx, node, tick, models.At(time.Now())); err != nil && ctx.Err() == nil && !errors.Is(err, io.EOF) {
			log.Warn("a tick was not taken in", "error", err)
		}
		if tick.Inventory != inventory {
			var state wire.State
			if err := ch.get(ctx, "/v1/state", &state); err != nil {
				return err
			}
			if err := f.NodeState(ctx, node, state, models.At(time.Now())); err != nil {
				return err
			}
			inventory = state.Inventory
		}
	}
}
