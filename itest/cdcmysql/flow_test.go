package cdcmysql

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
)

const flowSpec = `apiVersion: weir/v1
job: shop
epoch: {interval: 250ms}
sources:
  db:
    type: mysql
    url: ${SOURCE_URL}
    tables: ["flow.*"]
    readers: 2
    snapshot: {chunk_rows: 500}
sinks:
  copy: {from: [db], type: postgres, url: "${TARGET_URL}", schema: copy, mode: upsert}
`

// The product as a user runs it: a copy, then changes, from MySQL into PostgreSQL.
func TestFlowToPostgres(t *testing.T) {
	t.Parallel()
	target := harness.StartPostgres(t, harness.PostgresConfig{})
	values := make([]string, 5000)
	for i := range values {
		values[i] = fmt.Sprintf("(%d, 'name %[1]d', %[1]d.25, '2024-01-02 03:04:05', NULL)", i)
	}
	run(
		t, mysql, "CREATE DATABASE flow",
		"CREATE TABLE flow.orders (id bigint unsigned PRIMARY KEY, name varchar(50), price decimal(12,2), at datetime(3), paid timestamp NULL)",
		"CREATE TABLE flow.lines (sku varchar(20) COLLATE utf8mb4_0900_ai_ci, no int, doc json, PRIMARY KEY (sku, no))",
		"INSERT INTO flow.orders VALUES "+strings.Join(values, ", "),
		`INSERT INTO flow.lines VALUES ('a', 1, '{"k": [1, 2.50]}'), ('B', 1, NULL), ('ä1', 2, '"x"')`,
	)
	job := filepath.Join(t.TempDir(), "shop.yaml")
	if err := os.WriteFile(job, []byte(flowSpec), 0o600); err != nil {
		t.Fatal(err)
	}
	m := mesh.Up(t, []string{"SOURCE_URL=" + mysql.URL(""), "TARGET_URL=" + target.URL("postgres")}, job)
	m.Must(t, "status", "shop", "--wait-for", "running", "--timeout", "60s")
	run(
		t, mysql, "UPDATE flow.orders SET price = price + 1, paid = '2024-06-01 00:00:00' WHERE id % 3 = 0",
		"DELETE FROM flow.orders WHERE id % 5 = 0", "UPDATE flow.orders SET id = id + 100000 WHERE id % 7 = 0",
		"DELETE FROM flow.lines WHERE sku = 'A'", "INSERT INTO flow.lines VALUES ('a', 9, '[]')",
	)
	m.CaughtUp(t, "shop")
	const digest = "SELECT concat_ws(' ', count(*), sum(id), sum(price), count(paid), min(name), max(at)) FROM %s.orders"
	want, err := mysql.Text(t.Context(), "flow", strings.ReplaceAll(fmt.Sprintf(digest, "flow"), "max(at)", "date_format(max(at), '%Y-%m-%d %T')"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := harness.Value[string](t.Context(), target, "postgres", fmt.Sprintf(digest, "copy"))
	if err != nil || got != want {
		t.Errorf("orders at the target: %s, %v; want %s", got, err, want)
	}
	lines, err := harness.Value[string](t.Context(), target, "postgres",
		`SELECT string_agg(concat_ws(' ', sku, no, doc), ';' ORDER BY sku COLLATE "C", no) FROM copy.lines`)
	if want := `B 1;a 9 [];ä1 2 "x"`; err != nil || lines != want {
		t.Errorf("lines at the target: %s, %v; want %s", lines, err, want)
	}
}
