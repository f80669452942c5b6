package iceberg

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/services/sink/internal/core"
)

// colEpoch is the changelog's column for the epoch that staged the row.
const colEpoch = "_epoch"

// changeColumns are the columns that a changelog has before the table's own.
func changeColumns() []iceberg.NestedField {
	return []iceberg.NestedField{
		{ID: 1, Name: rows.ColOp, Type: iceberg.PrimitiveTypes.Int32, Required: true},
		{ID: 2, Name: rows.ColSeq, Type: iceberg.PrimitiveTypes.Int64, Required: true},
		{ID: 3, Name: rows.ColTs, Type: iceberg.PrimitiveTypes.TimestampTz},
		{ID: 4, Name: rows.ColTxn, Type: iceberg.PrimitiveTypes.Int64, Required: true},
		{ID: 5, Name: rows.ColXid, Type: iceberg.PrimitiveTypes.Int64, Required: true},
		{ID: 6, Name: rows.ColOrd, Type: iceberg.PrimitiveTypes.Int64, Required: true},
		{ID: 7, Name: colEpoch, Type: iceberg.PrimitiveTypes.Int64, Required: true},
		{ID: 8, Name: rows.ColAbsent, Type: &iceberg.ListType{ElementID: 10, Element: iceberg.PrimitiveTypes.String, ElementRequired: true}},
		{ID: 9, Name: rows.ColSpecial, Type: iceberg.PrimitiveTypes.String},
	}
}

// The properties by which the sink knows its tables again.
const (
	propOwner   = "weir.owner"   // <job>.<sink>
	propSource  = "weir.source"  // the source table
	propRole    = "weir.role"    // current or changelog
	propColumns = "weir.columns" // core.Known as JSON
)

func knownOf(props iceberg.Properties) (core.Known, error) {
	var k core.Known
	if text := props[propColumns]; text != "" {
		if err := json.Unmarshal([]byte(text), &k); err != nil {
			return k, fmt.Errorf("read property %s: %w", propColumns, err)
		}
	}
	return k, nil
}

// layout is how rows of one schema version are written into files of one table. Fields have the table's ids, so a file stays right
// when the table changes later.
type layout struct {
	role   role
	schema *rows.Schema
	id     string // of the table
	root   string // of the table's files
	spec   iceberg.PartitionSpec
	table  *iceberg.Schema
	data   form
	key    form // of equality deletes; current tables only
}

// form is the columns of one kind of file.
type form struct {
	schema *iceberg.Schema
	arrow  *arrow.Schema
	from   []int // the schema's column for each field; negative for a column of the changelog: -1 - its place there
	ids    []int
	parts  []part
}

// layoutOf binds a schema version to a table that fits it.
func layoutOf(r role, s *rows.Schema, meta table.Metadata, where string) (*layout, error) {
	known, err := knownOf(meta.Properties())
	if err != nil {
		return nil, err
	}
	l := &layout{role: r, schema: s, id: meta.TableUUID().String(), root: meta.Location(), spec: meta.PartitionSpec(), table: meta.CurrentSchema()}
	var fields, keys []iceberg.NestedField
	var from, keyFrom []int
	if r == changelog {
		for i, c := range changeColumns() {
			f, ok := l.table.FindFieldByName(c.Name)
			if !ok {
				return nil, missingColumn(where, s, c.Name)
			}
			fields, from = append(fields, f), append(from, -1-i)
		}
	}
	for i, c := range s.Columns() {
		at := known.Was(c)
		if at < 0 || known.Columns[at].Target == "" {
			continue // the table has no column for it
		}
		f, ok := l.table.FindFieldByName(known.Columns[at].Target)
		if !ok {
			return nil, missingColumn(where, s, known.Columns[at].Target)
		}
		fields, from = append(fields, f), append(from, i)
	}
	if r == current {
		for _, i := range s.Key() {
			at := slices.Index(from, i)
			if at < 0 {
				return nil, missingColumn(where, s, s.Column(i).Name)
			}
			keys, keyFrom = append(keys, fields[at]), append(keyFrom, i)
		}
		if l.key, err = l.form(keys, keyFrom, where); err != nil {
			return nil, err
		}
	}
	l.data, err = l.form(fields, from, where)
	return l, err
}

func missingColumn(where string, s *rows.Schema, column string) error {
	return fault.New(fault.SinkMissingColumn, where, "column "+column+" is not there", "table", string(s.Table()), "column", column)
}

// form binds columns to the table's partition, which has to be made of them.
func (l *layout) form(fields []iceberg.NestedField, from []int, where string) (form, error) {
	f := form{schema: iceberg.NewSchema(0, fields...), from: from}
	for _, x := range fields {
		f.ids = append(f.ids, x.ID)
	}
	var err error
	if f.arrow, err = table.SchemaToArrowSchema(f.schema, nil, true, false); err != nil {
		return f, err
	}
	for _, p := range l.spec.Fields() {
		at := slices.Index(f.ids, p.SourceID())
		if at < 0 {
			return f, fault.New(fault.SinkSchemaChange, where, "the table is partitioned by "+p.Name+
				", which files of the sink cannot be: it deletes rows by their key, and writes the source's columns", "table", string(l.schema.Table()))
		}
		f.parts = append(f.parts, part{p, at, f.schema.Field(at).Type})
	}
	return f, nil
}
