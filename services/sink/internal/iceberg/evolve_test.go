package iceberg

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink/sinktest"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/core"
)

func kind(name string, id int, t rows.Type) rows.Column {
	return rows.Column{Name: name, Type: t, Nullable: true, ID: id}
}

// What each behaviour makes of a change; "stop" is SINK_SCHEMA_CHANGE.
func TestBehaviours(t *testing.T) {
	t.Parallel()
	i32, i64 := rows.Of(rows.KindInt32), rows.Of(rows.KindInt64)
	behaviours := []spec.SchemaChange{spec.Lenient, spec.Evolve, spec.TryEvolve, spec.Ignore, spec.Exception}
	for name, tt := range map[string]struct {
		from, to []rows.Column
		want     [5]string // fields after, by behaviour
	}{
		"add": {
			nil,
			[]rows.Column{text("v", 2)},
			[5]string{"1 id long, 2 v string", "1 id long, 2 v string", "1 id long, 2 v string", "1 id long", "stop"},
		},
		"drop": {
			[]rows.Column{text("v", 2)},
			nil,
			[5]string{"1 id long, 2 v string", "1 id long", "1 id long", "1 id long, 2 v string", "stop"},
		},
		"rename": {
			[]rows.Column{text("v", 2)},
			[]rows.Column{text("w", 2)},
			[5]string{"1 id long, 2 v string, 3 w string", "1 id long, 2 w string", "1 id long, 2 w string", "1 id long, 2 v string", "stop"},
		},
		"rename in a ring": {
			[]rows.Column{text("v", 2), kind("w", 3, i64)},
			[]rows.Column{text("w", 2), kind("v", 3, i64)},
			[5]string{"stop", "1 id long, 2 w string, 3 v long", "1 id long, 2 w string, 3 v long", "1 id long, 2 v string, 3 w long", "stop"},
		},
		"wider": {
			[]rows.Column{kind("n", 2, i32)},
			[]rows.Column{kind("n", 2, i64)},
			[5]string{"1 id long, 2 n long", "1 id long, 2 n long", "1 id long, 2 n long", "1 id long, 2 n int", "stop"},
		},
		"narrower": {
			[]rows.Column{kind("n", 2, i64)},
			[]rows.Column{kind("n", 2, i32)},
			[5]string{"1 id long, 2 n long", "1 id long, 2 n long", "1 id long, 2 n long", "1 id long, 2 n long", "stop"},
		},
		"more digits": {
			[]rows.Column{kind("n", 2, rows.Decimal(8, 2))},
			[]rows.Column{kind("n", 2, rows.Decimal(10, 2))},
			[5]string{"1 id long, 2 n decimal(10, 2)", "1 id long, 2 n decimal(10, 2)", "1 id long, 2 n decimal(10, 2)", "1 id long, 2 n decimal(8, 2)", "stop"},
		},
		"more digits after the point": {
			[]rows.Column{kind("n", 2, rows.Decimal(10, 2))},
			[]rows.Column{kind("n", 2, rows.Decimal(12, 4))},
			[5]string{"stop", "stop", "stop", "stop", "stop"},
		},
		"another type": {
			[]rows.Column{kind("n", 2, i64)},
			[]rows.Column{kind("n", 2, rows.Of(rows.KindText))},
			[5]string{"stop", "stop", "1 id long, 2 n long", "1 id long, 2 n long", "stop"},
		},
		"to a text that holds it": {
			[]rows.Column{text("n", 2)},
			[]rows.Column{kind("n", 2, i64)},
			[5]string{"1 id long, 2 n string", "1 id long, 2 n string", "1 id long, 2 n string", "1 id long, 2 n string", "stop"},
		},
		"dropped and made again": {
			[]rows.Column{text("v", 2)},
			[]rows.Column{kind("v", 3, i64)},
			[5]string{"stop", "1 id long, 3 v long", "1 id long, 3 v long", "stop", "stop"},
		},
		"a list": {
			nil,
			[]rows.Column{kind("l", 2, rows.List(rows.Of(rows.KindText))), text("v", 3)},
			[5]string{
				"1 id long, 2 l list<string>, 4 v string", "1 id long, 2 l list<string>, 4 v string", "1 id long, 2 l list<string>, 4 v string",
				"1 id long", "stop",
			},
		},
	} {
		for i, b := range behaviours {
			first := &evolution{schema: schemaOf(t, 1, tt.from...), role: current, policy: b, where: "here", first: true}
			if err := first.run(); err != nil {
				t.Fatal(err)
			}
			next := &evolution{
				schema: schemaOf(t, 2, tt.to...), role: current, policy: b, where: "here",
				fields: first.fields, known: first.known, last: first.last,
			}
			before := slices.Clone(first.fields)
			got := "stop"
			if err := next.run(); err == nil {
				got = shown(next.fields)
			} else if fault.CodeOf(err) != fault.SinkSchemaChange {
				t.Errorf("%s, %s: %v", name, b, err)
			}
			if got != tt.want[i] {
				t.Errorf("%s, %s: %s, want %s", name, b, got, tt.want[i])
			}
			if shown(first.fields) != shown(before) {
				t.Errorf("%s, %s: the fields of before have changed", name, b)
			}
		}
	}
}

