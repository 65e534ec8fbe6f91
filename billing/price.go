package billing

import (
	"context"
	"fmt"
	"strings"

	"berth/gpu"
	"berth/models"
	"berth/models/store"
	"berth/money"
)

// Prices returns the on-demand price of every SKU at a moment, by SKU id. A SKU
// of several cards or slices without a price of its own costs its count times
// the single one.
func (s *Service) Prices(tx *store.Tx, at models.Instant) (map[string]money.Rate, error) {
	list, err := tx.PricesAt(models.OnDemand, at)
	if err != nil {
		return nil, err
	}
	prices := make(map[string]money.Rate, len(list)*gpu.MaxCount)
	for _, p := range list {
		prices[p.SKU] = p.PricePerHour
	}
	for _, p := range list {
		sku, err := gpu.ParseSKU(p.SKU)
		if err != nil || sku.Count != 1 {
			continue
		}
		for n := 2; n <= gpu.MaxCount; n++ {
			id := gpu.SKUFor(sku.Model, sku.Profile, n).ID
			if _, ok := prices[id]; !ok {
				prices[id] = p.PricePerHour * money.Rate(n)
			}
		}
	}
	return prices, nil
}

// PriceAt reads the price of a SKU in a mode at a moment; several cards or slices
// without a price of their own cost their count times the single one. It fails
// with a NotFound Problem.
func (s *Service) PriceAt(tx *store.Tx, sku string, mode models.BillingMode, at models.Instant) (models.Price, error) {
	p, err := tx.PriceAt(sku, mode, at)
	if !models.HasCode(err, models.NotFound) {
		return p, err
	}
	many, perr := gpu.ParseSKU(sku)
	if perr != nil || many.Count == 1 {
		return p, err
	}
	one, oerr := tx.PriceAt(gpu.SKUFor(many.Model, many.Profile, 1).ID, mode, at)
	if oerr != nil {
		return p, err
	}
	one.SKU, one.PricePerHour = sku, one.PricePerHour*money.Rate(many.Count)
	return one, nil
}

// maxRate is the highest price that is taken: far above any, and low enough that
// years of it fit an amount.
const maxRate = money.Rate(100_000 * money.Unit)

// SetPrice adds a price to the list, in force from p.EffectiveAt (zero: now). It
// never reaches into the past, and running instances keep theirs. It fails with
// Invalid and the fields sku, billing_mode, price_per_hour or effective_at.
func (s *Service) SetPrice(ctx context.Context, p models.Price, at models.Instant) (models.Price, error) {
	if p.EffectiveAt.IsZero() {
		p.EffectiveAt = at
	}
	if p.Currency == "" {
		p.Currency = s.cfg.Currency
	}
	bad := models.Fieldset{}
	if _, err := gpu.ParseSKU(p.SKU); err != nil {
		bad.Add("sku", sentence(err))
	}
	if p.BillingMode != models.OnDemand {
		bad.Add("billing_mode", "Only on_demand is sold so far.")
	}
	if p.PricePerHour < 0 || p.PricePerHour > maxRate {
		bad.Add("price_per_hour", "A price is from 0 to 100,000 per hour.")
	}
	if p.EffectiveAt < at {
		bad.Add("effective_at", "A price cannot begin in the past.")
	}
	if !strings.EqualFold(p.Currency, s.cfg.Currency) {
		bad.Add("currency", "Prices here are in "+s.cfg.Currency+".")
	}
	if err := bad.Problem(); err != nil {
		return p, err
	}
	p.ID, p.CreatedAt, p.Currency = store.NewID("pri", at.Time()), at, s.cfg.Currency
	err := s.store.InTx(ctx, func(tx *store.Tx) error {
		fresh, err := tx.AddPrice(p)
		if err == nil && !fresh {
			return &models.Problem{Code: models.Conflict, What: "There is a price for this SKU from exactly that moment.", Next: "Choose another moment."}
		}
		tx.Changed("prices")
		return err
	})
	return p, err
}

func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// defaultPrices is what one whole card costs on demand per hour, in US dollars,
// until the operator says otherwise.
//
// Source: none but Berth's own choice, of the order that public GPU clouds ask.
var defaultPrices = map[gpu.ModelID]money.Amount{
	"rtx3090":         220_000,
	"rtx4090":         390_000,
	"rtx5090":         690_000,
	"rtxa6000":        490_000,
	"rtx6000ada":      790_000,
	"rtxpro6000-96gb": 1_790_000,
	"t4":              150_000,
	"v100-16gb":       250_000,
	"v100-32gb":       390_000,
	"a10":             350_000,
	"l4":              440_000,
	"l40s":            890_000,
	"a30-24gb":        450_000,
	"a100-40gb":       1_290_000,
	"a100-80gb":       1_990_000,
	"h100-80gb":       2_990_000,
	"h100-94gb":       2_790_000,
	"h200-141gb":      3_290_000,
	"b200-180gb":      4_990_000,
}

// EnsureDefaults gives every SKU that has no price yet the default one, in force
// since ever: a whole card's from the list, a slice's by its share of compute and
// memory, rounded up to the minor unit. SKUs that neither has are left unpriced,
// and so unsold.
func (s *Service) EnsureDefaults(ctx context.Context, skus []gpu.SKU, at models.Instant) error {
	c, err := money.LookupCurrency(s.cfg.Currency)
	if err != nil {
		return err
	}
	return s.store.InTx(ctx, func(tx *store.Tx) error {
		added := false
		for _, sku := range skus {
			rate, ok := defaultPrice(sku, c)
			if !ok {
				continue
			}
			fresh, err := tx.AddPrice(models.Price{ID: store.NewID("pri", at.Time()), SKU: sku.ID,
				BillingMode: models.OnDemand, PricePerHour: rate, Currency: c.Code, CreatedAt: at})
			if err != nil {
				return fmt.Errorf("default price of %s: %w", sku.ID, err)
			}
			added = added || fresh
		}
		if added {
			tx.Changed("prices")
		}
		return nil
	})
}

// defaultPrice is the default price of a SKU. A slice costs the mean of its share
// of the card's compute and of its memory: either alone would give the other away.
func defaultPrice(sku gpu.SKU, c money.Currency) (money.Rate, bool) {
	whole, ok := defaultPrices[sku.Model]
	m, p, err := sku.Slice()
	if !ok || err != nil {
		return 0, false
	}
	// The least top-up is about five dollars in every currency: that is the
	// exchange rate of the default list, and of nothing else.
	whole = c.CeilMinor(whole * (c.MinTopup / money.Unit) / 5)
	price := whole
	if p.Name != gpu.Whole {
		part := money.Amount(p.Units*m.ComputeSlices + p.ComputeSlices*m.MemoryUnits)
		of := money.Amount(2 * m.MemoryUnits * m.ComputeSlices)
		price = c.CeilMinor((whole*part + of - 1) / of)
	}
	return money.Rate(price) * money.Rate(sku.Count), true
}
