package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"berth/models/store"
	"berth/models/store/storetest"
)

func TestOnePortalPerDatabase(t *testing.T) {
	ctx := context.Background()
	url := storetest.PostgresURL(t)
	open := func() *store.Store {
		s, err := store.Open(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	first, second := open(), open()
	release, err := first.Alone(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Alone(ctx, 0); !errors.Is(err, store.ErrAnotherPortal) {
		t.Fatalf("a second portal got the database: %v", err)
	}
	release()
	release, err = second.Alone(ctx, 10*time.Second)
	if err != nil {
		t.Fatalf("after the first left: %v", err)
	}
	release()
}
