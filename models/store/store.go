// Package store is the only door to the database. It owns gorm and the
// migrations, and runs on SQLite (one file) and PostgreSQL alike. Methods are
// named for the job, take a Tx, and promise to do all or nothing: what must
// hold together runs in one Store.InTx, with no network call inside it.
package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/glebarez/sqlite"
	"github.com/pressly/goose/v3"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"berth/models"
)

//go:embed migrations
var migrations embed.FS

// Store is an open database. It is safe for concurrent use.
type Store struct {
	write *gorm.DB // SQLite: one connection, immediate transactions
	read  *gorm.DB // SQLite: a pool that cannot write; PostgreSQL: the same as write
	kind  string   // sqlite | postgres
	feed  feed

	statements atomic.Int64
}

// Statements is how many SQL statements were run since the store was opened.
func (s *Store) Statements() int64 { return s.statements.Load() }

// counter counts statements where gorm would log them.
type counter struct {
	logger.Interface
	statements *atomic.Int64
}

// Trace implements logger.Interface.
func (c counter) Trace(context.Context, time.Time, func() (string, int64), error) {
	c.statements.Add(1)
}

// Open opens the database and brings its schema up to date. A dsn that begins
// with postgres:// or postgresql:// is PostgreSQL; anything else is the path of
// a SQLite file, made if absent. A database written by a newer Berth is refused.
func Open(ctx context.Context, dsn string) (*Store, error) {
	s := &Store{kind: "sqlite"}
	config := &gorm.Config{
		Logger:                   counter{logger.Discard, &s.statements},
		TranslateError:           true,
		SkipDefaultTransaction:   true,
		DisableNestedTransaction: true, // a savepoint per step made PostgreSQL seven times slower
		NowFunc:                  func() time.Time { return time.Now().UTC() },
	}
	var err error
	if strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://") {
		s.kind = "postgres"
		if s.write, err = gorm.Open(postgres.Open(dsn), config); err != nil {
			return nil, fmt.Errorf("open PostgreSQL: %w", err)
		}
		s.read = s.write
		pool, err := s.write.DB()
		if err != nil {
			return nil, err
		}
		pool.SetMaxOpenConns(20)
	} else {
		if s.write, err = openSQLite(dsn, config, 1, "&_txlock=immediate"); err != nil {
			return nil, err
		}
		if s.read, err = openSQLite(dsn, config, 8, "&_pragma=query_only(1)"); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	if err := s.migrate(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func openSQLite(path string, config *gorm.Config, conns int, more string) (*gorm.DB, error) {
	// Made by us, for its owner only: renters' secrets are in it, and the folder may
	// be one that others can read. What SQLite makes beside it has the same mode. An
	// existing file is not touched: closing it would drop SQLite's locks on it.
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = file.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("open SQLite file %s: %w", path, err)
	}
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() +
		"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)" + more
	db, err := gorm.Open(sqlite.Open(dsn), config)
	if err != nil {
		return nil, fmt.Errorf("open SQLite file %s: %w", path, err)
	}
	pool, err := db.DB()
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(conns)
	pool.SetMaxIdleConns(conns)
	return db, nil
}

func (s *Store) migrate(ctx context.Context) error {
	files, err := fs.Sub(migrations, "migrations/"+s.kind)
	if err != nil {
		return err
	}
	pool, err := s.write.DB()
	if err != nil {
		return err
	}
	dialect := goose.DialectSQLite3
	if s.kind == "postgres" {
		dialect = goose.DialectPostgres
	}
	provider, err := goose.NewProvider(dialect, pool, files)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	have, err := provider.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	sources := provider.ListSources()
	if newest := sources[len(sources)-1].Version; have > newest {
		return fmt.Errorf("this database has schema version %d, written by a newer Berth; this one knows up to %d. Start the newer Berth, or restore a backup", have, newest)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("bring the schema up to date: %w", err)
	}
	return nil
}

// Close closes the database.
func (s *Store) Close() error {
	var errs []error
	for _, db := range []*gorm.DB{s.write, s.read} {
		if db == nil {
			continue
		}
		pool, err := db.DB()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, pool.Close())
	}
	return errors.Join(errs...)
}

// Ping tells whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	pool, err := s.read.DB()
	if err != nil {
		return err
	}
	return pool.PingContext(ctx)
}

// Tx is one transaction. It must not outlive the function it was given to.
type Tx struct {
	db      *gorm.DB
	kind    string
	changed []string
	after   []func()
}

// After has f called once the transaction is committed; never if it is not.
func (tx *Tx) After(f func()) { tx.after = append(tx.after, f) }

// InTx runs work in one read-write transaction and commits when it returns nil.
// Topics noted with Changed wake their watchers after the commit. On SQLite
// transactions are serial; on PostgreSQL rows that decide are locked by the
// methods that read them "for update". Work may run more than once when
// PostgreSQL reports a deadlock or a serialization failure, so it must have no
// effect beyond tx and its own variables.
func (s *Store) InTx(ctx context.Context, work func(tx *Tx) error) error {
	var tx *Tx
	run := func() error {
		return s.write.WithContext(ctx).Transaction(func(db *gorm.DB) error {
			tx = &Tx{db: db, kind: s.kind}
			return work(tx)
		})
	}
	err := run()
	for attempt := 0; attempt < 5 && retryable(err); attempt++ {
		err = run()
	}
	if err != nil {
		return err
	}
	s.feed.publish(tx.changed)
	for _, f := range tx.after {
		f()
	}
	return nil
}

// View runs work on a consistent snapshot that it cannot write to.
func (s *Store) View(ctx context.Context, work func(tx *Tx) error) error {
	return s.read.WithContext(ctx).Transaction(func(db *gorm.DB) error {
		return work(&Tx{db: db, kind: s.kind})
	}, &sql.TxOptions{ReadOnly: s.kind == "postgres", Isolation: s.viewIsolation()})
}

func (s *Store) viewIsolation() sql.IsolationLevel {
	if s.kind == "postgres" {
		return sql.LevelRepeatableRead
	}
	return sql.LevelDefault
}

// retryable tells a PostgreSQL deadlock (40P01) or serialization failure (40001).
func retryable(err error) bool {
	var state interface{ SQLState() string }
	if !errors.As(err, &state) {
		return false
	}
	return state.SQLState() == "40P01" || state.SQLState() == "40001"
}

// forUpdate locks the rows a query returns until the transaction ends. On
// SQLite the transaction itself is the lock.
func (tx *Tx) forUpdate() *gorm.DB {
	if tx.kind == "postgres" {
		return tx.db.Clauses(clause.Locking{Strength: "UPDATE"})
	}
	return tx.db
}

// lookup turns a missing row into a Problem a person can read.
func lookup(noun string, id any, err error) error {
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return models.Missing(noun, id)
	}
	return err
}
