package billing

import (
	"cmp"
	"fmt"
	"slices"

	"berth/models"
	"berth/models/store"
	"berth/money"
)

// SpanID names the usage span of the instance's present run.
func SpanID(in models.Instance) models.SpanID {
	return models.SpanID(fmt.Sprintf("%s.%d", in.ID, in.Run))
}

// LaunchRef names the hold of a run.
func LaunchRef(id models.InstanceID, run int) string {
	return fmt.Sprintf("%s%s.%d", launchPrefix, id, run)
}

// exhausted is the reason of a span that the wallet did not cover to its end.
const exhausted = "exhausted"

// OpenSpan starts the meter of the instance's present run, which has run for
// reported seconds when the news arrives at the given time: it began that long
// ago, but not before it was asked for, and, should the clock have been set back
// since then, not later than now. The run's hold is given back, and the reported
// seconds are charged. Calling it again changes nothing.
func (s *Service) OpenSpan(tx *store.Tx, in models.Instance, reported int64, at models.Instant) error {
	return s.openSpan(tx, in, store.SpanTrace{}, reported, at)
}

// openSpan opens a span that goes on from what is known of it already.
func (s *Service) openSpan(tx *store.Tx, in models.Instance, known store.SpanTrace, reported int64, at models.Instant) error {
	if _, err := tx.LockWallet(in.AccountID); err != nil {
		return err
	}
	id := SpanID(in)
	if _, err := tx.Span(id); !models.HasCode(err, models.NotFound) {
		return err
	}
	if err := s.Release(tx, LaunchRef(in.ID, in.Run), at); err != nil {
		return err
	}
	// The bound first: a node that claims years must not overflow the product.
	reported = min(max(0, reported), secondsBetween(in.RequestedAt, at))
	start := min(at, max(after(at, -reported), in.RequestedAt))
	cursor := max(known.PostedTo, known.InvoicedTo)
	err := tx.InsertSpan(models.UsageSpan{ID: id, InstanceID: in.ID, AccountID: in.AccountID, Run: in.Run, InstanceName: in.Name,
		SKU: in.SKU, BillingMode: in.BillingMode, PricePerHour: in.PricePerHour, Currency: in.Currency,
		State: models.SpanRunning, StartAt: start, CapSeconds: -1, UpdatedAt: at,
		Cursor: cursor, Charged: in.PricePerHour.For(cursor), Posted: known.Posted, PostedTo: known.PostedTo, InvoicedTo: known.InvoicedTo})
	if err != nil {
		return fmt.Errorf("open usage span %s: %w", id, err)
	}
	tx.Changed("account:" + string(in.AccountID))
	_, err = s.Report(tx, id, reported, at)
	return err
}

// ReopenSpan is OpenSpan for a running instance whose span was lost from the
// database. The span goes on from what ledger and invoices have of it, so that
// nothing is charged or billed twice.
func (s *Service) ReopenSpan(tx *store.Tx, in models.Instance, reported int64, at models.Instant) error {
	if _, err := tx.LockWallet(in.AccountID); err != nil {
		return err
	}
	known, err := tx.SpanTrace(SpanID(in), in.AccountID)
	if err != nil {
		return fmt.Errorf("what is known of usage span %s: %w", SpanID(in), err)
	}
	// What the lost row had accrued went with it; the node's seconds bring it back.
	if err := tx.RecountAccrued(in.AccountID); err != nil {
		return err
	}
	return s.openSpan(tx, in, known, reported, at)
}

// Accepted is what a report changed.
type Accepted struct {
	Seconds   int64        // the cursor now
	Charged   money.Amount // what this report added
	Exhausted bool         // the wallet did not cover all of it: stop the instance
}

// Report takes in the cumulative seconds a node reports for a span. Accepted are
// at most the seconds that can have passed at the portal (plus Config.SkewSeconds),
// the span's cap, and what the wallet covers; at or below the cursor nothing
// changes. So it does not matter how often, in which order or how late a report
// arrives. A span that is unknown or closed takes no more: what a node claims of
// it is kept as evidence, not charged.
//
// A span that the wallet does not cover is capped there: seconds over the money
// are known, but stay unpaid also when the wallet is filled again.
func (s *Service) Report(tx *store.Tx, id models.SpanID, reported int64, at models.Instant) (Accepted, error) {
	got, err := s.reports(tx, []Reading{{Span: id, Seconds: reported}}, at)
	return got[id], err
}

// Reading is one span's cumulative seconds in a node's tick.
type Reading struct {
	Span    models.SpanID
	Seconds int64
}

// ReportAll is Report for all spans of a node, in few statements. It returns the
// spans whose money ended with this tick.
func (s *Service) ReportAll(tx *store.Tx, readings []Reading, at models.Instant) (ended []models.SpanID, err error) {
	got, err := s.reports(tx, readings, at)
	for id, a := range got {
		if a.Exhausted {
			ended = append(ended, id)
		}
	}
	slices.Sort(ended)
	return ended, err
}

