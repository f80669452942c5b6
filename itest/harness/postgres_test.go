package harness_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"weir.dev/weir/itest/harness"
)

// TestPostgres walks one cluster through its life: a cluster costs a second, so
// the steps share it.
func TestPostgres(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	pg := harness.StartPostgres(t, harness.PostgresConfig{Settings: map[string]string{"wal_sender_timeout": "7s"}})

	if err := pg.CreateDatabase(ctx, "shop"); err != nil {
		t.Fatal(err)
	}
	if err := pg.Exec(ctx, "shop", "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (2)"); err != nil {
		t.Fatal(err)
	}

	t.Run("settings", func(t *testing.T) {
		for name, want := range map[string]string{"wal_level": "logical", "wal_sender_timeout": "7s", "fsync": "off"} {
			if got, err := harness.Value[string](ctx, pg, "shop", "SELECT current_setting($1)", name); err != nil || got != want {
				t.Errorf("%s = %q, %v; want %q", name, got, err, want)
			}
		}
	})

	t.Run("roles", func(t *testing.T) {
		role, err := pg.CreateRole(ctx, "plain", "")
		if err != nil {
			t.Fatal(err)
		}
		conn, err := pgx.Connect(ctx, pg.URLAs(role, "shop"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, "SELECT * FROM t")
		wantSQLState(t, err, "42501") // insufficient_privilege
		role.Password = "wrong"
		_, err = pgx.Connect(ctx, pg.URLAs(role, "shop"))
		wantSQLState(t, err, "28P01") // invalid_password
	})

	t.Run("kill and start keep data and port", func(t *testing.T) {
		pg.Kill()
		if conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(pg.Port))); err == nil {
			conn.Close()
			t.Fatal("a killed server accepts connections")
		}
		if err := pg.Configure(map[string]string{"wal_level": "replica"}); err != nil {
			t.Fatal(err)
		}
		if err := pg.Start(ctx); err != nil {
			t.Fatal(err)
		}
		if n, err := harness.Value[int](ctx, pg, "shop", "SELECT count(*) FROM t"); err != nil || n != 2 {
			t.Fatalf("rows after a kill = %d, %v; want 2", n, err)
		}
		if level, err := harness.Value[string](ctx, pg, "shop", "SHOW wal_level"); err != nil || level != "replica" {
			t.Fatalf("wal_level = %q, %v; want the configured replica", level, err)
		}
	})

	t.Run("pause freezes open sessions too", func(t *testing.T) {
		conn, err := pg.Connect(ctx, "shop")
		if err != nil {
			t.Fatal(err)
		}
		if err := pg.Pause(); err != nil {
			t.Fatal(err)
		}
		asked, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		if _, err := conn.Exec(asked, "SELECT 1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a frozen server answered: %v", err)
		}
		if err := pg.Resume(); err != nil {
			t.Fatal(err)
		}
		if n, err := harness.Value[int](ctx, pg, "shop", "SELECT 1"); err != nil || n != 1 {
			t.Errorf("after resume: %d, %v", n, err)
		}
	})

	t.Run("stop is orderly", func(t *testing.T) {
		if err := pg.Stop(ctx); err != nil {
			t.Fatal(err)
		}
		log, err := os.ReadFile(pg.LogPath())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(log), "database system is shut down") {
			t.Error("the log does not tell of an orderly shutdown")
		}
	})

	if err := pg.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(pg.LogPath()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there after Close: %v", err)
	}
}

func wantSQLState(t *testing.T, err error, want string) {
	t.Helper()
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || pgErr.Code != want {
		t.Errorf("error = %v; want SQLSTATE %s", err, want)
	}
}
