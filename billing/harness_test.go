package billing_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"berth/billing"
	"berth/billing/stripe"
	"berth/models"
	"berth/models/store"
	"berth/money"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is when tests begin; seconds and instants count from it.
var noon = models.At(time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC))

func sec(n int64) models.Instant { return noon + models.Instant(n*1_000_000) }

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// bench is billing on one database, without a payment provider.
type bench struct {
	*billing.Service
	t    *testing.T
	st   *store.Store
	made int
}

func newBench(t *testing.T, st *store.Store) *bench {
	t.Helper()
	// A port that nothing listens on: a test that calls the provider here fails.
	gw, err := stripe.New(stripe.Config{Key: "sk_test_nothing", WebhookSecrets: []string{"whsec_test"}, BaseURL: "http://127.0.0.1:9"}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, st: st}
	b.Service = billing.New(st, gw, billing.Config{TestPayments: true, Seller: billing.Party{Name: "Quay Compute"}}, quiet)
	t.Cleanup(b.verify)
	return b
}

// verify checks the books: after every test, on every database.
func (b *bench) verify() {
	b.t.Helper()
	broken, err := b.Verify(context.Background())
	if err != nil {
		b.t.Error(err)
	}
	for _, what := range broken {
		b.t.Error(what)
	}
}

func (b *bench) in(work func(tx *store.Tx) error) {
	b.t.Helper()
	if err := b.try(work); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) try(work func(tx *store.Tx) error) error {
	return b.st.InTx(context.Background(), work)
}

// account opens an account in UTC with money in its wallet.
func (b *bench) account(balance money.Amount) models.AccountID {
	b.t.Helper()
	return b.accountIn("USD", "UTC", balance)
}

func (b *bench) accountIn(currency, zone string, balance money.Amount) models.AccountID {
	b.t.Helper()
	b.made++
	a := models.Account{ID: models.AccountID(fmt.Sprintf("acc_%03d", b.made)), Name: "Tidemark Lab", Currency: currency, TimeZone: zone, CreatedAt: noon}
	u := models.User{ID: models.UserID(fmt.Sprintf("usr_%03d", b.made)), Email: fmt.Sprintf("u%d@example.org", b.made), CreatedAt: noon}
	b.in(func(tx *store.Tx) error {
		if err := tx.CreateUser(u); err != nil {
			return err
		}
		if err := tx.CreateAccount(a, u.ID); err != nil {
			return err
		}
		return b.OpenWallet(tx, a)
	})
	if balance > 0 {
		b.pay(a.ID, "pi_"+string(a.ID), balance)
	}
	return a.ID
}

// pay puts money into a wallet as a payment does.
func (b *bench) pay(id models.AccountID, intent string, amount money.Amount) {
	b.t.Helper()
	b.in(func(tx *store.Tx) error {
		w, err := tx.LockWallet(id)
		if err != nil {
			return err
		}
		tx.Changed("account:" + string(id))
		_, err = tx.Post(models.Transfer{Key: "pay:" + intent, Kind: "topup", Reason: "Top-up", At: noon},
			models.Leg{Code: models.WalletCode(id), Amount: amount}, models.Leg{Code: models.ClearingCode(w.Currency), Amount: -amount})
		return err
	})
}

// instance is one that was asked for at noon.
func (b *bench) instance(id models.AccountID, name string, rate money.Rate) models.Instance {
	return models.Instance{ID: models.InstanceID("ins_" + string(id) + "_" + name), AccountID: id, Name: name, SKU: "a100-80gb.1g.10gb",
		BillingMode: models.OnDemand, PricePerHour: rate, Currency: "USD", Run: 1, RequestedAt: noon}
}

// open starts the meter of a run at a time.
func (b *bench) open(in models.Instance, at models.Instant) models.SpanID {
	b.t.Helper()
	in.RequestedAt = min(in.RequestedAt, at)
	b.in(func(tx *store.Tx) error { return b.OpenSpan(tx, in, 0, at) })
	return billing.SpanID(in)
}

func (b *bench) report(id models.SpanID, seconds int64, at models.Instant) (a billing.Accepted) {
	b.t.Helper()
	b.in(func(tx *store.Tx) (err error) { a, err = b.Report(tx, id, seconds, at); return err })
	return a
}

func (b *bench) close(id models.SpanID, seconds int64, at models.Instant) {
	b.t.Helper()
	b.in(func(tx *store.Tx) error { return b.Close(tx, id, &seconds, "stopped", at) })
}

func (b *bench) span(id models.SpanID) models.UsageSpan {
	b.t.Helper()
	spans, err := b.Spans(context.Background(), id)
	if err != nil || len(spans) != 1 {
		b.t.Fatalf("span %s: %d found, %v", id, len(spans), err)
	}
	return spans[0]
}

func (b *bench) wallet(id models.AccountID, at models.Instant) billing.Wallet {
	b.t.Helper()
	w, err := b.Wallet(context.Background(), id, at)
	if err != nil {
		b.t.Fatal(err)
	}
	return w
}

func (b *bench) ledger(id models.AccountID) []billing.LedgerRow {
	b.t.Helper()
	rows, next, err := b.Ledger(context.Background(), id, "", 1000)
	if err != nil || next != "" {
		b.t.Fatalf("ledger: %v, next %q", err, next)
	}
	return rows
}

func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