func (s *Service) reports(tx *store.Tx, readings []Reading, at models.Instant) (map[models.SpanID]Accepted, error) {
	reported := make(map[models.SpanID]int64, len(readings))
	for _, r := range readings {
		reported[r.Span] = max(reported[r.Span], r.Seconds)
	}
	spans, wallets, err := lockSpans(tx, reported)
	if err != nil {
		return nil, err
	}
	out := make(map[models.SpanID]Accepted, len(spans))
	var changed []models.UsageSpan
	grown := map[models.AccountID]money.Amount{}
	for _, u := range spans {
		wallet := wallets[u.AccountID]
		next, a := s.accept(u, reported[u.ID], wallet.Available(), at)
		out[u.ID] = a
		if next == u {
			continue
		}
		next.UpdatedAt = at
		changed = append(changed, next)
		wallet.Accrued += a.Charged
		wallets[u.AccountID] = wallet
		grown[u.AccountID] += a.Charged
		if a.Exhausted {
			tx.Changed("account:" + string(u.AccountID))
		}
	}
	if err := tx.SaveSpans(changed...); err != nil {
		return nil, fmt.Errorf("save usage spans: %w", err)
	}
	for _, account := range sorted(grown) {
		if grown[account] != 0 {
			if err := tx.AddAccrued(account, grown[account]); err != nil {
				return nil, err
			}
		}
		if wallet := wallets[account]; wallet.Accrued > postAbove(wallet.Currency) {
			if err := s.post(tx, account, at); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// lockSpans reads the spans and locks the wallets they draw on, in one order for
// all callers. The spans are read again behind the locks.
func lockSpans(tx *store.Tx, wanted map[models.SpanID]int64) ([]models.UsageSpan, map[models.AccountID]models.LedgerAccount, error) {
	ids := sorted(wanted)
	spans, err := tx.Spans(ids...)
	if err != nil || len(spans) == 0 {
		return nil, nil, err
	}
	wallets := map[models.AccountID]models.LedgerAccount{}
	for _, u := range spans {
		wallets[u.AccountID] = models.LedgerAccount{}
	}
	for _, account := range sorted(wallets) {
		if wallets[account], err = tx.LockWallet(account); err != nil {
			return nil, nil, err
		}
	}
	spans, err = tx.Spans(ids...)
	return spans, wallets, err
}

func sorted[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// accept is the exactly-once rule, without I/O: the span after a report, and what
// the report changed.
func (s *Service) accept(u models.UsageSpan, reported int64, available money.Amount, at models.Instant) (models.UsageSpan, Accepted) {
	u.Reported = max(u.Reported, reported)
	if u.State == models.SpanClosed {
		return u, Accepted{Seconds: u.Cursor}
	}
	claim := min(reported, secondsBetween(u.StartAt, at)+s.cfg.SkewSeconds)
	if u.CapSeconds >= 0 {
		claim = min(claim, u.CapSeconds)
	}
	if claim <= u.Cursor {
		return u, Accepted{Seconds: u.Cursor}
	}
	a := Accepted{Seconds: claim}
	if covered := money.AffordableFor(available, u.PricePerHour, u.Cursor); covered < claim {
		a.Seconds, a.Exhausted = covered, true
		u.State, u.CapSeconds = models.SpanCapped, covered
		if u.CloseReason == "" {
			u.CloseReason = exhausted
		}
	}
	total := u.PricePerHour.For(a.Seconds)
	a.Charged = total - u.Charged
	u.Cursor, u.Charged = a.Seconds, total
	return u, a
}

// Cap ends what can be charged for a span at the given time: the renter's click.
// Seconds up to it may still be reported; the node's clean-up after it is free.
// A lower cap that was set before stays.
func (s *Service) Cap(tx *store.Tx, id models.SpanID, at models.Instant, reason string) error {
	u, err := lockSpan(tx, id)
	if err != nil || u.State == models.SpanClosed || u.ID == "" {
		return err
	}
	limit := max(u.Cursor, secondsBetween(u.StartAt, at))
	if u.CapSeconds >= 0 {
		limit = min(limit, u.CapSeconds)
	}
	if u.CloseReason == "" {
		u.CloseReason = reason
	}
	u.State, u.CapSeconds, u.UpdatedAt = models.SpanCapped, limit, at
	tx.Changed("account:" + string(u.AccountID))
	return tx.SaveSpans(u)
}

// Close ends a span for good: at the node's last word, or (nil) at the seconds
// accepted so far. What accrued is posted. An unknown or closed span changes
// nothing. A reason given when it was capped stays.
func (s *Service) Close(tx *store.Tx, id models.SpanID, reported *int64, reason string, at models.Instant) error {
	if reported != nil {
		if _, err := s.Report(tx, id, *reported, at); err != nil {
			return err
		}
	}
	u, err := lockSpan(tx, id)
	if err != nil || u.State == models.SpanClosed || u.ID == "" {
		return err
	}
	u.State, u.EndAt, u.UpdatedAt = models.SpanClosed, after(u.StartAt, u.Cursor), at
	if u.CloseReason == "" {
		u.CloseReason = reason
	}
	if err := tx.SaveSpans(u); err != nil {
		return err
	}
	tx.Changed("account:" + string(u.AccountID))
	return s.post(tx, u.AccountID, at)
}

// lockSpan reads a span behind its wallet's lock; a zero span when there is none.
func lockSpan(tx *store.Tx, id models.SpanID) (models.UsageSpan, error) {
	spans, _, err := lockSpans(tx, map[models.SpanID]int64{id: 0})
	if err != nil || len(spans) == 0 {
		return models.UsageSpan{}, err
	}
	return spans[0], nil
}
