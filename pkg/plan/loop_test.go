package plan

import (
	"fmt"
	"testing"

	"weir.dev/weir/pkg/fault"
)

func TestSinkIntoItsOwnSourceIsRefused(t *testing.T) {
	t.Parallel()
	const db = "postgres://reader:${R}@db.example:5432/shop?sslmode=require"
	tests := []struct {
		name, from, tables, to, sink string
		refused                      bool
	}{
		{"the same reference", "${DB}", `["public.*"]`, "${DB}", "schema: public", true},
		{"another user, default port, case", db, `["public.*"]`, "postgres://writer:${W}@DB.example/shop", "schema: public", true},
		{"an address of version 6", "postgres://a@[::1]/shop", `["public.*"]`, "postgres://b@[::1]:5432/shop", "schema: public", true},
		{"default schema", db, `["public.orders"]`, db, "mode: upsert", true},
		{"every schema", db, `["*.*"]`, db, "schema: copy", true},
		{"named by schema, which a pattern catches", db, `["public.*"]`, db, `schema: public, name: "{schema}_{table}"`, true},
		{"another schema", db, `["public.*"]`, db, "schema: copy", false},
		{"another name", db, `["public.orders"]`, db, `schema: public, name: "copy_{table}"`, false},
		{"left out of the source", db, `["*.*", "!copy.*"]`, db, "schema: copy", false},
		{"another database", db, `["public.*"]`, "postgres://reader:${R}@db.example:5432/copy", "schema: public", false},
		{"another port", db, `["public.*"]`, "postgres://reader:${R}@db.example:5433/shop", "schema: public", false},
		{"nothing is known", "${A}", `["public.*"]`, "${B}", "schema: public", false},
		{"no database", "postgres://h", `["public.*"]`, "postgres://u@h", "schema: public", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			j := parse(t, fmt.Sprintf(`
apiVersion: weir/v1
job: shop
sources:
  db: {type: postgres, url: %q, tables: %s, snapshot: {mode: never}}
sinks:
  copy: {from: [db], type: postgres, url: %q, %s}
`, tt.from, tt.tables, tt.to, tt.sink))
			_, err := FromSpec(j)
			want := fault.Code("")
			if tt.refused {
				want = fault.SinkOwnSource
			}
			if fault.CodeOf(err) != want || (err == nil) == tt.refused {
				t.Errorf("FromSpec: %v, want code %q", err, want)
			}
		})
	}
}

func TestMySQLSinkIntoItsOwnSourceIsRefused(t *testing.T) {
	t.Parallel()
	const server = "mysql://reader:${R}@db.example:3306/"
	tests := []struct {
		name, from, tables, to, sink string
		refused                      bool
	}{
		{"the same reference", "${DB}", `["shop.*"]`, "${DB}", "database: shop", true},
		{"another user, default port, case", server, `["shop.*"]`, "mysql://writer:${W}@DB.example", "database: shop", true},
		{"every database", server, `["*.*"]`, server, "database: copy", true},
		{"another database", server, `["shop.*"]`, server, "database: copy", false},
		{"another name", server, `["shop.orders"]`, server, `database: shop, name: "copy_{table}"`, false},
		{"another port", server, `["shop.*"]`, "mysql://reader:${R}@db.example:3307/", "database: shop", false},
		{"nothing is known", "${A}", `["shop.*"]`, "${B}", "database: shop", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			j := parse(t, fmt.Sprintf(`
apiVersion: weir/v1
job: shop
sources:
  db: {type: mysql, url: %q, tables: %s, snapshot: {mode: never}}
sinks:
  copy: {from: [db], type: mysql, url: %q, %s}
`, tt.from, tt.tables, tt.to, tt.sink))
			_, err := FromSpec(j)
			want := fault.Code("")
			if tt.refused {
				want = fault.SinkOwnSource
			}
			if fault.CodeOf(err) != want || (err == nil) == tt.refused {
				t.Errorf("FromSpec: %v, want code %q", err, want)
			}
		})
	}
}