func shown(fields []iceberg.NestedField) string {
	var all []string
	for _, f := range fields {
		all = append(all, fmt.Sprintf("%d %s %s", f.ID, f.Name, textOf(f.Type)))
	}
	return strings.Join(all, ", ")
}

func TestRefusedColumns(t *testing.T) {
	t.Parallel()
	float := rows.Column{Name: "f", Type: rows.Of(rows.KindFloat64), KeyPos: 2}
	e := &evolution{schema: schemaOf(t, 1, float), role: current, first: true}
	if err := e.run(); fault.CodeOf(err) != fault.SinkUnsupportedType {
		t.Errorf("a key that is a float: %v", err)
	}
	e = &evolution{schema: schemaOf(t, 1, text("_op", 2)), role: changelog, first: true, fields: changeColumns()}
	if err := e.run(); fault.CodeOf(err) != fault.SinkNameClash {
		t.Errorf("a column with the name of the changelog's: %v", err)
	}
	filled := text("v", 2)
	filled.Fill, filled.Filled = "x", true
	e = &evolution{schema: schemaOf(t, 2, filled), role: current, policy: spec.Evolve, fields: idOnly(), known: core.Known{Columns: []core.KnownColumn{{ID: 1, Name: "id", Target: "id", Type: "long"}}}}
	if err := e.run(); fault.CodeOf(err) != fault.SinkSchemaChange {
		t.Errorf("a new column with a value in the rows that were there: %v", err)
	}
}

func idOnly() []iceberg.NestedField {
	return []iceberg.NestedField{{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true}}
}

// Files staged before a change of columns are right after it: their fields are known by id.
func TestStagedBeforeTheChange(t *testing.T) {
	t.Parallel()
	sp := specOf(tempDir(t), spec.Upsert, both)
	sp.SchemaChange = spec.Evolve
	s := newScene(t, sp)
	s.quiet = true
	one := schemaOf(t, 1, text("name", 2), kind("n", 3, rows.Of(rows.KindInt32)))
	two := schemaOf(t, 2, text("title", 2), kind("n", 3, rows.Of(rows.KindInt64)), text("note", 4))
	s.epoch(t, s.batch(t, one, image{rows.OpInsert, 1, "a"}))
	// Both versions in one epoch: the first in files, the second over the bus.
	c := s.stage(t, s.batch(t, one, image{rows.OpInsert, 2, "b"}), s.batch(t, two, image{rows.OpUpdateAfter, 1, "A"}, image{rows.OpInsert, 3, "c"}))
	if len(c.Staged) != 2 {
		t.Fatalf("%d pieces, want 2", len(c.Staged))
	}
	var first, second piece
	for i, p := range []*piece{&first, &second} {
		got, err := parsePiece(c.Staged[i])
		if err != nil {
			t.Fatal(err)
		}
		*p = *got
	}
	if first.Parts != nil || len(first.Files) != 3 || second.Parts == nil || len(second.Files) != 0 {
		t.Errorf("the first version has %d files, parts %t; the second %d, %t", len(first.Files), first.Parts != nil, len(second.Files), second.Parts != nil)
	}
	s.commit(t, c)
	// The next epoch of the new version needs no bus.
	c = s.stage(t, s.batch(t, two, image{rows.OpInsert, 4, "d"}))
	if p, err := parsePiece(c.Staged[0]); err != nil || p.Parts != nil {
		t.Errorf("rows that fit go over the bus: %v, %v", p, err)
	}
	s.commit(t, c)
	var got []string
	for _, r := range s.rows(t, current, "shop.goods") {
		got = append(got, fmt.Sprint(r.Cells["id"], " ", r.Cells["title"], " ", r.Cells["note"]))
	}
	slices.Sort(got)
	if want := []string{"1 A A", "2 b NULL", "3 c c", "4 d d"}; !slices.Equal(got, want) {
		t.Errorf("the rows are %q, want %q", got, want)
	}
	if n := len(s.rows(t, changelog, "shop.goods")); n != 5 {
		t.Errorf("%d images, want 5", n)
	}
}

