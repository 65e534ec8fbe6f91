package billing_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"berth/billing"
	"berth/billing/stripe"
	"berth/gpu"
	"berth/models"
	"berth/models/store"
	"berth/models/store/storetest"
	"berth/money"
)

func soldSKUs() (out []gpu.SKU) {
	for _, m := range gpu.Models() {
		for _, p := range m.Sold() {
			out = append(out, gpu.SKUFor(m.ID, p.Name, 1))
		}
	}
	return out
}

func (b *bench) prices(at models.Instant) (prices map[string]money.Rate) {
	b.t.Helper()
	b.in(func(tx *store.Tx) (err error) { prices, err = b.Prices(tx, at); return err })
	return prices
}

func TestDefaultPrices(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		b := newBench(t, st)
		for range 2 {
			if err := b.EnsureDefaults(context.Background(), soldSKUs(), noon); err != nil {
				t.Fatal(err)
			}
		}
		prices := b.prices(noon - 1_000_000) // in force since ever
		for id, want := range map[string]money.Rate{
			"a100-80gb":            1_990_000,
			"a100-80gb.1g.10gb":    270_000, // (1/7 + 1/8) / 2 of 1.99, rounded up
			"a100-80gb.3g.40gb":    930_000,
			"a100-80gb.1g.10gb.x3": 810_000,
			"h100-80gb":            2_990_000,
			"h100-80gb.x4":         11_960_000,
			"h200-141gb":           3_290_000,
			"rtx4090":              390_000,
			"l4":                   440_000,
		} {
			same(t, id, prices[id], want)
		}
		for _, sku := range soldSKUs() {
			price, ok := prices[sku.ID]
			if !ok {
				t.Errorf("%s has no default price", sku.ID)
			}
			if whole := prices[string(sku.Model)]; sku.Profile != gpu.Whole && (price <= 0 || price >= whole) {
				t.Errorf("%s costs %d, the whole card %d", sku.ID, price, whole)
			}
			b.in(func(tx *store.Tx) error {
				for _, n := range []int{1, 2, gpu.MaxCount} {
					id := gpu.SKUFor(sku.Model, sku.Profile, n).ID
					p, err := b.PriceAt(tx, id, models.OnDemand, noon)
					if err != nil || p.PricePerHour != prices[id] || p.SKU != id {
						t.Errorf("%s alone: %+v, %v; in the list %d", id, p, err, prices[id])
					}
				}
				return nil
			})
		}
	})
}

// Seven slices of a card never cost less than the card: else nobody rents a whole one.
func TestSlicesAreNotCheaperThanTheCard(t *testing.T) {
	b := newBench(t, storetest.SQLite(t))
	if err := b.EnsureDefaults(context.Background(), soldSKUs(), noon); err != nil {
		t.Fatal(err)
	}
	prices := b.prices(noon)
	for _, m := range gpu.Models() {
		for _, p := range m.Sold() {
			if p.Name == gpu.Whole || p.ComputeSlices*p.MaxInstances < m.ComputeSlices || p.Units*p.MaxInstances < m.MemoryUnits {
				continue
			}
			if all := prices[gpu.SKUFor(m.ID, p.Name, 1).ID] * money.Rate(p.MaxInstances); all < prices[string(m.ID)] {
				t.Errorf("%d × %s of %s cost %d, the card %d", p.MaxInstances, p.Name, m.ID, all, prices[string(m.ID)])
			}
		}
	}
}

func TestDefaultPricesInOtherCurrencies(t *testing.T) {
	gw, err := stripe.New(stripe.Config{Key: "sk_test_nothing", WebhookSecrets: []string{"whsec_test"}}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	for code, want := range map[string]money.Rate{"JPY": 319_000_000, "EUR": 1_990_000, "KWD": 796_000} {
		st := storetest.SQLite(t)
		s := billing.New(st, gw, billing.Config{Currency: code}, slog.New(slog.NewTextHandler(io.Discard, nil)))
		if err := s.EnsureDefaults(context.Background(), soldSKUs(), noon); err != nil {
			t.Fatal(err)
		}
		if err := st.View(context.Background(), func(tx *store.Tx) error {
			p, err := s.PriceAt(tx, "a100-80gb", models.OnDemand, noon)
			same(t, code, p.PricePerHour, want)
			same(t, "currency", p.Currency, code)
			return err
		}); err != nil {
			t.Error(err)
		}
	}
}

func TestSetPrice(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		b := newBench(t, st)
		ctx := context.Background()
		if err := b.EnsureDefaults(ctx, soldSKUs(), noon); err != nil {
			t.Fatal(err)
		}
		watch := st.Watch("prices")
		defer watch.Close()
		set := func(p models.Price, at models.Instant) error { _, err := b.SetPrice(ctx, p, at); return err }
		good := models.Price{SKU: "a100-80gb", BillingMode: models.OnDemand, PricePerHour: 2_500_000, EffectiveAt: noon.Add(time.Hour), CreatedBy: "usr_op"}
		if err := set(good, noon); err != nil {
			t.Fatal(err)
		}
		select {
		case <-watch.C():
		default:
			t.Error("nobody was told")
		}
		same(t, "before", b.prices(noon)["a100-80gb"], 1_990_000)
		same(t, "after", b.prices(noon.Add(time.Hour))["a100-80gb"], 2_500_000)
		same(t, "two, after", b.prices(noon.Add(time.Hour))["a100-80gb.x2"], 5_000_000)
		if err := set(good, noon); !models.HasCode(err, models.Conflict) {
			t.Errorf("from the same moment: %v", err)
		}
		pair := models.Price{SKU: "a100-80gb.x2", BillingMode: models.OnDemand, PricePerHour: 3_500_000}
		if err := set(pair, noon); err != nil {
			t.Fatal(err)
		}
		same(t, "a price of its own", b.prices(noon)["a100-80gb.x2"], 3_500_000)
		for field, change := range map[string]func(*models.Price){
			"sku":            func(p *models.Price) { p.SKU = "a100-80gb.9g" },
			"billing_mode":   func(p *models.Price) { p.BillingMode = models.Spot },
			"price_per_hour": func(p *models.Price) { p.PricePerHour = -1 },
			"effective_at":   func(p *models.Price) { p.EffectiveAt = noon - 1 },
			"currency":       func(p *models.Price) { p.Currency = "EUR" },
		} {
			p := good
			change(&p)
			var problem *models.Problem
			if err := set(p, noon); !errors.As(err, &problem) || problem.Fields[field] == "" {
				t.Errorf("a bad %s: %v", field, err)
			}
		}
		p := good
		p.PricePerHour = 1 << 60
		if err := set(p, noon); !models.HasCode(err, models.Invalid) {
			t.Errorf("an enormous price: %v", err)
		}
	})
}
