package billing_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/billing/stripedouble"
	"berth/models"
	"berth/models/store"
	"berth/models/store/storetest"
	"berth/money"
)

const fifty = 50 * money.Unit

func TestTopup(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		x := newTill(t, st)
		account := x.account(0)
		watch := st.Watch("account:" + string(account))
		defer watch.Close()
		top := x.topup(account, fifty)
		same(t, "state", top.State, models.TopupOpen)
		if !strings.HasPrefix(top.CheckoutURL, x.address+"/") || !strings.HasPrefix(top.SessionID, "cs_") {
			t.Fatalf("page %q of %q", top.CheckoutURL, top.SessionID)
		}
		status, back := x.post(top, "card", "4242 4242 4242 4242")
		same(t, "paying", status, http.StatusSeeOther)
		same(t, "the way back", back, "http://127.0.0.1:9/wallet?topup="+string(top.ID))
		x.deliver()
		same(t, "balance", x.balance(account), fifty)
		same(t, "rows", len(x.ledger(account)), 1)
		same(t, "state", x.state(top).State, models.TopupPaid)
		select {
		case <-watch.C():
		default:
			t.Error("the open page was not woken")
		}
		again, err := x.SyncTopup(context.Background(), top.ID, rightNow())
		if err != nil || again.State != models.TopupPaid || x.balance(account) != fifty {
			t.Errorf("looking again: %+v, %v", again, err)
		}
		list, next, err := x.Topups(context.Background(), account, "", 10)
		if err != nil || len(list) != 1 || next != "" {
			t.Errorf("listed %d, %v", len(list), err)
		}
	})
}

// The way back asks by itself: nobody waits for a webhook.
func TestReturnPageDoesNotWait(t *testing.T) {
	x := newTill(t, storetest.SQLite(t))
	account := x.account(0)
	top := x.topup(account, fifty)
	x.card(top, "4242424242424242")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := x.SyncTopup(context.Background(), top.ID, rightNow()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	same(t, "balance before any webhook", x.balance(account), fifty)
	x.deliver()
	same(t, "balance after them", x.balance(account), fifty)
	same(t, "rows", len(x.ledger(account)), 1)
}

func TestTopupThatIsNotPaid(t *testing.T) {
	x := newTill(t, storetest.SQLite(t))
	t.Run("declined, then another card", func(t *testing.T) {
		account := x.account(0)
		top := x.topup(account, fifty)
		status, _ := x.post(top, "card", "4000000000009995")
		same(t, "declined", status, http.StatusPaymentRequired)
		x.deliver()
		got := x.state(top)
		same(t, "still open", got.State, models.TopupOpen)
		if !strings.Contains(got.Reason, "insufficient funds") {
			t.Errorf("reason %q", got.Reason)
		}
		same(t, "balance", x.balance(account), 0)
		x.card(top, "4242424242424242")
		x.deliver()
		same(t, "balance", x.balance(account), fifty)
		same(t, "reason", x.state(top).Reason, "")
	})
	t.Run("authentication", func(t *testing.T) {
		account := x.account(0)
		top := x.topup(account, fifty)
		if status, _ := x.post(top, "card", "4000002760003184"); status != http.StatusSeeOther {
			t.Fatalf("asking answered %d", status)
		}
		x.deliver()
		same(t, "state", x.state(top).State, models.TopupOpen)
		same(t, "balance", x.balance(account), 0)
		if status, _ := x.post(top, "authenticate", "complete"); status != http.StatusSeeOther {
			t.Fatalf("authenticating answered %d", status)
		}
		x.deliver()
		same(t, "balance", x.balance(account), fifty)
	})
	t.Run("closed by the renter", func(t *testing.T) {
		account := x.account(0)
		top := x.topup(account, fifty)
		for range 2 {
			got, err := x.CancelTopup(context.Background(), account, top.ID, rightNow())
			if err != nil || got.State != models.TopupExpired {
				t.Errorf("%+v, %v", got, err)
			}
		}
		x.deliver()
		same(t, "state", x.state(top).State, models.TopupExpired)
		paid := x.topup(account, fifty)
		x.card(paid, "4242424242424242")
		if got, err := x.CancelTopup(context.Background(), account, paid.ID, rightNow()); err != nil || got.State != models.TopupPaid {
			t.Errorf("closing a paid one: %+v, %v", got, err)
		}
		if _, err := x.CancelTopup(context.Background(), x.account(0), paid.ID, rightNow()); !models.HasCode(err, models.NotFound) {
			t.Errorf("closing somebody else's: %v", err)
		}
	})
}

// A7: completed is not paid.
func TestBankDebits(t *testing.T) {
	for name, tc := range map[string]struct {
		choice string
		state  string
		gets   money.Amount
	}{
		"that arrive": {"delayed_success", models.TopupPaid, 100 * money.Unit},
		"that fail":   {"delayed_failure", models.TopupFailed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTill(t, storetest.SQLite(t))
			account := x.account(0)
			top := x.topup(account, 100*money.Unit)
			x.card(top, tc.choice)
			x.deliver()
			same(t, "state before", x.state(top).State, models.TopupProcessing)
			same(t, "balance before", x.balance(account), 0)
			x.control("settle/"+top.SessionID, nil)
			x.deliver()
			same(t, "state", x.state(top).State, tc.state)
			same(t, "balance", x.balance(account), tc.gets)
			if tc.gets == 0 && x.state(top).Reason == "" {
				t.Error("nobody is told why")
			}
		})
	}
}

