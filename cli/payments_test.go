package cli

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"berth/models"
	"berth/models/store"
)

// A database keeps to the kind of money it has seen, in both directions.
func TestSameMoney(t *testing.T) {
	for name, tc := range map[string]struct {
		session string
		live    bool
		want    string // in the refusal; empty: taken
	}{
		"new, test":                     {"", false, ""},
		"new, live":                     {"", true, ""},
		"test payments, test":           {"cs_test_1", false, ""},
		"real payments, live":           {"cs_live_1", true, ""},
		"test payments, then live":      {"cs_test_1", true, "test money would be spent as real"},
		"real payments, then test ones": {"cs_live_1", false, "test cards would pay for real"},
	} {
		t.Run(name, func(t *testing.T) {
			st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "berth.db"))
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			if tc.session != "" {
				err := st.InTx(t.Context(), func(tx *store.Tx) error {
					ada := models.User{ID: "u", Name: "Ada", Email: "ada@example.org"}
					account := models.Account{ID: "a", Name: "Ada", Currency: "USD", TimeZone: "UTC"}
					if err := errors.Join(tx.CreateUser(ada), tx.CreateAccount(account, ada.ID)); err != nil {
						return err
					}
					_, err := tx.InsertTopup(models.Topup{ID: "t", AccountID: account.ID, UserID: ada.ID, Amount: 5_000_000, Currency: "USD", SessionID: tc.session})
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			err = sameMoney(t.Context(), st, tc.live)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
