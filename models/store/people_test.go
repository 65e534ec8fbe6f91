package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"berth/models"
	"berth/models/store"
	"berth/models/store/storetest"
	"berth/money"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// addPerson inserts a user with an account of their own.
func addPerson(t *testing.T, s *store.Store, email string) (models.User, models.Account) {
	t.Helper()
	u := models.User{ID: models.UserID(store.NewID("usr", noon)), Email: email, Name: "Ada", PasswordHash: "x", CreatedAt: models.At(noon)}
	a := models.Account{ID: models.AccountID(store.NewID("acc", noon)), Name: "Ada", Currency: "USD", TimeZone: "UTC", CreatedAt: models.At(noon)}
	err := s.InTx(context.Background(), func(tx *store.Tx) error {
		if err := tx.CreateUser(u); err != nil {
			return err
		}
		return tx.CreateAccount(a, u.ID)
	})
	if err != nil {
		t.Fatal(err)
	}
	return u, a
}

func inTx(t *testing.T, s *store.Store, work func(*store.Tx) error) {
	t.Helper()
	if err := s.InTx(context.Background(), work); err != nil {
		t.Fatal(err)
	}
}

func TestEmailIsTakenOnce(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, s *store.Store) {
		u, _ := addPerson(t, s, "ada@example.org")
		again := models.User{ID: "usr_2", Email: u.Email}
		err := s.InTx(context.Background(), func(tx *store.Tx) error { return tx.CreateUser(again) })
		if !errors.Is(err, store.ErrEmailTaken) {
			t.Fatalf("second user: %v", err)
		}
		inTx(t, s, func(tx *store.Tx) error {
			got, err := tx.UserByEmail("ada@example.org")
			if got.ID != u.ID {
				t.Errorf("found %v", got)
			}
			if _, err := tx.UserByEmail("nobody@example.org"); !models.HasCode(err, models.NotFound) {
				t.Errorf("unknown e-mail: %v", err)
			}
			if _, err := tx.FirstOperator(); !models.HasCode(err, models.NotFound) {
				t.Errorf("no operator: %v", err)
			}
			return err
		})
	})
}

func TestSessionsEndForTheirOwnerOnly(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, s *store.Store) {
		ctx, at := context.Background(), models.At(noon)
		ada, account := addPerson(t, s, "ada@example.org")
		bob, _ := addPerson(t, s, "bob@example.org")
		inTx(t, s, func(tx *store.Tx) error {
			for i, life := range []time.Duration{time.Hour, time.Hour, time.Hour, -time.Second} {
				err := tx.CreateSession(models.Session{IDHash: fmt.Sprintf("h%d", i), UserID: ada.ID, AccountID: account.ID, SeenAt: at, ExpiresAt: at.Add(life)})
				if err != nil {
					return err
				}
			}
			session, who, err := tx.SessionIdentity("h0", at)
			if session.UserID != ada.ID || who.User.Email != ada.Email || who.Account.ID != account.ID || who.Role != models.Owner {
				t.Errorf("identity %+v", who)
			}
			if _, _, err := tx.SessionIdentity("h3", at); !models.HasCode(err, models.NotFound) {
				t.Errorf("an expired session: %v", err)
			}
			if list, err := tx.Sessions(ada.ID, at); err != nil || len(list) != 3 {
				t.Errorf("sessions %v, %v", list, err)
			}
			return err
		})

		good := func(hashes ...string) (out []string) {
			t.Helper()
			inTx(t, s, func(tx *store.Tx) (err error) {
				out, err = tx.GoodSessions(hashes, at)
				return err
			})
			return out
		}
		w := s.Watch(store.SignOuts)
		defer w.Close()
		err := s.InTx(ctx, func(tx *store.Tx) error { return tx.RevokeSession(bob.ID, "h0") })
		if !models.HasCode(err, models.NotFound) {
			t.Errorf("another's session: %v", err)
		}
		inTx(t, s, func(tx *store.Tx) error { return tx.RevokeSession(ada.ID, "h0") })
		<-w.C()
		if got := good("h0", "h1", "h3", "never"); !slices.Equal(got, []string{"h1"}) {
			t.Errorf("good sessions: %v", got)
		}
		inTx(t, s, func(tx *store.Tx) error { return tx.RevokeSessions(ada.ID, "h2") })
		<-w.C()
		if got := good("h0", "h1", "h2"); !slices.Equal(got, []string{"h2"}) {
			t.Errorf("good sessions: %v", got)
		}
		inTx(t, s, func(tx *store.Tx) error {
			if err := tx.DropExpiredSessions(at); err != nil {
				return err
			}
			if err := tx.TouchSession("h2", at.Add(time.Minute), at.Add(2*time.Hour)); err != nil {
				return err
			}
			got, _, err := tx.SessionIdentity("h2", at.Add(90*time.Minute))
			if got.SeenAt != at.Add(time.Minute) {
				t.Errorf("touched %v", got)
			}
			return err
		})
	})
}

