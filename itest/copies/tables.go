package copies

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Schema is where the tables are.
const Schema = "goods"

// Table is one of the tables. All have the columns n, which names a row, val and pad, besides those of the key.
type Table struct {
	// Name is that of the table, without its schema.
	Name string
	// columns are the key's, as CREATE TABLE has them.
	columns string
	// key names them; values are what they have in the row n, with $ for n.
	key, values []string
}

// Keyed are the tables with a key: its values are in no order that n has, and of both signs.
func Keyed() []Table {
	return []Table{
		{"by_integer", "id bigint", []string{"id"}, []string{"$ * 7 - 10000"}},
		{"by_uuid", "id uuid", []string{"id"}, []string{"md5(($)::text)::uuid"}},
		{"by_both", "a integer, b text", []string{"a", "b"}, []string{"$ % 17", "'b' || $"}},
		{"by_text", `id text COLLATE "en-x-icu"`, []string{"id"}, []string{
			"(ARRAY['a', 'B', 'ä', 'Z', 'z', 'É', '-', '_', 'ß', '日'])[$ % 10 + 1] || $",
		}},
	}
}

// Bare is the table without a key, whose log has whole old rows. Its writers give no row another n.
func Bare() Table { return Table{Name: "bare"} }

func all() []Table { return append(Keyed(), Bare()) }

func (t Table) sql() string { return Schema + "." + t.Name }

// row is an expression for the key and n of the row that n names.
func (t Table) row(n string) string {
	var cells []string
	for _, v := range t.values {
		cells = append(cells, strings.ReplaceAll(v, "$", n))
	}
	return strings.Join(append(cells, n), ", ")
}

// lists names the columns of row.
func (t Table) lists() string { return strings.Join(append(t.key, "n"), ", ") }

// where finds the row that n names.
func (t Table) where(n string) string {
	return fmt.Sprintf("(%s) = (%s)", t.lists(), t.row(n))
}

// name is an expression for the text by which a row is known: that of its key, or of n where there is none.
func (t Table) name(of string) string {
	if len(t.key) == 0 {
		return of + "n::text"
	}
	var cells []string
	for _, k := range t.key {
		cells = append(cells, of+k)
	}
	return "concat_ws('/', " + strings.Join(cells, ", ") + ")"
}

// record is where what happened is written down: the value a row was given, or null for its end.
const record = `
CREATE SCHEMA goods;
CREATE SCHEMA truth;
CREATE SEQUENCE truth.value;
CREATE SEQUENCE truth.fresh;
CREATE TABLE truth.history (at bigserial PRIMARY KEY, place text NOT NULL, name text NOT NULL, val bigint);
`

const ddl = `
CREATE TABLE %[1]s (%[2]s n bigint NOT NULL, val bigint NOT NULL, pad text NOT NULL%[3]s);
INSERT INTO %[1]s (%[4]s, val, pad) SELECT %[5]s, nextval('truth.value'), md5(n::text) FROM generate_series(1, %[6]d) AS g (n);
INSERT INTO truth.history (place, name, val) SELECT '%[7]s', %[8]s, val FROM %[1]s;
CREATE FUNCTION truth.%[7]s() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN
	IF TG_OP <> 'INSERT' AND (TG_OP = 'DELETE' OR %[9]s <> %[10]s) THEN
		INSERT INTO truth.history (place, name) VALUES ('%[7]s', %[9]s);
	END IF;
	IF TG_OP <> 'DELETE' THEN
		INSERT INTO truth.history (place, name, val) VALUES ('%[7]s', %[10]s, NEW.val);
	END IF;
	RETURN NULL;
END $f$;
CREATE TRIGGER truth AFTER INSERT OR UPDATE OR DELETE ON %[1]s FOR EACH ROW EXECUTE FUNCTION truth.%[7]s();
`

// Fill makes the tables with so many rows each.
func Fill(ctx context.Context, conn *pgx.Conn, rows int) error {
	if _, err := conn.Exec(ctx, record); err != nil {
		return fmt.Errorf("fill the tables: %w", err)
	}
	for _, t := range all() {
		columns, key, identity := "", "", ""
		if len(t.key) > 0 {
			columns, key = t.columns+",", ", PRIMARY KEY ("+strings.Join(t.key, ", ")+")"
		} else {
			identity = fmt.Sprintf("ALTER TABLE %s REPLICA IDENTITY FULL; CREATE INDEX ON %[1]s (n);", t.sql())
		}
		sql := fmt.Sprintf(ddl, t.sql(), columns, key, t.lists(), t.row("n"), rows, t.Name, t.name(""), t.name("OLD."), t.name("NEW."))
		if _, err := conn.Exec(ctx, sql+identity); err != nil {
			return fmt.Errorf("fill %s: %w", t.sql(), err)
		}
	}
	_, err := conn.Exec(ctx, "SELECT setval('truth.fresh', $1)", rows)
	return err
}
