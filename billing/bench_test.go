package billing_test

import (
	"context"
	"fmt"
	"testing"

	"berth/billing"
	"berth/billing/stripe"
	"berth/models"
	"berth/models/store"
	"berth/models/store/storetest"
	"berth/money"
)

// BenchmarkReportAll is a node's tick with a hundred spans of ten accounts. The
// figure to look at is reports/s.
//
//	go test ./billing -run '^$' -bench ReportAll
func BenchmarkReportAll(b *testing.B) {
	for name, open := range map[string]func(testing.TB) *store.Store{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		b.Run(name, func(b *testing.B) { benchmarkReportAll(b, open(b)) })
	}
}

func benchmarkReportAll(b *testing.B, st *store.Store) {
	const spans, accounts = 100, 10
	gw, err := stripe.New(stripe.Config{Key: "sk_test_nothing", WebhookSecrets: []string{"whsec_test"}}, quiet)
	if err != nil {
		b.Fatal(err)
	}
	s := billing.New(st, gw, billing.Config{}, quiet)
	ctx := context.Background()
	readings := make([]billing.Reading, spans)
	err = st.InTx(ctx, func(tx *store.Tx) error {
		for i := range accounts {
			a := models.Account{ID: models.AccountID(fmt.Sprint("acc_", i)), Currency: "USD"}
			if err := tx.CreateAccount(a, "usr_1"); err != nil {
				return err
			}
			if err := s.OpenWallet(tx, a); err != nil {
				return err
			}
			if _, err := tx.Post(models.Transfer{Key: "pay:" + string(a.ID), Kind: "topup", At: noon},
				models.Leg{Code: models.WalletCode(a.ID), Amount: 1_000_000 * money.Unit}, models.Leg{Code: models.ClearingCode("USD"), Amount: -1_000_000 * money.Unit}); err != nil {
				return err
			}
		}
		for i := range readings {
			in := models.Instance{ID: models.InstanceID(fmt.Sprint("ins_", i)), AccountID: models.AccountID(fmt.Sprint("acc_", i%accounts)),
				BillingMode: models.OnDemand, PricePerHour: 1_990_000, Currency: "USD", Run: 1, RequestedAt: noon}
			if err := s.OpenSpan(tx, in, 0, noon); err != nil {
				return err
			}
			readings[i].Span = billing.SpanID(in)
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	second := int64(0)
	for b.Loop() {
		second++
		for i := range readings {
			readings[i].Seconds = second
		}
		if err := st.InTx(ctx, func(tx *store.Tx) error { _, err := s.ReportAll(tx, readings, sec(second)); return err }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(second*spans)/b.Elapsed().Seconds(), "reports/s")
}
