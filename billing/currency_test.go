package billing_test

import (
	"context"
	"strings"
	"testing"

	"berth/billing"
	"berth/models/store/storetest"
)

// A11 beside a restart: a database whose wallets are in one currency is not served
// in another, and one currency has one spelling.
func TestOneDatabaseOneCurrency(t *testing.T) {
	st := storetest.SQLite(t)
	b := newBench(t, st)
	in := func(currency string) *billing.Service {
		return billing.New(st, nil, billing.Config{Currency: currency}, quiet)
	}
	if err := in("KWD").CheckCurrency(context.Background()); err != nil {
		t.Errorf("without wallets: %v", err)
	}
	b.accountIn("JPY", "UTC", 0)
	for currency, ok := range map[string]bool{"JPY": true, "jpy": true, "": false, "USD": false, "XXX": false} {
		err := in(currency).CheckCurrency(context.Background())
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "JPY") {
			t.Errorf("%q: %v", currency, err)
		}
	}
	same(t, "spelling", in("jpy").Config().Currency, "JPY")
}