func TestTokensEndAtOnceAndForTheirOwnerOnly(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, s *store.Store) {
		ada, account := addPerson(t, s, "ada@example.org")
		bob, bobs := addPerson(t, s, "bob@example.org")
		token := models.Token{ID: "tok_1", UserID: ada.ID, AccountID: account.ID, Name: "laptop", Hash: "hash"}
		inTx(t, s, func(tx *store.Tx) error {
			if err := tx.CreateToken(token); err != nil {
				return err
			}
			if _, who, err := tx.TokenIdentity("hash"); err != nil || who.User.ID != ada.ID || who.Role != models.Owner {
				t.Errorf("identity %v, %v", who, err)
			}
			for _, other := range []error{tx.RevokeToken(bobs.ID, bob.ID, token.ID), tx.RevokeToken(account.ID, bob.ID, token.ID), tx.RevokeToken(bobs.ID, ada.ID, token.ID)} {
				if !models.HasCode(other, models.NotFound) {
					t.Errorf("another's token: %v", other)
				}
			}
			if good, err := tx.GoodTokens([]models.TokenID{token.ID, "tok_never"}); err != nil || !slices.Equal(good, []models.TokenID{token.ID}) {
				t.Errorf("good tokens: %v, %v", good, err)
			}
			return tx.TouchToken(token.ID, models.At(noon))
		})
		inTx(t, s, func(tx *store.Tx) error {
			if list, err := tx.Tokens(account.ID, ada.ID); err != nil || len(list) != 1 || list[0].LastUsedAt != models.At(noon) {
				t.Errorf("tokens %v, %v", list, err)
			}
			return tx.RevokeToken(account.ID, ada.ID, token.ID)
		})
		inTx(t, s, func(tx *store.Tx) error {
			if _, _, err := tx.TokenIdentity("hash"); !models.HasCode(err, models.NotFound) {
				t.Errorf("revoked: %v", err)
			}
			if good, err := tx.GoodTokens([]models.TokenID{token.ID}); err != nil || len(good) != 0 {
				t.Errorf("good after it was revoked: %v, %v", good, err)
			}
			return nil
		})
	})
}

func TestAccountsListsOwnersAndMoneyByPage(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, s *store.Store) {
		var ids []models.AccountID
		for i := range 5 {
			u, a := addPerson(t, s, fmt.Sprintf("u%d@example.org", i))
			ids = append(ids, a.ID)
			if i == 0 { // an owner who came later does not take the first one's place
				later := models.User{ID: models.UserID("usr_zzz"), Email: "later@example.org"}
				inTx(t, s, func(tx *store.Tx) error {
					if err := tx.CreateUser(later); err != nil {
						return err
					}
					if home, err := tx.HomeAccount(u.ID); err != nil || home.ID != a.ID {
						t.Errorf("home %v, %v", home, err)
					}
					return tx.AddMember(models.Member{AccountID: a.ID, UserID: later.ID, Role: models.Owner})
				})
			}
		}
		var seen []models.AccountID
		cursor := ""
		for {
			var next string
			inTx(t, s, func(tx *store.Tx) error {
				list, n, err := tx.Accounts(cursor, 2)
				for _, a := range list {
					seen = append(seen, a.ID)
					if a.ID == ids[0] && a.Owner != "u0@example.org" {
						t.Errorf("owner %s", a.Owner)
					}
				}
				next = n
				return err
			})
			if next == "" {
				break
			}
			cursor = next
		}
		if len(seen) != 5 {
			t.Errorf("saw %v of %v", seen, ids)
		}
		inTx(t, s, func(tx *store.Tx) error {
			if _, err := tx.Unbilled(ids); err != nil {
				return err
			}
			names, err := tx.AccountNames(ids)
			if len(names) != 5 {
				t.Errorf("names %v", names)
			}
			if err := tx.SetFrozen(ids[1], true); err != nil {
				return err
			}
			if a, err := tx.Account(ids[1]); err != nil || !a.Frozen {
				t.Errorf("frozen %v, %v", a, err)
			}
			return err
		})
	})
}

func TestStatsCountOnBothDatabases(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, s *store.Store) {
		_, a := addPerson(t, s, "ada@example.org")
		inTx(t, s, func(tx *store.Tx) error {
			stats, err := tx.Stats()
			if err != nil {
				return err
			}
			if len(stats.Instances) != 0 || stats.OpenSpans != 0 || stats.OldestReport != 0 || stats.Inbox != 0 {
				t.Errorf("empty: %+v", stats)
			}
			if counts, err := tx.InstanceCounts(a.ID); err != nil || len(counts) != 0 {
				t.Errorf("counts %v, %v", counts, err)
			}
			if burn, err := tx.TotalBurn(); err != nil || burn != 0 {
				t.Errorf("burn %v, %v", burn, err)
			}
			if sums, err := tx.Charged([]models.InstanceID{"ins_1"}); err != nil || len(sums) != 0 {
				t.Errorf("charged %v, %v", sums, err)
			}
			return nil
		})
		in := models.Instance{ID: "ins_1", AccountID: a.ID, Name: "tern", State: models.Running}
		span := func(run int) models.UsageSpan {
			return models.UsageSpan{ID: models.SpanID(fmt.Sprintf("ins_1.%d", run)), InstanceID: in.ID, AccountID: a.ID, Run: run, State: models.SpanRunning,
				PricePerHour: 420_000, Charged: 7, UpdatedAt: models.At(noon.Add(time.Duration(run) * time.Second))}
		}
		inTx(t, s, func(tx *store.Tx) error {
			if err := tx.InsertInstance(in); err != nil {
				return err
			}
			for run := 1; run <= 2; run++ {
				if err := tx.InsertSpan(span(run)); err != nil {
					return err
				}
			}
			stats, err := tx.Stats()
			if err != nil {
				return err
			}
			if stats.Instances[models.Running] != 1 || stats.OpenSpans != 2 || stats.OldestReport != models.At(noon.Add(time.Second)) {
				t.Errorf("figures: %+v", stats)
			}
			sums, err := tx.Charged([]models.InstanceID{in.ID})
			if err != nil || sums[in.ID] != money.Amount(14) {
				t.Errorf("charged %v, %v", sums, err)
			}
			if burn, err := tx.TotalBurn(); err != nil || burn != 840_000 {
				t.Errorf("burn %v, %v", burn, err)
			}
			unbilled, err := tx.Unbilled([]models.AccountID{a.ID})
			if unbilled[a.ID] != 14 {
				t.Errorf("unbilled %v", unbilled)
			}
			return err
		})
	})
}
