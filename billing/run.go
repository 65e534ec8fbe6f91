package billing

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"berth/models"
)

// job is something done again and again, by every process: doing it twice changes
// nothing.
type job struct {
	name  string
	every time.Duration
	// first is when it is done first after the start, at most: soon, for what was
	// missed while no portal ran.
	first time.Duration
	do    func(ctx context.Context, at models.Instant) error
}

const soon = 10 * time.Second

func (s *Service) jobs() []job {
	return []job{
		// What accrued is safe in its span and missed by nobody: posting it at each
		// start would only litter the ledger.
		{"post what accrued", time.Hour, 2 * time.Hour, s.PostAccrued},
		{"reconcile top-ups", 10 * time.Minute, soon, s.ReconcileTopups},
		{"release expired holds", 5 * time.Minute, soon, s.ReleaseExpired},
		{"close months", 10 * time.Minute, soon, s.CloseMonths},
		{"verify the ledger", 24 * time.Hour, soon, s.verifyAloud},
	}
}

// Run does what happens by itself until ctx ends: the webhook inbox and the jobs.
// It returns nil; what goes wrong is logged and tried again.
func (s *Service) Run(ctx context.Context) error {
	var running sync.WaitGroup
	running.Go(func() { s.webhooks(ctx) })
	for _, j := range s.jobs() {
		running.Go(func() { s.repeat(ctx, j) })
	}
	running.Wait()
	return nil
}

func (s *Service) repeat(ctx context.Context, j job) {
	// Spread, so that several processes do not all do the same at once.
	timer := time.NewTimer(j.first/2 + rand.N(j.first/2))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if err := j.do(ctx, now()); err != nil && ctx.Err() == nil {
			s.log.Error("a billing job failed and is tried again", "job", j.name, "error", err)
		}
		timer.Reset(j.every + rand.N(j.every/10))
	}
}

// verifyAloud logs what Verify finds.
func (s *Service) verifyAloud(ctx context.Context, _ models.Instant) error {
	broken, err := s.Verify(ctx)
	for _, what := range broken {
		s.log.Error("a rule of the ledger is broken", "rule", what)
	}
	return err
}
