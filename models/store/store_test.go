package store_test

import (
	"context"
	"errors"
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