func TestStartTopupRefuses(t *testing.T) {
	x := newTill(t, storetest.SQLite(t))
	for currency, bad := range map[string][]money.Amount{
		"USD": {0, -5 * money.Unit, 4_990_000, 5_001 * money.Unit, 5_005_000, 1 << 62},
		"JPY": {80_500_000, 799 * money.Unit},
		"KWD": {2_005_000, 2_001_000},
	} {
		account := x.accountIn(currency, "UTC", 0)
		for _, amount := range bad {
			_, err := x.start(account, amount, "")
			var p *models.Problem
			if !errors.As(err, &p) || p.Code != models.Invalid || p.Fields["amount"] == "" {
				t.Errorf("%d %s: %v", amount, currency, err)
			}
		}
		list, _, err := x.Topups(context.Background(), account, "", 10)
		if err != nil || len(list) != 0 {
			t.Errorf("%d rows of refused top-ups, %v", len(list), err)
		}
	}
}

// A7 and A5 in any order: a bank debit is told of by three events, each once or
// twice, worked off at once or together, by this portal or the next. It is one
// credit when the bank pays, and none when it does not.
func TestDebitToldInAnyOrder(t *testing.T) {
	x := newTill(t, storetest.SQLite(t))
	event := 0
	rapid.Check(t, func(r *rapid.T) {
		account := x.account(0)
		top := x.topup(account, fifty)
		intent := "pi_" + string(top.ID)
		paid := rapid.Bool().Draw(r, "paid")
		kinds := []string{"checkout.session.completed", "checkout.session.async_payment_failed"}
		if paid {
			kinds = []string{"checkout.session.completed", "checkout.session.async_payment_succeeded", "payment_intent.succeeded"}
		}
		for _, kind := range kinds {
			if rapid.Bool().Draw(r, "twice") {
				kinds = append(kinds, kind)
			}
		}
		for _, kind := range rapid.Permutation(kinds).Draw(r, "order") {
			object := session(top, intent, 5000, "usd", "unpaid")
			switch kind {
			case "checkout.session.async_payment_succeeded":
				object = session(top, intent, 5000, "usd", "paid")
			case "payment_intent.succeeded":
				object = payment(top, intent, 5000, "usd")
			}
			event++
			x.forge(fmt.Sprint("evt_debit_", event), kind, object)
			if rapid.Bool().Draw(r, "at once") {
				x.deliver()
			}
			if rapid.Bool().Draw(r, "restart") {
				x.restart()
			}
		}
		x.deliver()
		balance, state := money.Amount(0), models.TopupFailed
		if paid {
			balance, state = fifty, models.TopupPaid
		}
		if got := x.balance(account); got != balance || x.state(top).State != state {
			r.Fatalf("balance %d, %+v", got, x.state(top))
		}
	})
}

// A11: exponents, in both directions.
func TestTopupInOtherCurrencies(t *testing.T) {
	x := newTill(t, storetest.SQLite(t))
	for currency, amount := range map[string]money.Amount{"JPY": 800 * money.Unit, "KRW": 7_000 * money.Unit, "KWD": 2_010_000, "USD": 80 * money.Unit} {
		account := x.accountIn(currency, "UTC", 0)
		x.card(x.topup(account, amount), "4242424242424242")
		x.deliver()
		same(t, currency, x.balance(account), amount)
	}
}

