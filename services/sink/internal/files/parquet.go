package files

import (
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
)

// maxRowGroup bounds what a reader has to hold at once, and what a writer does.
const maxRowGroup = 128 << 10

// shape is what all batches of one file have in common.
type shape struct {
	schema *rows.Schema
	mode   spec.Mode
	// special and absent say which of the optional columns the file has.
	special, absent bool
}

func shapeOf(b *rows.Batch, mode spec.Mode) shape {
	s := shape{schema: b.Schema(), mode: mode}
	if mode != spec.Append {
		s.special, s.absent = b.HasSpecial(), b.HasAbsent()
	}
	return s
}

// holds reports whether a file of shape s can take batches of shape o.
func (s shape) holds(o shape) bool {
	return s.schema.Same(o.schema) && (s.special || !o.special) && (s.absent || !o.absent)
}

// with keeps the optional columns that the table's last file had, so that files do not alternate.
func (s shape) with(o shape) shape {
	s.special, s.absent = s.special || o.special, s.absent || o.absent
	return s
}

// parquetFile writes batches as Parquet: the table's columns under their own names, in changelog mode followed by `_op`
// (the numbers of rows.Op), `_seq`, `_ts`, `_txn`, `_xid`, `_ord`, and where rows need them `_special` and `_absent`.
type parquetFile struct {
	shape  shape
	schema *arrow.Schema
	w      *pqarrow.FileWriter
}

func newParquet(out io.Writer, s shape) (*parquetFile, error) {
	p := &parquetFile{shape: s}
	var fields []arrow.Field
	for _, f := range s.schema.Arrow().Fields() {
		fields = append(fields, storable(f))
	}
	if s.mode != spec.Append {
		for _, f := range systemFields(s) {
			if _, clash := s.schema.Lookup(f.Name); clash {
				return nil, fault.New(fault.SinkNameClash, "table "+string(s.schema.Table()),
					"column "+f.Name+" of the source has the name of a changelog column")
			}
			fields = append(fields, f)
		}
	}
	md := s.schema.Arrow().Metadata()
	p.schema = arrow.NewSchema(fields, &md)
	props := parquet.NewWriterProperties(
		parquet.WithMaxRowGroupLength(maxRowGroup),
		parquet.WithCompression(compress.Codecs.Snappy),
		parquet.WithDictionaryDefault(false),
		parquet.WithCreatedBy("weir"),
	)
	var err error
	// The writer must not close the file: it is synced first.
	p.w, err = pqarrow.NewFileWriter(p.schema, struct{ io.Writer }{out}, props, pqarrow.DefaultWriterProps())
	if err != nil {
		return nil, fmt.Errorf("open a Parquet file for %s: %w", s.schema.Table(), err)
	}
	return p, nil
}

// storable is a field in a type that Parquet has: a duration is its microseconds.
func storable(f arrow.Field) arrow.Field {
	if f.Type.ID() == arrow.DURATION {
		f.Type = arrow.PrimitiveTypes.Int64
	}
	return f
}

// systemFields are the changelog's columns of a file. The optional ones are null where a row has none.
func systemFields(s shape) []arrow.Field {
	fields := []arrow.Field{
		{Name: rows.ColOp, Type: arrow.PrimitiveTypes.Uint8},
		{Name: rows.ColSeq, Type: arrow.PrimitiveTypes.Uint64},
		{Name: rows.ColTs, Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, Nullable: true},
		{Name: rows.ColTxn, Type: arrow.PrimitiveTypes.Uint64},
		{Name: rows.ColXid, Type: arrow.PrimitiveTypes.Uint32},
		{Name: rows.ColOrd, Type: arrow.PrimitiveTypes.Uint32},
	}
	if s.special {
		fields = append(fields, arrow.Field{Name: rows.ColSpecial, Nullable: true, Type: arrow.ListOfNonNullable(arrow.StructOf(
			arrow.Field{Name: "column", Type: arrow.PrimitiveTypes.Uint16},
			arrow.Field{Name: "text", Type: arrow.BinaryTypes.String}))})
	}
	if s.absent {
		fields = append(fields, arrow.Field{Name: rows.ColAbsent, Nullable: true, Type: arrow.ListOfNonNullable(arrow.PrimitiveTypes.Uint16)})
	}
	return fields
}

func (p *parquetFile) write(b *rows.Batch) error {
	rec := b.Arrow()
	own := b.Schema().NumColumns()
	columns := make([]arrow.Array, 0, p.schema.NumFields())
	for i := range p.schema.NumFields() {
		name := p.schema.Field(i).Name
		at := i // the table's own columns and the fixed system columns are where the batch has them
		switch {
		case i < own:
		case name == rows.ColSpecial && !b.HasSpecial(), name == rows.ColAbsent && !b.HasAbsent():
			columns = append(columns, array.MakeArrayOfNull(memory.DefaultAllocator, p.schema.Field(i).Type, b.NumRows()))
			continue
		case name == rows.ColAbsent:
			at = int(rec.NumCols()) - 1
		}
		columns = append(columns, stored(rec.Column(at)))
	}
	return p.w.WriteBuffered(array.NewRecordBatch(p.schema, columns, int64(b.NumRows())))
}

func stored(a arrow.Array) arrow.Array {
	if a.DataType().ID() != arrow.DURATION {
		return a
	}
	d := a.Data()
	return array.MakeFromData(array.NewData(arrow.PrimitiveTypes.Int64, d.Len(), d.Buffers(), nil, d.NullN(), d.Offset()))
}

func (p *parquetFile) close() error { return p.w.Close() }
