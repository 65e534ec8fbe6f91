package store

import (
	"strings"

	"berth/models"
	"berth/money"
)

// Stats are the figures that the portal's metrics show.
type Stats struct {
	Instances map[models.InstanceState]int64
	Nodes     map[string]int64 // by state
	Devices   map[string]int64 // by state
	// SoldMiB is the memory of all leased slices, CardMiB that of all cards present.
	SoldMiB, CardMiB int64
	// OpenSpans are the runs being metered; OldestReport is the last report of
	// the one heard of longest ago, zero without open spans.
	OpenSpans    int64
	OldestReport models.Instant
	// Inbox are webhooks received and not yet processed.
	Inbox int64
	// Wallets is what all accounts have per currency, Revenue what was posted as
	// used.
	Wallets, Held, Accrued, Revenue map[string]money.Amount
	// Imbalance is the sum of every balance of the ledger per currency: 0, or the
	// books are wrong.
	Imbalance map[string]money.Amount
}

// Stats reads them with a fixed number of statements.
func (tx *Tx) Stats() (s Stats, err error) {
	s = Stats{Instances: map[models.InstanceState]int64{}, Nodes: map[string]int64{}, Devices: map[string]int64{},
		Wallets: map[string]money.Amount{}, Held: map[string]money.Amount{}, Accrued: map[string]money.Amount{}, Revenue: map[string]money.Amount{}, Imbalance: map[string]money.Amount{}}
	var rows []struct {
		State string
		N     int64
	}
	if err := tx.db.Model(&models.Instance{}).Select("state", "COUNT(*) AS n").Group("state").Find(&rows).Error; err != nil {
		return s, err
	}
	for _, r := range rows {
		s.Instances[models.InstanceState(r.State)] = r.N
	}
	rows = nil
	if err := tx.db.Model(&models.Node{}).Select("state", "COUNT(*) AS n").Group("state").Find(&rows).Error; err != nil {
		return s, err
	}
	for _, r := range rows {
		s.Nodes[r.State] = r.N
	}
	var cards []struct {
		State  string
		N, Mib int64
	}
	if err := tx.db.Model(&models.Device{}).Select("state", "COUNT(*) AS n", "CAST(SUM(memory_mib) AS bigint) AS mib").Group("state").Find(&cards).Error; err != nil {
		return s, err
	}
	for _, r := range cards {
		s.Devices[r.State] = r.N
		if r.State != models.DeviceAbsent {
			s.CardMiB += r.Mib
		}
	}
	if err := tx.db.Model(&models.Lease{}).Select("COALESCE(SUM(memory_mib), 0)").Where("released_at = 0").Row().Scan(&s.SoldMiB); err != nil {
		return s, err
	}
	var meter struct {
		N      int64
		Oldest models.Instant
	}
	err = tx.db.Model(&models.UsageSpan{}).Select("COUNT(*) AS n", "COALESCE(MIN(updated_at), 0) AS oldest").
		Where("state = ?", models.SpanRunning).Find(&meter).Error
	if err != nil {
		return s, err
	}
	s.OpenSpans, s.OldestReport = meter.N, meter.Oldest
	if err := tx.db.Model(&models.StripeEvent{}).Where("processed_at = 0").Count(&s.Inbox).Error; err != nil {
		return s, err
	}
	return s, tx.moneyStats(&s)
}

func (tx *Tx) moneyStats(s *Stats) error {
	var rows []struct {
		Kind, Currency         string
		Balance, Held, Accrued money.Amount
	}
	// The part of a code before its colon is its kind; both databases take LIKE.
	err := tx.db.Model(&models.LedgerAccount{}).
		Select("CASE WHEN code LIKE 'wallet:%' THEN 'wallet' WHEN code LIKE 'revenue:%' THEN 'revenue' ELSE 'other' END AS kind",
			"currency", "CAST(SUM(balance) AS bigint) AS balance", "CAST(SUM(held) AS bigint) AS held", "CAST(SUM(accrued) AS bigint) AS accrued").
		Group("kind").Group("currency").Find(&rows).Error
	for _, r := range rows {
		currency := strings.ToUpper(r.Currency)
		s.Imbalance[currency] += r.Balance
		switch r.Kind {
		case "wallet":
			s.Wallets[currency] += r.Balance
			s.Held[currency] += r.Held
			s.Accrued[currency] += r.Accrued
		case "revenue":
			s.Revenue[currency] += r.Balance
		}
	}
	return err
}
