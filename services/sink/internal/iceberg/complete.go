package iceberg

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/services/sink/internal/stage"
)

// maxFilter is how many keys a scan looks for; more of them read the whole table.
const maxFilter = 1000

// complete makes whole rows of those that lack columns: what they lack is read from the table as it is before this turn. The rows
// of a part lack the same columns.
func (w *work) complete(ctx context.Context, l *layout, part stage.Part) (arrow.RecordBatch, error) {
	b := part.Rows
	lookup := l.key // the form of the key under which the table has the row
	if part.Kind == stage.Move {
		lookup.from = nil
		for i := range l.key.from {
			lookup.from = append(lookup.from, l.schema.NumColumns()+i)
		}
	}
	sought, err := l.records(ctx, lookup, []*rows.Batch{b}, 0)
	if err != nil {
		return nil, err
	}
	have, err := w.fetch(ctx, l, sought[0])
	if err != nil {
		return nil, err
	}
	at, err := match(l, sought[0], have)
	if err != nil {
		return nil, err
	}
	new, err := l.records(ctx, l.data, []*rows.Batch{b}, 0)
	if err != nil {
		return nil, err
	}
	columns := slices.Clone(new[0].Columns())
	for _, c := range b.Absent(0) {
		i := slices.Index(l.data.from, int(c))
		if i < 0 {
			continue // the table has no column for it
		}
		if columns[i], err = takeArray(ctx, have.Column(i), at); err != nil {
			return nil, err
		}
	}
	return array.NewRecordBatch(l.data.arrow, columns, int64(b.NumRows())), nil
}

// fetch reads the table's rows that have one of the keys, in the columns of data files.
func (w *work) fetch(ctx context.Context, l *layout, keys arrow.RecordBatch) (arrow.RecordBatch, error) {
	names := make([]string, len(l.data.from))
	for i, f := range l.data.schema.Fields() {
		names[i] = f.Name
	}
	scan, err := w.tx.Scan(table.WithSelectedFields(names...), table.WithRowFilter(w.some(l, keys)))
	if err != nil {
		return nil, err
	}
	_, records, err := scan.ToArrowRecords(ctx)
	if err != nil {
		return nil, fmt.Errorf("read rows to complete: %w", err)
	}
	sought := make(map[string]bool, keys.NumRows())
	for i := range int(keys.NumRows()) {
		sought[keyText(keys.Columns(), i)] = true
	}
	found := make([][]arrow.Array, len(names))
	for rec, err := range records {
		if err != nil {
			return nil, fmt.Errorf("read rows to complete: %w", err)
		}
		if err := l.pick(ctx, rec, sought, found); err != nil {
			return nil, err
		}
	}
	columns := make([]arrow.Array, len(names))
	for i := range columns {
		if columns[i], err = joined(ctx, found[i], l.data.arrow.Field(i).Type); err != nil {
			return nil, err
		}
	}
	return array.NewRecordBatch(l.data.arrow, columns, int64(columns[0].Len())), nil
}

