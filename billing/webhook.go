package billing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"berth/billing/stripe"
	"berth/models"
	"berth/models/store"
)

const (
	webhookBatch   = 50
	webhookFirst   = time.Second    // before the second try; it doubles each time
	webhookLongest = time.Hour      // between two tries
	webhookGiveUp  = 72 * time.Hour // as long as the provider itself repeats a webhook
)

// errEarly says that a webhook tells of something whose beginning has not arrived:
// it is tried again later.
var errEarly = errors.New("its payment is not in the ledger yet")

// ReceiveWebhook takes in a webhook: checks its signature, stores it once, and
// leaves the work to Run, so that the provider gets its answer at once. A
// webhook that came before changes nothing. It fails with Invalid when it is not
// from our provider (answer 400); any other error is ours (answer 500, and the
// provider sends it again).
func (s *Service) ReceiveWebhook(ctx context.Context, body []byte, signature string, at models.Instant) error {
	ev, err := s.gw.VerifyWebhook(body, signature, at.Time())
	if err != nil {
		s.log.Warn("a webhook was refused", "error", err)
		return &models.Problem{Code: models.Invalid, What: "This is not a webhook of our payment provider.",
			Next: "Check the endpoint's signing secret and its api_version, which must be " + stripe.APIVersion + "."}
	}
	err = s.store.InTx(ctx, func(tx *store.Tx) error {
		_, err := tx.ReceiveStripeEvent(models.StripeEvent{ID: ev.ID, Type: ev.Type, ObjectID: ev.ObjectID,
			CreatedAt: models.At(ev.Created), Payload: body, ReceivedAt: at, NextAt: at})
		return err
	})
	if err != nil {
		return fmt.Errorf("store webhook %s: %w", ev.ID, err)
	}
	select {
	case s.nudge <- struct{}{}:
	default:
	}
	return nil
}

// ProcessWebhooks works off the stored webhooks that are due. It returns how many
// it tried.
func (s *Service) ProcessWebhooks(ctx context.Context, at models.Instant) (tried int, err error) {
	for {
		var due []models.StripeEvent
		if err := s.store.View(ctx, func(tx *store.Tx) (err error) {
			due, err = tx.PendingStripeEvents(at, webhookBatch)
			return err
		}); err != nil {
			return tried, fmt.Errorf("list webhooks: %w", err)
		}
		for _, e := range due {
			tried++
			if err := s.processWebhook(ctx, e, at); err != nil {
				if ctx.Err() != nil {
					return tried, ctx.Err()
				}
				if err := s.postponeWebhook(ctx, e.ID, err, at); err != nil {
					return tried, err
				}
			}
		}
		if len(due) < webhookBatch {
			return tried, nil
		}
	}
}

// processWebhook applies one webhook. That it was seen is recorded in the same
// transaction as its effect.
func (s *Service) processWebhook(ctx context.Context, e models.StripeEvent, at models.Instant) error {
	ev, err := stripe.ReadEvent(e.Payload)
	if err != nil {
		return err
	}
	more, err := s.askMore(ctx, ev)
	if err != nil {
		return err
	}
	return s.store.InTx(ctx, func(tx *store.Tx) error {
		row, err := tx.LockStripeEvent(e.ID)
		if err != nil || !row.ProcessedAt.IsZero() {
			return err
		}
		if row.Error, err = s.apply(tx, ev, more, at); err != nil {
			return err
		}
		row.ProcessedAt, row.Attempts = at, row.Attempts+1
		return tx.SaveStripeEvent(row)
	})
}

// postponeWebhook puts a webhook off after a failure, further each time; after
// three days it is set aside for the operator.
func (s *Service) postponeWebhook(ctx context.Context, id string, cause error, at models.Instant) error {
	return s.store.InTx(ctx, func(tx *store.Tx) error {
		row, err := tx.LockStripeEvent(id)
		if err != nil || !row.ProcessedAt.IsZero() {
			return err
		}
		row.Attempts++
		row.Error = cause.Error()
		row.NextAt = at.Add(min(webhookLongest, webhookFirst<<min(row.Attempts-1, 20)))
		switch {
		case at > row.ReceivedAt.Add(webhookGiveUp):
			row.ProcessedAt, row.Error = at, "given up: "+row.Error
			s.log.Error("a webhook could not be processed in three days", "event", id, "type", row.Type, "error", cause)
		case errors.Is(cause, errEarly):
			s.log.Info("a webhook came before what it follows", "event", id, "type", row.Type)
		default:
			s.log.Warn("a webhook could not be processed yet", "event", id, "type", row.Type, "attempt", row.Attempts, "error", cause)
		}
		return tx.SaveStripeEvent(row)
	})
}

// webhooks processes the inbox until ctx ends.
func (s *Service) webhooks(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.nudge:
		case <-timer.C:
		}
		if _, err := s.ProcessWebhooks(ctx, now()); err != nil && ctx.Err() == nil {
			s.log.Error("the webhook inbox stalls", "error", err)
		}
		timer.Reset(s.untilNextWebhook(ctx))
	}
}

// untilNextWebhook is how long to wait for the next one due. It is never long:
// another process may have stored one.
func (s *Service) untilNextWebhook(ctx context.Context) time.Duration {
	const longest = 5 * time.Second
	var next models.Instant
	err := s.store.View(ctx, func(tx *store.Tx) (err error) { next, err = tx.NextStripeEvent(); return err })
	if err != nil || next.IsZero() {
		return longest
	}
	return min(longest, max(10*time.Millisecond, next.Sub(now())))
}

func now() models.Instant { return models.At(time.Now()) }
