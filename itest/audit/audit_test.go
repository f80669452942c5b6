package audit_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/services/weir/verify/audit"
	"weir.dev/weir/services/weir/verify/shop"
)

// TestOracle: the shop's load, read from the log by the oracle, is what the tables went through.
func TestOracle(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	pg := harness.StartPostgres(t, harness.PostgresConfig{})
	if err := pg.Exec(ctx, "postgres", shop.Schema); err != nil {
		t.Fatal(err)
	}
	oracle, err := audit.OpenOracle(ctx, pg.URL("postgres"), "shop")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pg.Connect(ctx, "postgres")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := shop.Run(ctx, conn, shop.New(3), shop.Load{Transactions: 300}); err != nil {
		t.Fatal(err)
	}
	changes, err := oracle.Changes(ctx)
	if err != nil {
		t.Fatal(err)
	}
	rows := make(map[string]int)
	for _, c := range changes {
		switch c.Op.String() {
		case "insert":
			rows[c.Table]++
		case "delete":
			rows[c.Table]--
			if len(c.Cells) > 2 {
				t.Errorf("a delete of %s has %d columns, want its key only", c.Table, len(c.Cells))
			}
		}
	}
	for _, table := range shop.Tables() {
		n, err := harness.Value[int](ctx, pg, "postgres", "SELECT count(*) FROM shop."+table)
		if err != nil || n == 0 || rows["shop."+table] != n {
			t.Errorf("%s has %d rows, %v; inserts less deletes are %d", table, n, err, rows["shop."+table])
		}
	}
	if err := audit.Validate(changes, changes); err != nil {
		t.Errorf("the log against itself: %v", err)
	}
	for name, harm := range map[string]func([]audit.Change) []audit.Change{
		"missing": func(c []audit.Change) []audit.Change { return slices.Delete(c, 100, 101) },
		"twice":   func(c []audit.Change) []audit.Change { return slices.Insert(c, 100, c[100]) },
		"torn": func(c []audit.Change) []audit.Change {
			c[100].Epoch++
			return c
		},
		"value": func(c []audit.Change) []audit.Change {
			other := "another"
			c[100].Cells = map[string]*string{"sku": &other}
			return c
		},
		"order": func(c []audit.Change) []audit.Change {
			slices.Reverse(c)
			return c
		},
	} {
		if err := audit.Validate(harm(slices.Clone(changes)), changes); err == nil {
			t.Errorf("%s: the harm was not noticed", name)
		}
	}
}

// TestReader: what a reader must never see, it reports.
func TestReader(t *testing.T) {
	t.Parallel()
	pg := harness.StartPostgres(t, harness.PostgresConfig{})
	look := func(t *testing.T, sql string, durable uint64) error {
		t.Helper()
		r := audit.StartReader(t.Context(), pg.URL("postgres"), sql, func(context.Context) (uint64, bool) { return durable, true })
		harness.Await(t, 10*time.Second, "a few looks", func(context.Context) error {
			if r.Looks() < 3 {
				return errors.New("too few")
			}
			return nil
		})
		return r.Stop()
	}
	if err := look(t, "SELECT 0::bigint, 7::bigint, 1::bigint, 5::bigint, 5::bigint", 7); err != nil {
		t.Errorf("a good target: %v", err)
	}
	for want, sql := range map[string]string{
		"halves":        "SELECT 1::bigint, 7::bigint, 1::bigint, 5::bigint, 5::bigint",
		"ledger says":   "SELECT 0::bigint, 7::bigint, 1::bigint, 5::bigint, 6::bigint",
		"durable is":    "SELECT 0::bigint, 8::bigint, 1::bigint, 5::bigint, 5::bigint",
		"visible after": "SELECT 0::bigint, (-extract(epoch FROM clock_timestamp()) * 1000)::bigint, 1::bigint, 5::bigint, 5::bigint",
	} {
		if err := look(t, sql, 7); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the reader says %v", want, err)
		}
	}
}
