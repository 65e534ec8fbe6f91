package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/models/store"
	"berth/models/store/storetest"
)

func TestOpensAndMigratesOnBothDatabases(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, s *store.Store) {
		if err := s.Ping(context.Background()); err != nil {
			t.Fatal(err)
		}
		if drift := s.Drift(context.Background()); len(drift) > 0 {
			t.Errorf("models and migrations differ:\n%s", strings.Join(drift, "\n"))
		}
	})
}

// TestFilesAreTheirOwners: password hashes and renters' secrets are in them, and
// the folder may be a volume that everybody can read.
func TestFilesAreTheirOwners(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(context.Background(), filepath.Join(dir, "berth.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.InTx(context.Background(), func(tx *store.Tx) error { return tx.OpenLedgerAccounts("USD", "wallet:a") }); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) == 0 {
		t.Fatalf("%v: %d files", err, len(files))
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o", f.Name(), info.Mode().Perm())
		}
	}
}

func TestWatchWakesOnlyAfterCommit(t *testing.T) {
	s := storetest.SQLite(t)
	w := s.Watch("account:a")
	defer w.Close()
	boom := errors.New("boom")
	if err := s.InTx(context.Background(), func(tx *store.Tx) error { tx.Changed("account:a"); return boom }); !errors.Is(err, boom) {
		t.Fatal(err)
	}
	select {
	case <-w.C():
		t.Fatal("woken by a transaction that was rolled back")
	default:
	}
	if err := s.InTx(context.Background(), func(tx *store.Tx) error {
		tx.Changed("account:a")
		tx.Changed("account:b")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-w.C():
	case <-time.After(10 * time.Second):
		t.Fatal("not woken")
	}
	if got := w.Topics(); len(got) != 1 || got[0] != "account:a" {
		t.Errorf("topics %v", got)
	}
}

func TestNewerDatabaseIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "berth.db")
	s, err := store.Open(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.PretendNewer(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(context.Background(), path); err == nil || !strings.Contains(err.Error(), "newer Berth") {
		t.Errorf("a newer database was opened: %v", err)
	}
}
