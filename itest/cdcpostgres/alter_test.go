package cdcpostgres

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
)

// alterRows is many chunks of ten rows; alterRead of them are copied, or about so many, before the table is altered.
const alterRows, alterRead = 3000, 300

// alteration is a change of a table's columns amid its copy.
type alteration struct {
	key   string // the type of the key; integer when empty
	alter string
	// to brings a row from before into the columns from behind.
	to func(row map[string]string)
	// id and v are the columns' names behind it.
	id, v string
	stops fault.Code
}

// Columns change amid the first copy of a table, between two chunks: with rows copied before and behind, changes in the log before
// and behind, of rows of either kind. The copy goes on in the columns of behind, each row comes once, as read or as change, no row
// comes in the columns of before once one has come in the others, and the rows are those of the source. What no row would tell
// truly stops the job.
func TestAlterAmidTheCopy(t *testing.T) {
	t.Parallel()
	set := func(name, value string) func(map[string]string) {
		return func(row map[string]string) { row[name] = value }
	}
	name := func(from, to string) func(map[string]string) {
		return func(row map[string]string) { row[to] = row[from]; delete(row, from) }
	}
	for title, c := range map[string]alteration{
		"add":            {alter: "ADD w int", to: set("w", "NULL")},
		"add constant":   {alter: "ADD w text NOT NULL DEFAULT 'it''s'", to: set("w", "it's")},
		"drop":           {alter: "DROP x", to: func(row map[string]string) { delete(row, "x") }},
		"rename":         {alter: "RENAME v TO name", to: name("v", "name"), v: "name"},
		"rename key":     {alter: "RENAME id TO ident", to: name("id", "ident"), id: "ident"},
		"wider":          {alter: "ALTER n TYPE bigint, ALTER v TYPE text", to: func(map[string]string) {}},
		"wider key":      {alter: "ALTER id TYPE bigint", to: func(map[string]string) {}},
		"required":       {alter: "ALTER v SET NOT NULL", to: func(map[string]string) {}},
		"located":        {key: `text COLLATE "en-x-icu"`, alter: "ADD w int DEFAULT 7", to: set("w", "7")},
		"located rename": {key: `text COLLATE "en-x-icu"`, alter: "RENAME id TO ident", to: name("id", "ident"), id: "ident"},
		"several": {alter: "DROP x, ADD y int DEFAULT 3, ADD z text; ALTER TABLE t RENAME v TO x", v: "x", to: func(row map[string]string) {
			row["x"], row["y"], row["z"] = row["v"], "3", "NULL"
			delete(row, "v")
		}},

		"values of their own": {alter: "ADD w uuid DEFAULT gen_random_uuid()", stops: fault.PGTableDiffers},
		"narrower":            {alter: "ALTER n TYPE smallint USING n % 1000", stops: fault.PGTableDiffers},
		"other values":        {alter: "ALTER n TYPE text USING 'n' || n", stops: fault.PGTableDiffers},
		"made again":          {alter: "DROP x, ADD x text", stops: fault.PGTableDiffers},
		"another key":         {alter: "DROP CONSTRAINT t_pkey, ADD k int GENERATED ALWAYS AS IDENTITY PRIMARY KEY", stops: fault.PGSchemaChanged},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			c.run(t)
		})
	}
}

func (c *alteration) run(t *testing.T) {
	t.Helper()
	key := c.key
	if key == "" {
		key = "int"
	}
	j := newJob(t, server, "public.t").copying(10)
	j.exec(t, "CREATE TABLE t (id "+key+" PRIMARY KEY, v varchar(20), n int NOT NULL, x text); ALTER TABLE t ALTER x SET STORAGE EXTERNAL")
	j.exec(t, fmt.Sprintf("INSERT INTO t SELECT 10 * i, 'v' || i, i, repeat('x', 3000) FROM generate_series(1, %d) i", alterRows))
	ctx, on, stands := t.Context(), make(chan struct{}), make(chan int, 1)
	j.onEmit = func(b *rows.Batch) {
		if b.Op(0) == rows.OpRead {
			_ = harness.Pause(ctx, 2*time.Millisecond) // it ends early only with the test
		}
	}
	a := j.start(t)
	a.until(t, "the first chunks", func() bool { return len(a.rows) >= alterRead })
	c.write(t, j, 1, "id", "v")
	j.onCut = func() {
		a.mu.Lock()
		stands <- len(a.rows)
		a.mu.Unlock()
		select {
		case <-on:
		case <-ctx.Done():
		}
	}
	a.takeEpoch(t)
	copied := <-stands
	if copied >= alterRows {
		t.Fatal("everything was copied before the table was altered")
	}
	c.write(t, j, 2, "id", "v")
	j.exec(t, "ALTER TABLE t "+c.alter)
	id, v := c.id, c.v
	if id == "" {
		id = "id"
	}
	if v == "" {
		v = "v"
	}
	if c.stops == "" {
		c.write(t, j, 3, id, v)
	}
	j.onCut, j.onEmit = nil, nil
	close(on)
	if err := a.failure(t); fault.CodeOf(err) != fault.PGCopyAltered || fault.ClassOf(err) != fault.Transient {
		t.Fatalf("the attempt ended by %v", err)
	}
	a.stop()
	before := a.rows[:copied]
	if c.stops != "" {
		if _, err := j.open(t.Context()); fault.CodeOf(err) != c.stops {
			t.Fatalf("%v, want %s", err, c.stops)
		}
		return
	}
	a = j.start(t)
	c.write(t, j, 4, id, v)
	j.exec(t, fmt.Sprintf("INSERT INTO t (%s, %s, n) VALUES (-1, 'last', 0)", id, v))
	got := append(before, a.behind(t, v, "last")...)
	c.compare(t, j, id, got)
}

