package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"berth/models"
	"berth/models/store"
	"berth/models/store/storetest"
)

func TestPriceList(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, s *store.Store) {
		inTx(t, s, func(tx *store.Tx) error {
			for i, p := range []models.Price{
				{SKU: "a", PricePerHour: 10}, {SKU: "a", PricePerHour: 20, EffectiveAt: midday}, {SKU: "a", PricePerHour: 30, EffectiveAt: midday.Add(time.Hour)},
				{SKU: "b", PricePerHour: 40, EffectiveAt: midday}, {SKU: "a", PricePerHour: 50, BillingMode: models.Spot, EffectiveAt: midday.Add(-time.Hour)},
			} {
				p.ID = fmt.Sprint("pri_", i)
				if p.BillingMode == "" {
					p.BillingMode = models.OnDemand
				}
				if fresh, err := tx.AddPrice(p); err != nil || !fresh {
					t.Errorf("price %d: %t, %v", i, fresh, err)
				}
			}
			fresh, err := tx.AddPrice(models.Price{ID: "pri_again", SKU: "a", BillingMode: models.OnDemand, PricePerHour: 99, EffectiveAt: midday})
			if fresh || err != nil {
				t.Errorf("two prices from one moment: %t, %v", fresh, err)
			}
			return nil
		})
		for at, want := range map[models.Instant]string{midday - 1: "a10", midday: "a20 b40", midday.Add(time.Hour): "a30 b40"} {
			inTx(t, s, func(tx *store.Tx) error {
				list, err := tx.PricesAt(models.OnDemand, at)
				got := ""
				for _, p := range list {
					got += fmt.Sprintf(" %s%d", p.SKU, p.PricePerHour)
					one, err := tx.PriceAt(p.SKU, p.BillingMode, at)
					if err != nil || one != p {
						t.Errorf("alone %+v, in the list %+v, %v", one, p, err)
					}
				}
				if got != " "+want {
					t.Errorf("at %d:%s, want %s", at, got, want)
				}
				if _, err := tx.PriceAt("c", models.OnDemand, at); !models.HasCode(err, models.NotFound) {
					t.Errorf("no price: %v", err)
				}
				return err
			})
		}
		inTx(t, s, func(tx *store.Tx) error {
			list, err := tx.PriceHistory("a")
			if len(list) != 4 || list[0].PricePerHour != 30 {
				t.Errorf("history %+v", list)
			}
			return err
		})
	})
}

func TestUsageSpansPages(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, s *store.Store) {
		inTx(t, s, func(tx *store.Tx) error {
			for i := range 10 {
				if err := tx.InsertSpan(models.UsageSpan{ID: models.SpanID(fmt.Sprintf("i%d.1", i)), InstanceID: models.InstanceID(fmt.Sprint("i", i%2)),
					AccountID: "a", State: models.SpanRunning, StartAt: midday.Add(time.Duration(i/3) * time.Hour), CapSeconds: -1}); err != nil {
					return err
				}
			}
			return tx.InsertSpan(models.UsageSpan{ID: "other.1", AccountID: "b", State: models.SpanClosed, StartAt: midday})
		})
		inTx(t, s, func(tx *store.Tx) error {
			for instance, want := range map[models.InstanceID]int{"": 10, "i0": 5, "i9": 0} {
				seen := map[models.SpanID]bool{}
				last := models.Instant(1 << 62)
				for cursor := ""; ; {
					page, next, err := tx.UsageSpans("a", instance, cursor, 3)
					if err != nil {
						return err
					}
					for _, u := range page {
						if seen[u.ID] || u.StartAt > last {
							t.Errorf("%s again, or out of order", u.ID)
						}
						seen[u.ID], last = true, u.StartAt
					}
					if cursor = next; next == "" {
						break
					}
				}
				if len(seen) != want {
					t.Errorf("instance %q: %d spans, want %d", instance, len(seen), want)
				}
			}
			for _, cursor := range []string{"other.1", "none.1"} {
				if _, _, err := tx.UsageSpans("a", "", cursor, 3); !models.HasCode(err, models.Invalid) {
					t.Errorf("cursor %s: %v", cursor, err)
				}
			}
			return nil
		})
	})
}

func TestSaveSpansWritesOnlyWhatMeteringChanges(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, s *store.Store) {
		before := models.UsageSpan{ID: "i.1", InstanceID: "i", AccountID: "a", InstanceName: "name", SKU: "sku", BillingMode: models.OnDemand,
			PricePerHour: 7, Currency: "USD", State: models.SpanRunning, StartAt: midday, CapSeconds: -1}
		inTx(t, s, func(tx *store.Tx) error { return tx.InsertSpan(before) })
		changed := before
		changed.Cursor, changed.Charged, changed.State, changed.CapSeconds = 5, 0, models.SpanCapped, 0
		changed.PricePerHour, changed.AccountID, changed.StartAt = 99, "thief", 1
		inTx(t, s, func(tx *store.Tx) error { return tx.SaveSpans(changed) })
		inTx(t, s, func(tx *store.Tx) error {
			got, err := tx.Span("i.1")
			want := before
			want.Cursor, want.State, want.CapSeconds = 5, models.SpanCapped, 0
			if got != want {
				t.Errorf("saved %+v, want %+v", got, want)
			}
			return err
		})
	})
}

func TestStripeEventsAreStoredOnce(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, s *store.Store) {
		for want := range 2 {
			inTx(t, s, func(tx *store.Tx) error {
				fresh, err := tx.ReceiveStripeEvent(models.StripeEvent{ID: "evt_1", Payload: []byte("{}"), ReceivedAt: midday, NextAt: midday})
				if fresh != (want == 0) {
					t.Errorf("time %d: fresh %t", want+1, fresh)
				}
				return err
			})
		}
		inTx(t, s, func(tx *store.Tx) error {
			for at, want := range map[models.Instant]int{midday - 1: 0, midday: 1} {
				due, err := tx.PendingStripeEvents(at, 10)
				if err != nil || len(due) != want {
					t.Errorf("%d due, want %d, %v", len(due), want, err)
				}
			}
			next, err := tx.NextStripeEvent()
			if next != midday {
				t.Errorf("next at %d", next)
			}
			return err
		})
		inTx(t, s, func(tx *store.Tx) error {
			e, err := tx.LockStripeEvent("evt_1")
			if err != nil {
				return err
			}
			e.ProcessedAt = midday
			return tx.SaveStripeEvent(e)
		})
		if err := s.View(context.Background(), func(tx *store.Tx) error {
			next, err := tx.NextStripeEvent()
			if next != 0 {
				t.Errorf("next at %d of none", next)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	})
}
