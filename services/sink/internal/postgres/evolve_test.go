package postgres

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/pgcodec"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/core"
	"weir.dev/weir/services/sink/internal/transact"
)

// shape reads "1 id int*, 2 v text": identity, name and type of columns, the key marked.
func shape(t *testing.T, text string) *rows.Schema {
	t.Helper()
	var columns []rows.Column
	for word := range strings.SplitSeq(text, ", ") {
		parts := strings.SplitN(word, " ", 3)
		source, key := strings.CutSuffix(parts[2], "*")
		source, fill, filled := strings.Cut(source, "=")
		c := rows.Column{ID: int(parts[0][0] - '0'), Name: parts[1], Source: source, Type: rows.Of(rows.KindText), Fill: fill, Filled: filled}
		if key {
			c.KeyPos = 1
		}
		columns = append(columns, c)
	}
	s, err := rows.NewSchema("public.t", 1, pgcodec.Origin, columns)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// table is one that follows a source, from schema to schema.
type table struct {
	policy spec.SchemaChange
	found  *relation
	known  *core.Known
	try    func(sql string) error // that of its alterations; nil takes what they do
	t      *target                // as of the last step
}

// step lets the table follow to another schema, and gives the statements that this took; none after an error.
func (f *table) step(t *testing.T, to string) (made []string, err error) {
	t.Helper()
	f.t = &target{schema: shape(t, to), mode: spec.Upsert}
	a := &alteration{t: f.t, found: f.found}
	for _, c := range f.t.schema.Columns() {
		a.types = append(a.types, pgcodec.SQLType(c, pgcodec.Origin))
	}
	a.exec = func(sql string) error {
		made = append(made, sql)
		return nil
	}
	if a.try = f.try; a.try == nil {
		a.try = a.exec
	}
	e := f.t.evolution(a, &sink.Config{Sink: spec.Sink{SchemaChange: f.policy}}, &spec.PostgresSink{}, true, transact.Place{})
	e.First, e.Known = len(f.known.Columns) == 0, f.known
	if err := f.t.fit(e, a, transact.Place{}); err != nil {
		return nil, err
	}
	return made, nil
}

const v1 = "1 id integer*, 2 v text, 3 n integer"

func TestEvolution(t *testing.T) {
	t.Parallel()
	type want struct {
		sql     string // statements, by semicolons; "stop" for a fault
		writes  string // the target's columns in the schema's order, - where nothing is written
		retains string
	}
	for name, tt := range map[string]struct {
		to   string
		want map[spec.SchemaChange]want
	}{
		"add": {v1 + ", 4 x text=it's", map[spec.SchemaChange]want{
			spec.Lenient:   {`ADD COLUMN "x" text DEFAULT 'it''s'::text`, "id v n x", ""},
			spec.Evolve:    {`ADD COLUMN "x" text DEFAULT 'it''s'::text`, "id v n x", ""},
			spec.Ignore:    {"", "id v n -", ""},
			spec.Exception: {"stop", "", ""},
		}},
		"drop": {"1 id integer*, 3 n integer", map[spec.SchemaChange]want{
			spec.Lenient:   {"", "id n", "v"},
			spec.Evolve:    {`DROP COLUMN "v"`, "id n", ""},
			spec.Ignore:    {"", "id n", "v"},
			spec.Exception: {"stop", "", ""},
		}},
		"rename": {"1 id integer*, 2 w text, 3 n integer", map[spec.SchemaChange]want{
			spec.Lenient:   {`ADD COLUMN "w" text`, "id w n", "v"},
			spec.Evolve:    {`RENAME COLUMN "v" TO "w"`, "id w n", ""},
			spec.Ignore:    {"", "id v n", ""},
			spec.Exception: {"stop", "", ""},
		}},
		"widen": {"1 id integer*, 2 v text, 3 n bigint", map[spec.SchemaChange]want{
			spec.Lenient:   {`ALTER COLUMN "n" TYPE bigint`, "id v n", ""},
			spec.Evolve:    {`ALTER COLUMN "n" TYPE bigint USING "n"::bigint`, "id v n", ""},
			spec.Ignore:    {"", "id v n", ""},
			spec.Exception: {"stop", "", ""},
		}},
		"narrow": {"1 id integer*, 2 v text, 3 n smallint", map[spec.SchemaChange]want{
			spec.Lenient:   {"", "id v n", ""},
			spec.Evolve:    {`ALTER COLUMN "n" TYPE smallint USING "n"::smallint`, "id v n", ""},
			spec.Ignore:    {"", "id v n", ""},
			spec.Exception: {"stop", "", ""},
		}},
		"drop and add": {"1 id integer*, 3 n integer, 4 v text", map[spec.SchemaChange]want{
			spec.Lenient:   {"stop", "", ""},
			spec.Evolve:    {`DROP COLUMN "v"; ADD COLUMN "v" text`, "id n v", ""},
			spec.Ignore:    {"", "id n -", "v"},
			spec.Exception: {"stop", "", ""},
		}},
		"swap": {"1 id integer*, 2 n text, 3 v integer", map[spec.SchemaChange]want{
			spec.Lenient:   {"stop", "", ""},
			spec.Evolve:    {`RENAME COLUMN "v" TO "weir renames"; RENAME COLUMN "n" TO "v"; RENAME COLUMN "weir renames" TO "n"`, "id n v", ""},
			spec.Ignore:    {"", "id v n", ""},
			spec.Exception: {"stop", "", ""},
		}},
		"nothing": {v1, map[spec.SchemaChange]want{
			spec.Lenient: {"", "id v n", ""}, spec.Evolve: {"", "id v n", ""}, spec.Ignore: {"", "id v n", ""}, spec.Exception: {"", "id v n", ""},
		}},
	} {
		for policy, want := range tt.want {
			t.Run(name+" "+string(policy), func(t *testing.T) {
				t.Parallel()
				f := begun(t, policy)
				made, err := f.step(t, tt.to)
				if want.sql == "stop" {
					if fault.CodeOf(err) != fault.SinkSchemaChange {
						t.Fatalf("%q, %v", made, err)
					}
					return
				}
				if got := strings.Join(made, "; "); got != want.sql || err != nil {
					t.Errorf("%q, %v; want %q", got, err, want.sql)
				}
				f.wantWrites(t, want.writes, want.retains)
				// The same version again, as after a restart, changes nothing.
				if made, err := f.step(t, tt.to); len(made) > 0 || err != nil {
					t.Errorf("again: %q, %v", made, err)
				}
			})
		}
	}
}

// begun is a table of v1 under a policy.
func begun(t *testing.T, policy spec.SchemaChange) *table {
	t.Helper()
	found := &relation{columns: map[string]column{}}
	for _, c := range []column{{Name: "id", SQLType: "integer"}, {Name: "v", SQLType: "text"}, {Name: "n", SQLType: "integer"}} {
		found.columns[c.Name] = c
	}
	f := &table{policy: policy, found: found, known: &core.Known{}}
	made, err := f.step(t, v1)
	if len(made) > 0 || err != nil {
		t.Fatalf("the first version: %q, %v", made, err)
	}
	return f
}

func (f *table) wantWrites(t *testing.T, writes, retains string) {
	t.Helper()
	var names []string
	for _, c := range f.t.columns {
		names = append(names, strings.Trim(cmp.Or(c.name, "-"), `"`))
	}
	if got := strings.Join(names, " "); got != writes {
		t.Errorf("writes %s, want %s", got, writes)
	}
	if got := strings.ReplaceAll(strings.Join(f.t.retained, " "), `"`, ""); got != retains {
		t.Errorf("retains %s, want %s", got, retains)
	}
}

func TestTryEvolveGoesOnWithoutWhatIsRefused(t *testing.T) {
	t.Parallel()
	f := begun(t, spec.TryEvolve)
	f.try = func(string) error { return &pgconn.PgError{Code: "2BP01"} }
	made, err := f.step(t, "1 id integer*, 3 m bigint, 4 x text")
	if len(made) > 0 || err != nil {
		t.Fatalf("%q, %v", made, err)
	}
	f.wantWrites(t, "id n -", "v")
	if len(f.t.notes) != 4 {
		t.Errorf("warnings are %q", f.t.notes)
	}
	f.try = func(string) error { return &pgconn.PgError{Code: lockNotAvailable} }
	if _, err := f.step(t, "1 id integer*, 3 m bigint, 4 x text, 5 y text"); !hasState(err, lockNotAvailable) {
		t.Errorf("a lock that is held is no refusal: %v", err)
	}
}

// Under exception somebody makes the change at the target; then it is made.
func TestChangesByHandAreTaken(t *testing.T) {
	t.Parallel()
	f := begun(t, spec.Exception)
	found := f.found.columns
	found["w"], found["n"], found["x"] = column{Name: "w", SQLType: "text"}, column{Name: "n", SQLType: "bigint"}, column{Name: "x", SQLType: "text"}
	delete(found, "v")
	made, err := f.step(t, "1 id integer*, 2 w text, 3 n bigint, 4 x text")
	if len(made) > 0 || err != nil {
		t.Fatalf("%q, %v", made, err)
	}
	f.wantWrites(t, "id w n x", "")
}

// Rows that are written after a drop have null in the column that stays, whichever way they are written.
func TestRetainedColumnsAreNull(t *testing.T) {
	t.Parallel()
	f := begun(t, spec.Lenient)
	if _, err := f.step(t, "1 id integer*, 3 n integer"); err != nil {
		t.Fatal(err)
	}
	f.t.name = "t"
	insert := `INSERT INTO t ("id", "n", "v") OVERRIDING SYSTEM VALUE SELECT s.c0::integer, s.c1::integer, NULL FROM`
	if got := f.t.insertSQL("s", false); !strings.HasPrefix(got, insert) || !strings.HasSuffix(got, `"v" = NULL`) {
		t.Errorf("insert: %s", got)
	}
	if got := f.t.updateSQL("s", f.t.all()); !strings.Contains(got, `"v" = NULL`) {
		t.Errorf("update: %s", got)
	}
	if !slices.Equal(f.t.all(), []int{0, 1}) {
		t.Errorf("writes %v", f.t.all())
	}
}
