package stripedouble

import (
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever payers, banks and restarts do in whatever order: a charge never gives
// back more than it took, its refunded sum is the sum of its refunds, a session
// is paid exactly when its payment is, and a restart changes nothing.
func TestAnyOrderKeepsTheSumsRight(t *testing.T) {
	root := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		if err != nil {
			t.Fatal(err)
		}
		now := newClock()
		open := func() *Server {
			s, err := New(Config{Dir: dir, SecretKey: testKey, WebhookSecret: testSecret, PublicURL: "http://127.0.0.1:1", Clock: now.now})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		s := open()
		defer func() { s.Close() }()
		do := func(fn func(x *tx) error) { // a refusal is an outcome, anything else is not
			var refusal *apiError
			if err := s.update(fn); err != nil && !errors.As(err, &refusal) && !errors.Is(err, errNothing) {
				t.Fatal(err)
			}
		}
		form := func(v url.Values, rules []rule) form {
			f, err := newForm(v, rules)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		t.Repeat(map[string]func(*rapid.T){
			"open a session": func(t *rapid.T) {
				v, _ := url.ParseQuery(paymentForm())
				do(func(x *tx) error { _, err := createSession(x, call{form: form(v, sessionParams)}); return err })
			},
			"pay": func(t *rapid.T) {
				id := pick(t, s.state.sessions)
				if id == "" {
					t.Skip("no session yet")
				}
				choices := []url.Values{{"card": {"delayed_success"}}, {"card": {"delayed_failure"}}, {"authenticate": {"complete"}}, {"authenticate": {"fail"}}}
				for _, c := range testCards {
					choices = append(choices, url.Values{"card": {c.Spaced()}})
				}
				typed := rapid.SampledFrom(choices).Draw(t, "typed")
				do(func(x *tx) error {
					if ses, _ := x.state.sessions.get(id); ses.Status == "open" {
						x.payStep(ses, typed)
					}
					return nil
				})
			},
			"refund": func(t *rapid.T) {
				id := pick(t, s.state.charges)
				amount := rapid.Int64Range(-1, 6000).Draw(t, "amount")
				do(func(x *tx) error {
					ch, err := x.chargeOf(id, "")
					if err == nil {
						_, err = x.refund(ch, amount, "", nil)
					}
					return err
				})
			},
			"fail a refund": func(t *rapid.T) {
				id := pick(t, s.state.refunds)
				do(func(x *tx) error {
					if r, ok := x.state.refunds.get(id); ok && r.Status == "succeeded" {
						_, err := x.failRefund(r)
						return err
					}
					return errNothing
				})
			},
			"close a dispute": func(t *rapid.T) {
				id, won := pick(t, s.state.disputes), rapid.Bool().Draw(t, "won")
				do(func(x *tx) error {
					if d, ok := x.state.disputes.get(id); ok && d.Status == "needs_response" {
						_, err := x.closeDispute(d, won)
						return err
					}
					return errNothing
				})
			},
			"wait": func(t *rapid.T) {
				now.add(time.Duration(rapid.IntRange(1, 24*60).Draw(t, "minutes")) * time.Minute)
				do(func(*tx) error { return errNothing })
			},
			"restart": func(t *rapid.T) {
				before := mustJSON(s.state.asObject())
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = open()
				if after := mustJSON(s.state.asObject()); string(after) != string(before) {
					t.Fatalf("before %s\nafter %s", before, after)
				}
			},
			"": func(t *rapid.T) { checkSums(t, s) },
		})
	})
}

// pick draws an id of the table; empty when it has none.
func pick[T any](t *rapid.T, tab *table[T]) string {
	if len(tab.order) == 0 {
		return ""
	}
	return tab.order[rapid.IntRange(0, len(tab.order)-1).Draw(t, tab.name)]
}

func (t *tables) asObject() object {
	out := object{}
	for _, each := range t.all() {
		var rows []row
		each.dump(func(r row) error { rows = append(rows, r); return nil })
		out[each.tableName()] = rows
	}
	return out
}

func checkSums(t *rapid.T, s *Server) {
	refunded := map[string]int64{}
	for _, r := range s.state.refunds.rows {
		if r.Status == "succeeded" {
			refunded[r.Charge] += r.Amount
		}
	}
	succeeded := map[string]int{}
	for id, c := range s.state.charges.rows {
		if c.Refunded != refunded[id] || c.Refunded < 0 || c.Refunded > c.Amount {
			t.Fatalf("charge %s: %d refunded, its refunds are %d of %d", id, c.Refunded, refunded[id], c.Amount)
		}
		if c.Status == "succeeded" {
			succeeded[c.Intent]++
		}
	}
	for id, p := range s.state.intents.rows {
		want := 0
		if p.Status == "succeeded" {
			want = 1
		}
		if succeeded[id] != want || p.Received != int64(want)*p.Amount {
			t.Fatalf("payment %s is %s with %d paid charges and %d received", id, p.Status, succeeded[id], p.Received)
		}
	}
	for id, ses := range s.state.sessions.rows {
		p := s.state.intents.rows[ses.PaymentIntent]
		if (ses.PaymentStatus == "paid") != (p.Status == "succeeded") || (ses.Settle != nil) != (p.Status == "processing") {
			t.Fatalf("session %s: %s %s, its payment %s", id, ses.Status, ses.PaymentStatus, p.Status)
		}
	}
}

// No text makes a parser fail otherwise than by saying what is wrong, and what
// it accepts is what it says it accepts.
func FuzzTyped(f *testing.F) {
	for _, seed := range []string{"4242 4242 4242 4242", "12/34", "a[b][0]=1&a[]=2", "[", "metadata[x]=", "00000000 []", "%zz", "١/٢٠٤٠"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, typed string) {
		if card, wrong := findCard(typed); (wrong == "") != (card.Number != "") {
			t.Errorf("card %q: %+v, %q", typed, card, wrong)
		}
		now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
		if month, year, wrong := parseExpiry(typed, now); wrong == "" && (month < 1 || month > 12 || year < 2026 || year > 9999) {
			t.Errorf("expiry %q: %d/%d", typed, month, year)
		}
		if wrong := checkCVC(typed); wrong == "" && typed != "" && len(strings.Trim(typed, "0123456789")) > 0 {
			t.Errorf("code %q", typed)
		}
		if values, err := url.ParseQuery(typed); err == nil {
			if form, bad := newForm(values, sessionParams); bad == nil {
				new(session).readPayment(form)
			}
			newForm(values, eventListParams)
		}
		parseLine([]byte(typed))
	})
}
