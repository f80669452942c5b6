package audit_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/services/weir/verify/audit"
	"weir.dev/weir/services/weir/verify/shop"
)

// mysqlServers starts one server of each kind.
func mysqlServers(t *testing.T) map[string]*harness.MySQL {
	t.Helper()
	return map[string]*harness.MySQL{
		"MySQL": harness.StartMySQL(t, harness.MySQLConfig{}), "MariaDB": harness.StartMariaDB(t, harness.MySQLConfig{}),
	}
}

// TestMySQLOracle: the changes that the oracle reads, one after the other, end in what the tables hold, value by value; half a
// transaction does not pass for a whole one.
func TestMySQLOracle(t *testing.T) {
	t.Parallel()
	for name, server := range mysqlServers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tables []audit.Table
			for _, table := range shop.Tables() {
				tables = append(tables, audit.Table{Name: table, Key: shop.Key(table)})
			}
			conn, err := audit.MySQLSession(t.Context(), server.URL(""))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			for _, sql := range shop.MySQLSchema("shop") {
				if _, err := conn.Execute(sql); err != nil {
					t.Fatal(err)
				}
			}
			oracle, err := audit.OpenBinlog(t.Context(), server.URL(""), "shop", tables)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := shop.RunMySQL(t.Context(), conn, shop.New(3), shop.Load{Transactions: 400}); err != nil {
				t.Fatal(err)
			}
			changes, err := oracle.Changes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want, err := oracle.Content(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			last := make(map[string]map[string]audit.Cells)
			for _, c := range changes {
				table := strings.TrimPrefix(c.Table, "shop.")
				if last[table] == nil {
					last[table] = make(map[string]audit.Cells)
				}
				last[table][c.Key] = c.Cells
				if c.Op == rows.OpDelete {
					delete(last[table], c.Key)
				}
			}
			for _, table := range tables {
				got := make(audit.Content)
				for key, row := range last[table.Name] {
					got[key] = []audit.Cells{row}
				}
				if c := audit.Compare(want[table.Name], got); !c.Equal() || c.SourceRows == 0 {
					t.Errorf("%s: the log ends in other rows than the table has: %s", table.Name, c)
				}
			}
			torn := func() string {
				n, err := server.Text(t.Context(), "", shop.TornMySQL("shop"))
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			if n := torn(); n != "0" {
				t.Errorf("%s halves in whole transactions", n)
			}
			for _, sql := range []string{"DELETE FROM shop.order_items ORDER BY order_id LIMIT 1", "DELETE FROM shop.orders ORDER BY id DESC LIMIT 1"} {
				before := torn()
				if _, err := conn.Execute(sql); err != nil {
					t.Fatal(err)
				}
				if n := torn(); n == before {
					t.Errorf("%s: still %s halves", sql, n)
				}
			}
		})
	}
}

// TestMySQLReader: what a reader must never see, it reports.
func TestMySQLReader(t *testing.T) {
	t.Parallel()
	server := harness.StartMySQL(t, harness.MySQLConfig{})
	for sql, want := range map[string]string{
		"SELECT 0, 7, 1, 5, 5": "",
		"SELECT 1, 7, 1, 5, 5": "halves",
		"SELECT 0, 7, 1, 5, 6": "ledger says",
		"SELECT 0, 8, 1, 5, 5": "durable is",
		"SELECT 0, -CAST(1000 * unix_timestamp(sysdate(3)) AS SIGNED), 1, 5, 5": "visible after",
	} {
		r := audit.StartMySQLReader(t.Context(), server.URL(""), sql, func(context.Context) (uint64, bool) { return 7, true })
		harness.Await(t, 10*time.Second, "a few looks", func(context.Context) error {
			if r.Looks() < 3 {
				return errors.New("too few")
			}
			return nil
		})
		if err := r.Stop(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the reader says %v, want %q", sql, err, want)
		}
	}
}

// TestMySQLChangelog: a changelog in MySQL is read in the order of its epochs, without what its source did not send.
func TestMySQLChangelog(t *testing.T) {
	t.Parallel()
	server := harness.StartMySQL(t, harness.MySQLConfig{})
	conn, err := audit.MySQLSession(t.Context(), server.URL(""))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for _, sql := range []string{
		"CREATE DATABASE log",
		"CREATE TABLE log.t (k int, v longblob, _op tinyint, _seq bigint, _ts datetime(6), _txn bigint, _ord bigint, _epoch bigint, _absent json)",
		fmt.Sprintf(`INSERT INTO log.t VALUES (1, NULL, %d, 1, NULL, 9, 1, 2, '["v"]'), (1, x'00ff', %d, 7, '2026-11-30 10:00:00', 8, 0, 1, NULL)`,
			rows.OpUpdateAfter, rows.OpInsert),
	} {
		if _, err := conn.Execute(sql); err != nil {
			t.Fatal(err)
		}
	}
	changes, err := audit.MySQLChangelog(t.Context(), server.URL(""), "log", "shop", []audit.Table{{Name: "t", Key: []string{"k"}}})
	if err != nil || len(changes) != 2 {
		t.Fatalf("%v, %v", changes, err)
	}
	first, second := changes[0], changes[1]
	if first.Op != rows.OpInsert || first.Txn != 8 || first.Epoch != 1 || first.Table != "shop.t" || first.Cells["v"] == nil || *first.Cells["v"] != `\x00ff` {
		t.Errorf("the first change is %v with %v", first.Change, cellNames(first.Cells))
	}
	if second.Op != rows.OpUpdateAfter || second.Ord != 1 || second.Epoch != 2 || second.Key != first.Key || cellNames(second.Cells) != "[k]" {
		t.Errorf("the second change is %v with %s", second.Change, cellNames(second.Cells))
	}
	if _, err := conn.Execute("UPDATE log.t SET _seq = NULL"); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.MySQLChangelog(t.Context(), server.URL(""), "log", "shop", []audit.Table{{Name: "t", Key: []string{"k"}}}); err == nil {
		t.Error("a change without a place in its epoch is read")
	}
}

func cellNames(c audit.Cells) string {
	return fmt.Sprint(slices.Sorted(maps.Keys(c)))
}
