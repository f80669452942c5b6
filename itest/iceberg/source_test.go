package iceberg

import (
	"context"
	"fmt"
	"testing"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/harness"
)

// postgresTable is the table in PostgreSQL.
type postgresTable struct {
	pg   *harness.Postgres
	conn *pgx.Conn
}

func startTable(t *testing.T, pg *harness.Postgres) *postgresTable {
	t.Helper()
	err := pg.Exec(t.Context(), "postgres", fmt.Sprintf(`CREATE TABLE goods (id int PRIMARY KEY, name text, price numeric(12,2), tag uuid, seen timestamptz);
		ALTER TABLE goods REPLICA IDENTITY FULL;
		INSERT INTO goods SELECT i, 'copied ' || i, i / 4.0, gen_random_uuid(), now() FROM generate_series(1, %d) i;`, copied))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pg.Connect(t.Context(), "postgres")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return &postgresTable{pg, conn}
}

func (p *postgresTable) do(t *testing.T, sql string) int {
	t.Helper()
	tag, err := p.conn.Exec(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	return int(tag.RowsAffected())
}

func (p *postgresTable) lines(t *testing.T) []string {
	t.Helper()
	return one(t, p.pg, "SELECT id || '|' || name || '|' || (price * 100)::bigint || '|' || tag FROM goods ORDER BY id")
}

// mysqlTable is the table in MySQL.
type mysqlTable struct{ conn *client.Conn }

func startMySQLTable(t *testing.T, my *harness.MySQL) *mysqlTable {
	t.Helper()
	conn, err := my.Connect(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	m := &mysqlTable{conn}
	for _, sql := range []string{
		"CREATE DATABASE shop", "USE shop",
		"CREATE TABLE goods (id int PRIMARY KEY, name text, price decimal(12,2), tag char(36), seen timestamp(6)) DEFAULT CHARSET utf8mb4",
		fmt.Sprintf(`INSERT INTO goods WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			SELECT i, concat('copied ', i), i / 4, uuid(), now(6) FROM n`, copied),
	} {
		m.do(t, sql)
	}
	return m
}

func (m *mysqlTable) do(t *testing.T, sql string) int {
	t.Helper()
	r, err := m.conn.Execute(sql)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	return int(r.AffectedRows)
}

func (m *mysqlTable) lines(t *testing.T) []string {
	t.Helper()
	r, err := m.conn.Execute("SELECT concat_ws('|', id, name, cast(price * 100 AS signed), tag) FROM goods ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	lines := make([]string, r.RowNumber())
	for i := range lines {
		if lines[i], err = r.GetString(i, 0); err != nil {
			t.Fatal(err)
		}
	}
	return lines
}