func TestTopupIsMadeOnce(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		x := newTill(t, st)
		account := x.account(0)
		got := make([]models.Topup, 8)
		var all sync.WaitGroup
		for i := range got {
			all.Go(func() {
				var err error
				if got[i], err = x.start(account, fifty, "key-1"); err != nil && !models.HasCode(err, models.Unavailable) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for _, top := range got {
			same(t, "id", top.ID, got[0].ID)
		}
		top, err := x.start(account, fifty, "key-1")
		if err != nil || top.State != models.TopupOpen {
			t.Errorf("%+v, %v", top, err)
		}
		if _, err := x.start(account, 2*fifty, "key-1"); !models.HasCode(err, models.KeyReused) {
			t.Errorf("another amount under the key: %v", err)
		}
		other, err := x.start(x.account(0), fifty, "key-1")
		if err != nil || other.ID == top.ID {
			t.Errorf("another account's key: %v", err)
		}
	})
}

// The row is there before the provider hears of it: whatever is lost, the same
// page comes of it.
func TestTopupSurvivesALostAnswer(t *testing.T) {
	x := newTill(t, storetest.SQLite(t))
	account := x.account(0)
	if err := x.double.SetFaults(stripedouble.Faults{TimeoutAfterCommitNext: 3}); err != nil { // the customer, told three times
		t.Fatal(err)
	}
	top, err := x.start(account, fifty, "k")
	if !models.HasCode(err, models.Unavailable) || top.State != models.TopupCreating {
		t.Fatalf("%+v, %v", top, err)
	}
	if err := x.double.SetFaults(stripedouble.Faults{}); err != nil {
		t.Fatal(err)
	}
	x.restart() // the portal was killed meanwhile
	same(t, "nothing is lost", x.state(top).State, models.TopupCreating)
	if err := x.ReconcileTopups(context.Background(), rightNow().Add(20*time.Minute)); err != nil {
		t.Fatal(err)
	}
	opened := x.state(top)
	same(t, "state", opened.State, models.TopupOpen)
	again, err := x.start(account, fifty, "k")
	if err != nil || again.SessionID != opened.SessionID {
		t.Errorf("another page: %+v, %v", again, err)
	}
	x.card(opened, "4242424242424242")
	// All webhooks are lost: the job asks.
	if err := x.ReconcileTopups(context.Background(), rightNow().Add(20*time.Minute)); err != nil {
		t.Fatal(err)
	}
	same(t, "balance", x.balance(account), fifty)

	late := x.topup(account, fifty)
	x.in(func(tx *store.Tx) error { late.State = models.TopupCreating; return tx.SaveTopup(late) })
	if got, err := x.SyncTopup(context.Background(), late.ID, rightNow().Add(23*time.Hour)); err != nil || got.State != models.TopupExpired {
		t.Errorf("a key too old to use: %+v, %v", got, err)
	}
}

// A5 and row 28: one payment, told of again and again, at once, after a restart
// and in other words: one credit.
func TestOnePaymentIsOneCredit(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, st *store.Store) {
		x := newTill(t, st)
		account := x.account(10 * money.Unit)
		top := x.topup(account, fifty)
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { x.forge("evt_1", "checkout.session.completed", session(top, "pi_1", 5000, "usd", "paid")) })
			all.Go(func() {
				if _, err := x.ProcessWebhooks(context.Background(), rightNow().Add(time.Second)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		x.restart()
		x.forge("evt_1", "checkout.session.completed", session(top, "pi_1", 5000, "usd", "paid"))
		x.forge("evt_2", "payment_intent.succeeded", payment(top, "pi_1", 5000, "usd"))
		x.deliver()
		same(t, "balance", x.balance(account), 60*money.Unit)
		same(t, "rows", len(x.ledger(account)), 2)
	})
}

// What does not fit is not guessed at, and nobody's money is lost.
func TestOddPayments(t *testing.T) {
	x := newTill(t, storetest.SQLite(t))
	event := 0
	send := func(kind string, object map[string]any) {
		event++
		x.forge(fmt.Sprint("evt_odd_", event), kind, object)
		x.deliver()
	}
	t.Run("29: a top-up paid twice", func(t *testing.T) {
		account := x.account(0)
		top := x.topup(account, fifty)
		send("payment_intent.succeeded", payment(top, "pi_a", 5000, "usd"))
		send("payment_intent.succeeded", payment(top, "pi_b", 5000, "usd"))
		send("checkout.session.completed", session(top, "pi_b", 5000, "usd", "paid"))
		same(t, "balance", x.balance(account), 2*fifty)
		same(t, "the first stays", x.state(top).PaymentIntent, "pi_a")
	})
	t.Run("another amount", func(t *testing.T) {
		account := x.account(0)
		top := x.topup(account, fifty)
		send("payment_intent.succeeded", payment(top, "pi_c", 4999, "usd"))
		same(t, "balance", x.balance(account), 0)
		if got := x.state(top); got.State == models.TopupPaid || got.Reason == "" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("another currency", func(t *testing.T) {
		account := x.accountIn("JPY", "UTC", 0)
		top := x.topup(account, 800*money.Unit)
		send("checkout.session.completed", session(top, "pi_d", 800, "usd", "paid"))
		same(t, "balance", x.balance(account), 0)
		send("checkout.session.completed", session(top, "pi_e", 800, "jpy", "paid"))
		same(t, "balance", x.balance(account), 800*money.Unit)
	})
	t.Run("nothing was to be paid", func(t *testing.T) {
		account := x.account(0)
		top := x.topup(account, fifty)
		send("checkout.session.completed", session(top, "", 5000, "usd", "no_payment_required"))
		same(t, "balance", x.balance(account), 0)
		same(t, "state", x.state(top).State, models.TopupCanceled)
	})
	t.Run("old news after the end", func(t *testing.T) {
		account := x.account(0)
		top := x.topup(account, fifty)
		send("checkout.session.completed", session(top, "pi_f", 5000, "usd", "paid"))
		for _, kind := range []string{"checkout.session.expired", "checkout.session.async_payment_failed"} {
			object := session(top, "pi_f", 5000, "usd", "unpaid")
			object["status"] = "expired"
			send(kind, object)
		}
		same(t, "state", x.state(top).State, models.TopupPaid)
		same(t, "balance", x.balance(account), fifty)
	})
	t.Run("money after the end", func(t *testing.T) {
		account := x.account(0)
		top := x.topup(account, fifty)
		expired := session(top, "", 5000, "usd", "unpaid")
		expired["status"] = "expired"
		send("checkout.session.expired", expired)
		same(t, "state", x.state(top).State, models.TopupExpired)
		send("payment_intent.succeeded", payment(top, "pi_g", 5000, "usd"))
		same(t, "balance", x.balance(account), fifty)
		same(t, "state", x.state(top).State, models.TopupPaid)
	})
	t.Run("somebody else's", func(t *testing.T) {
		send("checkout.session.completed", session(models.Topup{ID: "top_elsewhere", SessionID: "cs_x"}, "pi_h", 5000, "usd", "paid"))
		send("payment_intent.succeeded", map[string]any{"id": "pi_i", "object": "payment_intent", "amount_received": 5000, "currency": "usd"})
		send("invoice.paid", map[string]any{"id": "in_1", "object": "invoice"})
	})
}

func TestWebhooksThatAreRefused(t *testing.T) {
	x := newTill(t, storetest.SQLite(t))
	ctx := context.Background()
	if err := x.ReceiveWebhook(ctx, []byte(`{}`), "t=1,v1=00", rightNow()); !models.HasCode(err, models.Invalid) {
		t.Errorf("a forgery: %v", err)
	}
	// A database that cannot be written to is our failure: the provider repeats.
	dead, cancel := context.WithCancel(ctx)
	cancel()
	var p *models.Problem
	body, header := x.signed("evt_dead", "ping", map[string]any{"id": "x"})
	if err := x.ReceiveWebhook(dead, body, header, rightNow()); err == nil || errors.As(err, &p) {
		t.Errorf("a webhook that could not be stored: %v", err)
	}
}

// rowKinds are an account's ledger, oldest first, without the ids that differ
// from run to run.
func (x *till) rowKinds(account models.AccountID) (out []string) {
	x.t.Helper()
	for _, r := range slices.Backward(x.ledger(account)) {
		out = append(out, fmt.Sprintf("%s %d", r.Kind, r.Amount))
	}
	return out
}