// A version whose columns are those of an earlier one is still a change of the table, which has gone on in between.
func TestThereAndBack(t *testing.T) {
	t.Parallel()
	sp := specOf(tempDir(t), spec.Upsert, nil)
	sp.SchemaChange = spec.Evolve
	s := newScene(t, sp)
	s.quiet = true
	for i, columns := range [][]rows.Column{{text("name", 2)}, {text("name", 2)}, {text("name", 2), text("note", 3)}, {text("name", 2)}} {
		s.epoch(t, s.batch(t, schemaOf(t, uint32(i+1), columns...), image{rows.OpInsert, int64(i), "x"}))
		var names []string
		for _, f := range s.state(t, current).meta.CurrentSchema().Fields() {
			names = append(names, f.Name)
		}
		want := []string{"id"}
		for _, c := range columns {
			want = append(want, c.Name)
		}
		if !slices.Equal(names, want) {
			t.Errorf("after version %d the columns are %v, want %v", i+1, names, want)
		}
	}
}

// Every logical type goes into a file and comes back.
func TestTypes(t *testing.T) {
	t.Parallel()
	var columns []rows.Column
	for k := rows.KindBool; k < rows.KindList; k++ {
		typ := rows.Of(k)
		if k == rows.KindDecimal {
			typ = rows.Decimal(20, 4)
		}
		columns = append(columns, kind(k.String(), int(k)+1, typ), kind("list of "+k.String(), int(k)+101, rows.List(typ)))
	}
	columns = append(columns, kind("wide", 300, rows.Decimal(60, 5)))
	s := newScene(t, specOf(tempDir(t), spec.Upsert, both))
	wide := schemaOf(t, 1, columns...)
	for range 3 { // over the bus, then in files
		b := rows.NewBuilder(wide)
		for i := range wide.NumColumns() {
			sample(t, b.Column(i))
		}
		s.seq++
		b.EndRow(rows.Meta{Op: rows.OpUpdateAfter, Seq: s.seq, Txn: s.seq})
		out, err := b.Flush()
		if err != nil {
			t.Fatal(err)
		}
		s.epoch(t, *out)
	}
	log := s.rows(t, changelog, "shop.goods")
	if len(log) != 3 {
		t.Fatalf("%d images, want 3", len(log))
	}
	now := s.rows(t, current, "shop.goods")
	if len(now) != 1 {
		t.Fatalf("%d rows, want 1", len(now))
	}
	for name, cell := range now[0].Cells {
		if cell == sinktest.Null {
			t.Errorf("column %s is null", name)
		}
		if log[0].Cells[name] != cell || log[2].Cells[name] != cell {
			t.Errorf("column %s is %q over the bus, %q in files, %q in the other table", name, log[0].Cells[name], log[2].Cells[name], cell)
		}
	}
	for name, want := range map[string]string{
		"uint64": "18446744073709551615", "decimal": "12.34", "wide": "12.34000", "duration": "-5000000", "list of text": `["text"]`, "decimal_text": "text",
	} {
		if got := now[0].Cells[name]; got != want {
			t.Errorf("column %s is %q, want %q", name, got, want)
		}
	}
}