// pick adds the rows of a record that are sought to what is found of each column.
func (l *layout) pick(ctx context.Context, rec arrow.RecordBatch, sought map[string]bool, found [][]arrow.Array) error {
	columns := make([]arrow.Array, len(found))
	for i, f := range l.data.schema.Fields() {
		at := rec.Schema().FieldIndices(f.Name)
		if len(at) != 1 {
			return fmt.Errorf("read rows to complete: column %s is not there", f.Name)
		}
		var err error
		if columns[i], err = joined(ctx, []arrow.Array{rec.Column(at[0])}, l.data.arrow.Field(i).Type); err != nil {
			return err
		}
	}
	var rows []int32
	key := l.keyOf(columns)
	for i := range int(rec.NumRows()) {
		if sought[keyText(key, i)] {
			rows = append(rows, int32(i))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	for i, c := range columns {
		some, err := takeArray(ctx, c, rows)
		if err != nil {
			return err
		}
		found[i] = append(found[i], some)
	}
	return nil
}

// keyOf are the columns of the key among those of data files.
func (l *layout) keyOf(columns []arrow.Array) []arrow.Array {
	key := make([]arrow.Array, len(l.key.ids))
	for i, id := range l.key.ids {
		key[i] = columns[slices.Index(l.data.ids, id)]
	}
	return key
}

// joined is a column as one array of a type.
func joined(ctx context.Context, parts []arrow.Array, to arrow.DataType) (a arrow.Array, err error) {
	switch len(parts) {
	case 0:
		return array.MakeArrayOfNull(memory.DefaultAllocator, to, 0), nil
	case 1:
		a = parts[0]
	default:
		a, err = array.Concatenate(parts, memory.DefaultAllocator)
	}
	if err != nil || arrow.TypeEqual(a.DataType(), to) {
		return a, err
	}
	return compute.CastArray(ctx, a, compute.SafeCastOptions(to))
}

// some is a filter that keeps at least the rows with one of the keys. It asks for a column whose type has never changed: the library
// cannot read the bounds of files that are older than a change.
func (w *work) some(l *layout, keys arrow.RecordBatch) iceberg.BooleanExpression {
	for i, f := range l.key.schema.Fields() {
		if !slices.ContainsFunc(w.meta.Schemas(), func(s *iceberg.Schema) bool {
			was, ok := s.FindFieldByID(f.ID)
			return ok && !was.Type.Equals(f.Type)
		}) {
			return anyOf(f.Name, keys.Column(i))
		}
	}
	return iceberg.AlwaysTrue{}
}

// anyOf is a filter that keeps at least the rows whose column has one of the values.
func anyOf(name string, values arrow.Array) iceberg.BooleanExpression {
	if values.Len() > maxFilter {
		return iceberg.AlwaysTrue{}
	}
	switch a := values.(type) {
	case *array.Int32:
		return iceberg.IsIn(iceberg.Reference(name), a.Int32Values()...)
	case *array.Int64:
		return iceberg.IsIn(iceberg.Reference(name), a.Int64Values()...)
	case *array.String:
		texts := make([]string, a.Len())
		for i := range texts {
			texts[i] = a.Value(i)
		}
		return iceberg.IsIn(iceberg.Reference(name), texts...)
	}
	return iceberg.AlwaysTrue{}
}

// match finds for each key its row.
func match(l *layout, keys, have arrow.RecordBatch) ([]int32, error) {
	places := make(map[string]int32, have.NumRows())
	columns := l.keyOf(have.Columns())
	for i := range int(have.NumRows()) {
		places[keyText(columns, i)] = int32(i)
	}
	at := make([]int32, keys.NumRows())
	for i := range at {
		place, ok := places[keyText(keys.Columns(), i)]
		if !ok {
			table := string(l.schema.Table())
			return nil, fault.New(fault.SinkPartialMiss, "table "+table, "the table has no row with the key of an update that lacks columns", "table", table)
		}
		at[i] = place
	}
	return at, nil
}

func keyText(columns []arrow.Array, i int) string {
	if len(columns) == 1 {
		return columns[0].ValueStr(i)
	}
	var b strings.Builder
	for _, c := range columns {
		text := c.ValueStr(i)
		fmt.Fprintf(&b, "%d:%s", len(text), text)
	}
	return b.String()
}

func takeArray(ctx context.Context, a arrow.Array, idx []int32) (arrow.Array, error) {
	b := array.NewInt32Builder(memory.DefaultAllocator)
	b.AppendValues(idx, nil)
	at := b.NewArray()
	if ext, ok := a.(array.ExtensionArray); ok {
		inner, err := compute.TakeArray(ctx, ext.Storage(), at)
		if err != nil {
			return nil, err
		}
		return array.NewExtensionArrayWithStorage(ext.ExtensionType(), inner), nil
	}
	return compute.TakeArray(ctx, a, at)
}
