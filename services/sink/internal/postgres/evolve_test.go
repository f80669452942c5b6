package postgres

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/pgcodec"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/core"
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

// step lets a target that was made for one schema follow to another, and gives the statements that this took.
func step(t *testing.T, e *evolution, to string) (*evolution, []string, error) {
	t.Helper()
	next := *e
	next.t = &target{schema: shape(t, to), mode: spec.Upsert, first: len(e.known.Columns) == 0}
	next.types = nil
	for _, c := range next.t.schema.Columns() {
		next.types = append(next.types, pgcodec.SQLType(c, pgcodec.Origin))
	}
	var made []string
	next.exec = func(sql string) error {
		made = append(made, sql)
		return nil
	}
	if e.try == nil {
		next.try = next.exec
	}
	return &next, made, next.fitInto(&made)
}

func (e *evolution) fitInto(made *[]string) error {
	err := e.fit()
	if err != nil {
		*made = nil
	}
	return err
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
				e := begun(t, policy)
				e, made, err := step(t, e, tt.to)
				if want.sql == "stop" {
					if fault.CodeOf(err) != fault.SinkSchemaChange {
						t.Fatalf("%q, %v", made, err)
					}
					return
				}
				if got := strings.Join(made, "; "); got != want.sql || err != nil {
					t.Errorf("%q, %v; want %q", got, err, want.sql)
				}
				e.wantWrites(t, want.writes, want.retains)
				// The same version again, as after a restart, changes nothing.
				if _, made, err := step(t, e, tt.to); len(made) > 0 || err != nil {
					t.Errorf("again: %q, %v", made, err)
				}
			})
		}
	}
}

// begun is a target of v1 under a policy.
func begun(t *testing.T, policy spec.SchemaChange) *evolution {
	t.Helper()
	found := &relation{columns: map[string]column{}}
	for _, c := range []column{{Name: "id", SQLType: "integer"}, {Name: "v", SQLType: "text"}, {Name: "n", SQLType: "integer"}} {
		found.columns[c.Name] = c
	}
	e, made, err := step(t, &evolution{found: found, known: &core.Known{}, made: true, policy: policy}, v1)
	if len(made) > 0 || err != nil {
		t.Fatalf("the first version: %q, %v", made, err)
	}
	return e
}

func (e *evolution) wantWrites(t *testing.T, writes, retains string) {
	t.Helper()
	var names []string
	for _, c := range e.t.columns {
		names = append(names, strings.Trim(orElse(c.name, "-"), `"`))
	}
	if got := strings.Join(names, " "); got != writes {
		t.Errorf("writes %s, want %s", got, writes)
	}
	if got := strings.ReplaceAll(strings.Join(e.t.retained, " "), `"`, ""); got != retains {
		t.Errorf("retains %s, want %s", got, retains)
	}
}

func TestTryEvolveGoesOnWithoutWhatIsRefused(t *testing.T) {
	t.Parallel()
	e := begun(t, spec.TryEvolve)
	e.try = func(string) error { return &pgconn.PgError{Code: "2BP01"} }
	e, made, err := step(t, e, "1 id integer*, 3 m bigint, 4 x text")
	if len(made) > 0 || err != nil {
		t.Fatalf("%q, %v", made, err)
	}
	e.wantWrites(t, "id n -", "v")
	if len(e.t.notes) != 4 {
		t.Errorf("warnings are %q", e.t.notes)
	}
	e.try = func(string) error { return &pgconn.PgError{Code: lockNotAvailable} }
	if _, _, err := step(t, e, "1 id integer*, 3 m bigint, 4 x text, 5 y text"); !hasState(err, lockNotAvailable) {
		t.Errorf("a lock that is held is no refusal: %v", err)
	}
}

// Under exception somebody makes the change at the target; then it is made.
func TestChangesByHandAreTaken(t *testing.T) {
	t.Parallel()
	e := begun(t, spec.Exception)
	found := e.found.columns
	found["w"], found["n"], found["x"] = column{Name: "w", SQLType: "text"}, column{Name: "n", SQLType: "bigint"}, column{Name: "x", SQLType: "text"}
	delete(found, "v")
	e, made, err := step(t, e, "1 id integer*, 2 w text, 3 n bigint, 4 x text")
	if len(made) > 0 || err != nil {
		t.Fatalf("%q, %v", made, err)
	}
	e.wantWrites(t, "id w n x", "")
}

// Rows that are written after a drop have null in the column that stays, whichever way they are written.
func TestRetainedColumnsAreNull(t *testing.T) {
	t.Parallel()
	e, _, err := step(t, begun(t, spec.Lenient), "1 id integer*, 3 n integer")
	if err != nil {
		t.Fatal(err)
	}
	e.t.name = "t"
	insert := `INSERT INTO t ("id", "n", "v") OVERRIDING SYSTEM VALUE SELECT s.c0::integer, s.c1::integer, NULL FROM`
	if got := e.t.insertSQL("s", false); !strings.HasPrefix(got, insert) || !strings.HasSuffix(got, `"v" = NULL`) {
		t.Errorf("insert: %s", got)
	}
	if got := e.t.updateSQL("s", e.t.all()); !strings.Contains(got, `"v" = NULL`) {
		t.Errorf("update: %s", got)
	}
	if !slices.Equal(e.t.all(), []int{0, 1}) {
		t.Errorf("writes %v", e.t.all())
	}
}