// behind commits epochs until a row has come with that value, and returns all that have.
func (a *attempt) behind(t *testing.T, column, value string) []change {
	t.Helper()
	came := func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return slices.ContainsFunc(a.rows, func(c change) bool { return c.cells[column] == value })
	}
	for deadline := time.Now().Add(2 * patience); !came(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s has not come", value)
		}
		a.confirm(t, a.takeEpoch(t))
		if err := harness.Pause(t.Context(), 20*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.rows)
}

// write changes rows that were copied and rows that were not, by a number of its own.
func (c *alteration) write(t *testing.T, j *job, phase int, id, v string) {
	t.Helper()
	for _, sql := range []string{
		"INSERT INTO t (%[1]s, %[2]s, n) SELECT k, 'new %[3]d', 1 FROM unnest(ARRAY[%[3]d + 3, 20000 + %[3]d + 3]) k",
		"UPDATE t SET %[2]s = 'set %[3]d' WHERE n %% 7 = %[3]d",
		"UPDATE t SET n = n + 100000 WHERE n %% 50 = %[3]d",
		"DELETE FROM t WHERE n %% 31 = %[3]d",
		"UPDATE t SET %[1]s = (n * 10 + %[3]d)%[4]s WHERE n %% 43 = %[3]d AND n < 100000",
	} {
		cast := ""
		if c.key != "" {
			cast = "::text"
		}
		j.exec(t, fmt.Sprintf(sql, id, v, phase, cast))
	}
}

// compare folds what came and compares it with the source.
func (c *alteration) compare(t *testing.T, j *job, id string, came []change) {
	t.Helper()
	have := make(map[string]map[string]string)
	var moved map[string]string // the row that was deleted last: a change of the key is a delete and an insert
	version, kinds := uint32(0), make(map[uint32]map[rows.Op]int)
	for _, ch := range came {
		if ch.version < version {
			t.Fatalf("version %d came behind %d: %s", ch.version, version, ch)
		}
		version = ch.version
		if kinds[version] == nil {
			kinds[version] = make(map[rows.Op]int)
		}
		kinds[version][ch.meta.Op]++
		row := maps.Clone(ch.cells)
		if ch.version == 1 && ch.meta.Op != rows.OpDelete {
			c.to(row)
		}
		key := ch.cells[id]
		if ch.version == 1 {
			key = ch.cells["id"]
		}
		old, there := have[key]
		if (ch.meta.Op == rows.OpRead || ch.meta.Op == rows.OpInsert) == there {
			t.Fatalf("%.200s: the row was there: %t", ch, there)
		}
		if ch.meta.Op == rows.OpDelete {
			moved = old
			delete(have, key)
			continue
		}
		if !there {
			old = moved
		}
		for col, cell := range row {
			if cell == "ABSENT" {
				row[col] = old[col]
			}
		}
		have[key] = row
	}
	want := c.source(t, j, id)
	wrong := 0
	for key, row := range want {
		if !maps.Equal(have[key], row) {
			if wrong++; wrong < 4 {
				t.Errorf("row %s is\n%.300v, the source has\n%.300v", key, have[key], row)
			}
		}
		delete(have, key)
	}
	for key, row := range have {
		t.Errorf("row %s, which the source does not have: %.200v", key, row)
	}
	t.Logf("by version: %v; %d rows differ", kinds, wrong)
	if kinds[version][rows.OpUpdateAfter] == 0 || kinds[version][rows.OpDelete] == 0 || kinds[version][rows.OpRead] == 0 {
		t.Errorf("the copy did not go on, or the log did not catch up: %v", kinds)
	}
}

func (c *alteration) source(t *testing.T, j *job, id string) map[string]map[string]string {
	t.Helper()
	conn, err := j.pg.Connect(t.Context(), j.database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	found, err := conn.Query(t.Context(), "SELECT * FROM t", pgx.QueryResultFormats{pgx.TextFormatCode})
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]map[string]string)
	for found.Next() {
		row := make(map[string]string)
		for i, cell := range found.RawValues() {
			name := found.FieldDescriptions()[i].Name
			if row[name] = string(cell); cell == nil {
				row[name] = "NULL"
			}
		}
		all[row[id]] = row
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
