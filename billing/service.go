// Package billing is what it costs and who pays: prices, holds, the meter,
// the ledger, top-ups, the webhook inbox and invoices. It owns every movement of
// money and none of what runs where: fleet calls it inside its own
// transactions, and it never calls fleet.
//
// What always holds:
//   - Every movement is postings that sum to zero, made once per key.
//   - A report of seconds only ever moves a cursor forward; resent, reordered,
//     doubled or late, the charge is the same.
//   - Usage never takes what is available below zero; only refunds of spent
//     money and disputes can, and then nothing new starts.
//   - No network call is made inside a transaction.
package billing

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"berth/billing/invoice"
	"berth/billing/stripe"
	"berth/models/store"
	"berth/money"
)

// An invoice's document and its parts, see package invoice.
type (
	Document = invoice.Document
	Line     = invoice.Line
	LineSpan = invoice.Span
	Party    = invoice.Party
)

// Config is what an operator decides. Zero values are the defaults named.
type Config struct {
	Currency     string        // of the installation, ISO 4217; USD
	HoldSeconds  int64         // of the offer's price, set aside before a launch; 60
	HoldFor      time.Duration // after which a forgotten hold is released; 24 h
	SkewSeconds  int64         // a node's clock may run ahead by this much; 5
	TestPayments bool          // no real money: bannered on every document
	Seller       Party         // on invoices; Name "Berth"
}

// Service is billing on one database and one payment provider. It is safe for
// concurrent use, by several processes too.
type Service struct {
	store *store.Store
	gw    *stripe.Gateway
	cfg   Config
	log   *slog.Logger

	nudge chan struct{} // a webhook came in
}

// New makes the service. It starts nothing: see Run.
func New(st *store.Store, gw *stripe.Gateway, cfg Config, log *slog.Logger) *Service {
	if cfg.Currency == "" {
		cfg.Currency = "USD"
	}
	// Typed in lower case it is the same one. What is unknown fails where it is used.
	if c, err := money.LookupCurrency(cfg.Currency); err == nil {
		cfg.Currency = c.Code
	}
	if cfg.HoldSeconds == 0 {
		cfg.HoldSeconds = 60
	}
	if cfg.HoldFor == 0 {
		cfg.HoldFor = 24 * time.Hour
	}
	if cfg.SkewSeconds == 0 {
		cfg.SkewSeconds = 5
	}
	if cfg.Seller.Name == "" {
		cfg.Seller.Name = "Berth"
	}
	return &Service{store: st, gw: gw, cfg: cfg, log: log, nudge: make(chan struct{}, 1)}
}

// Config returns the configuration with its defaults filled in.
func (s *Service) Config() Config { return s.cfg }

// CheckCurrency fails when the database keeps wallets in another currency than
// the configured one: prices in one would be charged one to one in the other.
func (s *Service) CheckCurrency(ctx context.Context) error {
	var kept []string
	if err := s.store.View(ctx, func(tx *store.Tx) (err error) { kept, err = tx.Currencies(); return err }); err != nil {
		return fmt.Errorf("read the currency of the wallets: %w", err)
	}
	for _, code := range kept {
		if code != s.cfg.Currency {
			return fmt.Errorf("this database keeps its wallets in %s, not in %s", code, s.cfg.Currency)
		}
	}
	return nil
}
