package types

import (
	"fmt"
	"strings"
)

// key is a type as the key of a table, with three values; the second and third are the hard ones.
type key struct{ name, sqlType, a, b, c string }

// keys has a table per type; rows with these keys are inserted, changed, deleted and given other keys.
var keys = []key{
	{"tz", "timestamptz", "2024-01-01 00:00:00+00", "infinity", "-infinity"},
	{"ts", "timestamp", "2024-01-01 00:00:00", "0044-03-15 12:00:00 BC", "294276-12-31 23:59:59"},
	{"day", "date", "2024-01-01", "infinity", "4713-01-01 BC"},
	{"clock", "time", "12:00:00", "00:00:00", "24:00:00"},
	{"num", "numeric", "1.10", "NaN", "-Infinity"},
	{"dec", "numeric(10,2)", "1.10", "NaN", "0"},
	{"dbl", "double precision", "0", "NaN", "-Infinity"},
	{"flag", "boolean", "true", "false", ""},
	{"txt", "text", "", "NULL", "a\tb"},
	{"chr", "char(4)", "", "ab", "abcd"},
	{"byt", "bytea", `\x`, `\x00`, `\x0000`},
	{"uid", "uuid", "00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000001", "ffffffff-ffff-ffff-ffff-ffffffffffff"},
	{"iv", "interval", "1 day", "24:00:01", "-1 mons"},
	{"net", "inet", "10.0.0.1", "10.0.0.1/8", "::1"},
	{"rng", "int4range", "empty", "(,)", "[1,2)"},
	{"arr", "int[]", "{1,2}", "{{1,2}}", "[0:1]={1,2}"},
	{"known", "one.mood", "sad", "ok", `it's, "so" {so}`},
	{"mood", "two.mood", "sad", "1", "null"},
	{"price", "m.price", "0.00", "NaN", "1.10"},
	{"ci", "citext", "a", "B", "NULL"},
	{"hs", "hstore", "", "a=>1", `"a b"=>NULL`},
	{"bits", "varbit", "", "0", "00"},
	{"cash", "money", "$0.00", "$1.10", "-$1,000.00"},
	{"lsn", "pg_lsn", "0/0", "0/1", "FFFFFFFF/0"},
	{"addr", "m.address", `("a ""b""",1,)`, "(,,)", `(x,,"{}")`},
}

// literal is one of the key's values in SQL.
func (k key) literal(s string) string {
	return "'" + strings.ReplaceAll(s, "'", "''") + "'::" + k.sqlType
}

// keys are those of the path.
func (p path) keys() []key {
	var chosen []key
	for _, k := range keys {
		if !p.binary || hasBinary(k.sqlType) {
			chosen = append(chosen, k)
		}
	}
	return chosen
}

func keyed(keys []key) []string {
	var tables []string
	for _, k := range keys {
		tables = append(tables, "m.k_"+k.name)
	}
	return tables
}

// keySQL makes the tables, their rows, and what happens to these. Each statement is a transaction, so that epochs may end
// between.
func keySQL(keys []key) (tables, inserts, changes string) {
	for i, table := range keyed(keys) {
		k := keys[i]
		tables += fmt.Sprintf("CREATE TABLE %s (k %s PRIMARY KEY, v int, big text);\nALTER TABLE %[1]s ALTER big SET STORAGE EXTERNAL;\n", table, k.sqlType)
		values := []string{k.a, k.b, k.c}
		if k.c == "" {
			values = values[:2]
		}
		for n, v := range values {
			inserts += fmt.Sprintf("INSERT INTO %s VALUES (%s, %d, repeat('x', 3000)); COMMIT;\n", table, k.literal(v), n)
		}
		second, last := k.literal(values[1]), k.literal(values[len(values)-1])
		changes += fmt.Sprintf("UPDATE %s SET v = v + 10; COMMIT;\n", table)
		changes += fmt.Sprintf("DELETE FROM %s WHERE k = %s; COMMIT;\n", table, last)
		changes += fmt.Sprintf("UPDATE %s SET k = %s WHERE k = %s; COMMIT;\n", table, last, second)
		changes += fmt.Sprintf("INSERT INTO %s VALUES (%s, 99, NULL) ON CONFLICT DO NOTHING; COMMIT;\n", table, second)
	}
	return tables, inserts, changes
}

// Values out of line that an update does not touch are not sent: O42, for every type that is stored so.
const toastTables = `
CREATE TABLE m.toast (id int PRIMARY KEY, n int, t text, b bytea, j jsonb, a int[], s text[], x numeric, r xml, h hstore, c m.address, l numrange[]);
ALTER TABLE m.toast ALTER t SET STORAGE EXTERNAL, ALTER b SET STORAGE EXTERNAL, ALTER j SET STORAGE EXTERNAL, ALTER a SET STORAGE EXTERNAL,
	ALTER s SET STORAGE EXTERNAL, ALTER x SET STORAGE EXTERNAL, ALTER r SET STORAGE EXTERNAL, ALTER h SET STORAGE EXTERNAL, ALTER c SET STORAGE EXTERNAL;
`

const toastRows = `
INSERT INTO m.toast SELECT g, 1, repeat('t', 5000), decode(repeat('ff', 5000), 'hex'), to_jsonb(repeat('j', 5000)),
	array_agg(i), array_agg('e ' || i), repeat('9', 9000)::numeric, ('<a>' || repeat('x', 5000) || '</a>')::xml,
	hstore('k', repeat('h', 5000)), ROW(repeat('c', 5000), 1, NULL)::m.address, array_agg(numrange(i, i + 1))
	FROM generate_series(1, 4) g, generate_series(1, 2000) i GROUP BY g;
COMMIT;
`

const toastChanges = `
UPDATE m.toast SET n = 2 WHERE id = 1; COMMIT;
UPDATE m.toast SET id = 102 WHERE id = 2; COMMIT;
BEGIN; UPDATE m.toast SET n = 3 WHERE id = 3; UPDATE m.toast SET id = 103, a = '{}' WHERE id = 3; UPDATE m.toast SET n = 4 WHERE id = 103; COMMIT;
BEGIN; DELETE FROM m.toast WHERE id = 4; INSERT INTO m.toast (id, n) VALUES (4, 5); COMMIT;
`
