package billing

import (
	"context"

	"berth/models"
	"berth/models/store"
)

// Usage lists an account's usage spans, of one instance or (empty) of all,
// newest first, after the cursor (empty: from the start), and the cursor of the
// next page (empty: the last).
func (s *Service) Usage(ctx context.Context, account models.AccountID, instance models.InstanceID, cursor string, limit int) (spans []models.UsageSpan, next string, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) (err error) {
		spans, next, err = tx.UsageSpans(account, instance, cursor, limit)
		return err
	})
	return spans, next, err
}

// Spans reads the usage spans that exist of those named, in the order of their ids.
func (s *Service) Spans(ctx context.Context, ids ...models.SpanID) (spans []models.UsageSpan, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) (err error) {
		spans, err = tx.Spans(ids...)
		return err
	})
	return spans, err
}
