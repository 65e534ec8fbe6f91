// Package fleet decides what runs where: it counts what can be sold, places and
// launches instances, moves them through their lives by the table in package
// models, tells nodes what they should do, takes in what nodes report, and keeps
// the last minutes of telemetry. It calls billing for everything that costs
// money and never holds a connection: whoever has one asks here and waits.
//
// What always holds: a slice is leased at most once (a primary key says so); a
// lease is released only when the node said that the slice is free; a node's
// generation grows in the same transaction as anything that changes what the
// node should do; a journalled event has its effect once.
//
// Inside a transaction rows are locked in one order: placement, node, instance,
// then whatever billing locks. Two transactions then never wait for each other.
package fleet

import (
	"log/slog"
	"sync"
	"time"

	"berth/billing"
	"berth/models"
	"berth/models/store"
)

// Config are the rules an operator may change. The zero value is the default.
type Config struct {
	LostAfter   time.Duration  // silence after which a node's instances are lost; 0: 10 minutes
	JoinTTL     time.Duration  // life of a join token; 0: 1 hour
	MaxPerPage  int            // most rows of one list answer; 0: 100
	StartedAt   models.Instant // since when this portal listens, so that its own absence counts for no node; 0: now
	ReserveDisk int            // GiB of each node that are never sold
	HistoryDays int            // how long what was measured is kept; 0: 90
}

// Service is the fleet of one portal. It is safe for concurrent use.
type Service struct {
	st   *store.Store
	bill *billing.Service
	cfg  Config
	log  *slog.Logger

	telemetry *telemetry
	pools     *pools
	figures   *figures

	mu      sync.Mutex
	waiting map[models.NodeID]inventory      // snapshots taken ahead of events still on their way
	doubles map[models.NodeID]Double         // the last other host with a node's key
	ticks   map[models.NodeID]int64          // the number of a node's last one
	heard   map[models.NodeID]models.Instant // when a node last said anything, also if it could not be stored
	present models.Instant                   // since when we listen without a gap
	swept   models.Instant                   // the last sweep; zero: none yet
	hours   models.Instant                   // up to when rollups of an hour are made; zero: not known yet
}

// New makes the fleet of a store. Call Run for its background work.
func New(st *store.Store, bill *billing.Service, cfg Config, log *slog.Logger) *Service {
	if cfg.LostAfter == 0 {
		cfg.LostAfter = 10 * time.Minute
	}
	if cfg.JoinTTL == 0 {
		cfg.JoinTTL = time.Hour
	}
	if cfg.MaxPerPage == 0 {
		cfg.MaxPerPage = 100
	}
	if cfg.HistoryDays == 0 {
		cfg.HistoryDays = 90
	}
	if cfg.StartedAt == 0 {
		cfg.StartedAt = models.At(time.Now())
	}
	return &Service{st: st, bill: bill, cfg: cfg, log: log, telemetry: newTelemetry(), pools: newPools(), figures: newFigures(),
		waiting: map[models.NodeID]inventory{}, doubles: map[models.NodeID]Double{}, ticks: map[models.NodeID]int64{}, heard: map[models.NodeID]models.Instant{}, present: cfg.StartedAt}
}
