package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/services/weir/verify/audit"
	"weir.dev/weir/services/weir/verify/shop"
)

// pgSource is a shop in PostgreSQL.
type pgSource struct {
	url, id string
	// loose says that the target has other types than this source and writes them in another way.
	loose bool

	oracle *audit.Oracle
}

func (s *pgSource) shop() string { return s.id + "_shop" }

func (s *pgSource) role() string { return "cdc-postgres" }

func (s *pgSource) spec() string {
	return fmt.Sprintf(`{type: postgres, url: "${VERIFY_SOURCE}", tables: ["%s.*"], snapshot: {mode: never}}`, s.shop())
}

func (s *pgSource) begin(ctx context.Context) (err error) {
	if err = run(ctx, s.url, shop.SchemaIn(s.shop())); err == nil {
		s.oracle, err = audit.OpenOracle(ctx, s.url, s.shop())
	}
	return err
}

func (s *pgSource) load(ctx context.Context, seed uint64, load shop.Load) (func(context.Context) error, error) {
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		defer conn.Close(context.WithoutCancel(ctx))
		_, err := shop.Run(ctx, conn, shop.In(s.shop(), seed), load)
		return err
	}, nil
}

func (s *pgSource) changes(ctx context.Context) ([]audit.Change, error) { return s.oracle.Changes(ctx) }

func (s *pgSource) content(ctx context.Context) (map[string]audit.Content, error) {
	return audit.PostgresContent(ctx, s.url, s.shop(), shopTables())
}

func (s *pgSource) bulk(ctx context.Context) error {
	return run(ctx, s.url, fmt.Sprintf(`INSERT INTO %s.customers (id, email, name, created_at, profile)
		SELECT 1000000000 + i, i || '@example.com', 'one of many', now(), jsonb_build_object('text', repeat('x', 200))
		FROM generate_series(1, 5000) i`, s.shop()))
}

func (s *pgSource) addColumn(ctx context.Context, table, column string) error {
	return run(ctx, s.url, fmt.Sprintf(`ALTER TABLE %s.%s ADD COLUMN %s text; UPDATE %[1]s.%[2]s SET %[3]s = 'new' WHERE hashtext(%[4]s::text) %% 7 = 0`,
		s.shop(), table, column, shop.Key(table)[0]))
}

func (s *pgSource) poison(ctx context.Context, n int) error {
	return run(ctx, s.url, fmt.Sprintf(`INSERT INTO %s.products (sku, ean, name, price, stock, description)
		SELECT 'BAD-' || i, gen_random_uuid(), 'poison', 1, 1, '' FROM generate_series(1, %d) i`, s.shop(), n))
}

func (s *pgSource) held(ctx context.Context) (string, error) {
	slot, err := value[string](ctx, s.url, `SELECT slot_name::text FROM pg_replication_slots
		WHERE active AND slot_name LIKE 'weir\_' || $1 || '\_%' LIMIT 1`, s.id)
	return "slot " + slot, err
}

// plain: MySQL has numbers for truth, no zones, one form of JSON, and no arrays.
func (s *pgSource) plain(column, text string) string {
	if !s.loose {
		return text
	}
	switch column {
	case "active":
		if v, ok := map[string]string{"t": "1", "f": "0"}[text]; ok {
			return v
		}
	case "created_at", "placed_at":
		return strings.TrimSuffix(text, "+00")
	case "profile":
		return audit.JSONText(text)
	case "tags":
		var elems []*string
		if json.Unmarshal([]byte(text), &elems) == nil {
			return audit.ArrayText(elems)
		}
	}
	return text
}

// end drops all of it. It waits for nobody: sessions that still read a slot are ended.
func (s *pgSource) end(ctx context.Context) error {
	slots := `LIKE 'weir\_` + s.id + `\_%'`
	own := "(slot_name " + slots + ` OR slot_name LIKE 'oracle\_` + s.id + `\_%')`
	return errors.Join(
		run(ctx, s.url, "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active_pid IS NOT NULL AND "+own),
		eventually(ctx, func() error {
			return run(ctx, s.url, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE "+own)
		}),
		run(ctx, s.url, `DO $$ DECLARE p name; BEGIN
			FOR p IN SELECT pubname FROM pg_publication WHERE pubname `+slots+` OR pubname LIKE 'oracle\_`+s.id+`\_%'
			LOOP EXECUTE format('DROP PUBLICATION %I', p); END LOOP; END $$`),
		run(ctx, s.url, "DROP SCHEMA IF EXISTS "+s.shop()+" CASCADE"),
	)
}

// run runs SQL in a session of its own.
func run(ctx context.Context, url, sql string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("%.60q: %w", sql, err)
	}
	return nil
}

// value asks for one value.
func value[T any](ctx context.Context, url, sql string, args ...any) (v T, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return v, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = conn.QueryRow(ctx, sql, args...).Scan(&v)
	return v, err
}

// inSchema gives tables of the shop their schema, with commas between.
func inSchema(schema string) string {
	var names []string
	for _, table := range shop.Tables() {
		names = append(names, schema+"."+table)
	}
	return strings.Join(names, ", ")
}
