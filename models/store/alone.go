package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"
)

// portalLock names the one portal of a PostgreSQL database among its advisory
// locks.
const portalLock = 0x62657274685f31

// ErrAnotherPortal is returned by Alone when another portal has the database.
var ErrAnotherPortal = errors.New("another portal uses this database; replicas come with a later release")

// Alone makes sure that no other portal uses this database, and keeps it so until
// release: wake-ups do not cross processes yet, so a second one would act late. A
// portal that was killed is gone as soon as PostgreSQL notices, which is waited
// for up to patience. On SQLite the lock of the data directory does the same.
func (s *Store) Alone(ctx context.Context, patience time.Duration) (release func(), err error) {
	if s.kind != "postgres" {
		return func() {}, nil
	}
	pool, err := s.write.DB()
	if err != nil {
		return nil, err
	}
	conn, err := pool.Conn(ctx) // the lock is the connection's: it is kept
	if err != nil {
		return nil, fmt.Errorf("lock the database for this portal: %w", err)
	}
	deadline := time.After(patience)
	for {
		var got bool
		if err := conn.QueryRowContext(ctx, "SELECT pg_try_advisory_lock($1)", int64(portalLock)).Scan(&got); err != nil {
			return nil, errors.Join(fmt.Errorf("lock the database for this portal: %w", err), conn.Close())
		}
		if got {
			return func() { discard(conn) }, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), conn.Close())
		case <-deadline:
			return nil, errors.Join(ErrAnotherPortal, conn.Close())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// discard ends a connection rather than giving it back to the pool with its lock.
func discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = conn.Close()
}