// sample appends a value of the builder's type.
func sample(t *testing.T, b array.Builder) {
	t.Helper()
	if l, ok := b.(*array.ListBuilder); ok {
		l.Append(true)
		sample(t, l.ValueBuilder())
		return
	}
	text, ok := map[arrow.Type]string{
		arrow.BOOL: "true", arrow.UINT64: "18446744073709551615", arrow.FLOAT32: "1.5", arrow.FLOAT64: "NaN", arrow.DECIMAL128: "12.34",
		arrow.DECIMAL256: "12.34", arrow.STRING: "text", arrow.BINARY: "Ynl0ZXM=", arrow.DATE32: "2026-11-30", arrow.TIME64: "12:34:56.789012",
		arrow.DURATION: "-5000000us", arrow.TIMESTAMP: "2026-11-30T12:34:56.789012Z", arrow.FIXED_SIZE_BINARY: "MDEyMzQ1Njc4OWFiY2RlZg==",
	}[b.Type().ID()]
	if !ok {
		text = "7"
	}
	if ts, ok := b.Type().(*arrow.TimestampType); ok && ts.TimeZone == "" {
		text = strings.TrimSuffix(text, "Z")
	}
	if err := b.AppendValueFromString(text); err != nil {
		t.Fatalf("%s: %v", b.Type(), err)
	}
}

// A row whose key is another one since the schema changed may be another writer's: what that one staged comes after all rows of the
// version before.
func TestKeyOfAnotherWriter(t *testing.T) {
	t.Parallel()
	s := newScene(t, specOf(tempDir(t), spec.Upsert, nil))
	row := func(version uint32, op rows.Op, name, note string) rows.Batch {
		var key [2]int
		key[version-1] = 1
		schema, err := rows.NewSchema("shop.goods", version, "", []rows.Column{
			{Name: "id", Type: rows.Of(rows.KindText), KeyPos: key[0], ID: 1}, {Name: "name", Type: rows.Of(rows.KindText), KeyPos: key[1], ID: 2}, text("note", 3),
		})
		if err != nil {
			t.Fatal(err)
		}
		b := rows.NewBuilder(schema)
		s.seq++
		for i, x := range []string{"1", name, note} {
			b.Column(i).(*array.StringBuilder).Append(x)
		}
		b.EndRow(rows.Meta{Op: op, Seq: s.seq, Ts: int64(s.seq), Txn: s.seq})
		batch, err := b.Flush()
		if err != nil {
			t.Fatal(err)
		}
		return *batch
	}
	c := s.stage(t, row(1, rows.OpInsert, "a", "old"), row(2, rows.OpUpdateAfter, "a", "new"))
	if len(c.Staged) != 2 {
		t.Fatalf("%d pieces, want one of each version", len(c.Staged))
	}
	c.Staged[1].Subtask.Index = 1
	s.commit(t, c)
	if got := s.rows(t, current, "shop.goods"); len(got) != 1 || got[0].Cells["note"] != "new" {
		t.Errorf("the rows are %v", got)
	}
}

// An update that lacks columns finds its row also when the column of the key has become wider since the row was written.
func TestKeyThatWidened(t *testing.T) {
	t.Parallel()
	s := newScene(t, specOf(tempDir(t), spec.Upsert, nil))
	s.quiet = true // the change of the column is told
	row := func(version uint32, kind rows.Kind, op rows.Op, id int64, name string) rows.Batch {
		schema, err := rows.NewSchema("shop.goods", version, "", []rows.Column{{Name: "id", Type: rows.Of(kind), KeyPos: 1, ID: 1}, text("name", 2), text("note", 3)})
		if err != nil {
			t.Fatal(err)
		}
		b := rows.NewBuilder(schema)
		s.seq++
		switch c := b.Column(0).(type) {
		case *array.Int32Builder:
			c.Append(int32(id))
		case *array.Int64Builder:
			c.Append(id)
		}
		if name == "" {
			b.Absent(1)
		} else {
			b.Column(1).(*array.StringBuilder).Append(name)
		}
		b.Column(2).(*array.StringBuilder).Append("note")
		b.EndRow(rows.Meta{Op: op, Seq: s.seq, Ts: int64(s.seq), Txn: s.seq})
		batch, err := b.Flush()
		if err != nil {
			t.Fatal(err)
		}
		return *batch
	}
	s.epoch(t, row(1, rows.KindInt32, rows.OpInsert, 1, "a"), row(1, rows.KindInt32, rows.OpInsert, 2, "a"))
	s.epoch(t, row(2, rows.KindInt64, rows.OpUpdateAfter, 1, ""))
	s.epoch(t, row(2, rows.KindInt64, rows.OpUpdateAfter, 2, "b"))
	now := strings.Split(cells(s.rows(t, current, "shop.goods")), ", ")
	if slices.Sort(now); !slices.Equal(now, []string{"1=a", "2=b"}) {
		t.Errorf("the rows are %v", now)
	}
}
