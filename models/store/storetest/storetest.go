// Package storetest opens real databases for tests: a SQLite file, and a
// PostgreSQL server that it starts as an unprivileged user and ends.
package storetest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver that makes and drops test databases

	"berth/models/store"
)

// OnEach runs test on a fresh SQLite file and on a fresh PostgreSQL database.
// Where the machine lacks PostgreSQL, that half is skipped with the reason.
func OnEach(t *testing.T, test func(t *testing.T, s *store.Store)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(t, SQLite(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, Postgres(t)) })
}

// SQLite opens a fresh SQLite file.
func SQLite(t testing.TB) *store.Store {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "berth.db"))
}

// Postgres opens a fresh database on the test server, or skips.
func Postgres(t testing.TB) *store.Store {
	t.Helper()
	return open(t, PostgresURL(t))
}

// PostgresURL makes a fresh database on the test server and returns its
// address, or skips. BERTH_TEST_POSTGRES may name a running server instead.
func PostgresURL(t testing.TB) string {
	t.Helper()
	base := os.Getenv("BERTH_TEST_POSTGRES")
	if base == "" {
		server.once.Do(server.start)
		if server.err != nil {
			t.Skipf("no PostgreSQL here: %v", server.err)
		}
		base = server.url
	}
	var random [6]byte
	_, _ = rand.Read(random[:])
	name := "berth_" + hex.EncodeToString(random[:])
	admin(t, base, "CREATE DATABASE "+name)
	t.Cleanup(func() { admin(t, base, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	return base + "/" + name + "?sslmode=disable"
}

func open(t testing.TB, dsn string) *store.Store {
	t.Helper()
	s, err := store.Open(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func admin(t testing.TB, base, statement string) {
	t.Helper()
	db, err := sql.Open("pgx", base+"/postgres?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// server is one PostgreSQL per test binary. It dies with the test binary.
var server postgres

type postgres struct {
	once     sync.Once
	url      string
	lifeline io.WriteCloser // kept: when it is collected or we die, PostgreSQL ends
	err      error
}

func (p *postgres) start() {
	bin := os.Getenv("BERTH_POSTGRES_BIN")
	if bin == "" {
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
		if len(found) == 0 {
			p.err = fmt.Errorf("initdb is not installed (Debian: apt-get install postgresql)")
			return
		}
		bin = filepath.Dir(found[len(found)-1])
	}
	// PostgreSQL refuses root, so root runs it as nobody.
	var cred *syscall.Credential
	dir, err := os.MkdirTemp("", "berth-pg-")
	if err != nil {
		p.err = err
		return
	}
	if os.Geteuid() == 0 {
		cred = &syscall.Credential{Uid: 65534, Gid: 65534}
		if p.err = os.Chown(dir, 65534, 65534); p.err != nil {
			return
		}
	}
	data := filepath.Join(dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "berth", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
	initdb.Dir = dir
	initdb.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	if out, err := initdb.CombinedOutput(); err != nil {
		p.err = fmt.Errorf("initdb: %w: %s", err, out)
		return
	}
	port, err := freePort()
	if err != nil {
		p.err = err
		return
	}
	// The shell waits for its stdin to end, which the kernel does for us when
	// this test binary is gone, however it went.
	script := `"$1" -D "$2" -p "$3" -c listen_addresses=127.0.0.1 -c unix_socket_directories="$4" -c fsync=off -c max_connections=200 >"$4/log" 2>&1 & pg=$!; read -r _; kill -INT $pg; wait $pg; rm -rf "$4"`
	watch := exec.Command("/bin/sh", "-c", script, "sh", filepath.Join(bin, "postgres"), data, strconv.Itoa(port), dir)
	watch.Dir = dir
	watch.SysProcAttr = &syscall.SysProcAttr{Credential: cred, Setpgid: true}
	if p.lifeline, p.err = watch.StdinPipe(); p.err != nil {
		return
	}
	if p.err = watch.Start(); p.err != nil {
		return
	}
	p.url = fmt.Sprintf("postgres://berth@127.0.0.1:%d", port)
	db, err := sql.Open("pgx", p.url+"/postgres?sslmode=disable")
	if err != nil {
		p.err = err
		return
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	for {
		if err = db.PingContext(ctx); err == nil {
			return
		}
		select {
		case <-ctx.Done():
			p.err = fmt.Errorf("PostgreSQL did not come up: %w", err)
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
