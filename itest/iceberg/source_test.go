package iceberg

import (
	"context"
	"fmt"
	"testing"

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
