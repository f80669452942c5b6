package iceberg

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
)

// What a reader has to hold at once: rows of about groupBytes, and no fewer than leastRowGroup unless they are very large.
const (
	groupBytes    = 8 << 20
	leastRowGroup = 1 << 13
	maxRowGroup   = 1 << 20
)

// rowGroup is how many rows of a size a row group has.
func rowGroup(bytes, size int64) int64 { return min(max(bytes/max(size, 1), 1), maxRowGroup) }

// heldBy is the size of the memory behind a batch, which may be a part of it.
func heldBy(r arrow.RecordBatch) (n int64) {
	for _, c := range r.Columns() {
		n += held(c.Data())
	}
	return n
}

func held(d arrow.ArrayData) (n int64) {
	for _, b := range d.Buffers() {
		if b != nil {
			n += int64(b.Len())
		}
	}
	for _, c := range d.Children() {
		n += held(c)
	}
	return n
}

// compressionLevel is that of Parquet's zstd, for rewrites as well: compressors of each level are kept apart, some 30 MiB for those of the
// library's default, which makes files 4 % smaller.
const compressionLevel = 1

// formatVersion is that of all tables: equality deletes are what every reader of today knows.
const formatVersion = 2

// content is a file's bytes with what a manifest says of them.
type content struct {
	data  []byte
	entry func(path string) (iceberg.DataFile, error)
	rows  int
}

// records are batches in the columns of a form. Every record has rows.
func (l *layout) records(ctx context.Context, f form, batches []*rows.Batch, e epoch.ID) ([]arrow.RecordBatch, error) {
	out := make([]arrow.RecordBatch, 0, len(batches))
	for _, b := range batches {
		columns := make([]arrow.Array, len(f.from))
		for i, from := range f.from {
			to := f.arrow.Field(i)
			var err error
			if from < 0 {
				columns[i] = changeColumn(b, -1-from, e, to.Type)
			} else if columns[i], err = stored(ctx, b.Column(from), b.Schema().Column(from).Type, to.Type); err != nil {
				// The cast's error may hold the value.
				return nil, fault.New(fault.SinkRow, "table "+string(l.schema.Table())+", column "+to.Name,
					fmt.Sprintf("a value of type %s does not fit into %s", b.Schema().Column(from).Type, to.Type), "table", string(l.schema.Table()))
			}
			if !to.Nullable && columns[i].NullN() > 0 {
				return nil, fault.New(fault.SinkRow, "table "+string(l.schema.Table())+", column "+to.Name,
					"a key has no value that Iceberg can hold", "table", string(l.schema.Table()))
			}
		}
		out = append(out, array.NewRecordBatch(f.arrow, columns, int64(b.NumRows())))
	}
	return out, nil
}

// changeColumn is one of changeColumns.
func changeColumn(b *rows.Batch, place int, e epoch.ID, to arrow.DataType) arrow.Array {
	mem := memory.DefaultAllocator
	if place == 0 {
		x := array.NewInt32Builder(mem)
		for i := range b.NumRows() {
			x.Append(int32(b.Op(i)))
		}
		return x.NewArray()
	}
	switch changeColumns()[place].Name {
	case rows.ColTs:
		return b.Arrow().Column(b.Schema().NumColumns() + 2)
	case rows.ColAbsent:
		return absentNames(b, to)
	case rows.ColSpecial:
		return specialTexts(b)
	}
	x := array.NewInt64Builder(mem)
	x.Reserve(b.NumRows())
	for i := range b.NumRows() {
		m := b.Meta(i)
		x.UnsafeAppend([]int64{1: int64(m.Seq), 3: int64(m.Txn), 4: int64(m.Xid), 5: int64(m.Ord), 6: int64(e)}[place])
	}
	return x.NewArray()
}

func absentNames(b *rows.Batch, to arrow.DataType) arrow.Array {
	x := array.NewBuilder(memory.DefaultAllocator, to).(*array.ListBuilder)
	names := x.ValueBuilder().(*array.StringBuilder)
	for i := range b.NumRows() {
		absent := b.Absent(i)
		if len(absent) == 0 {
			x.AppendNull()
			continue
		}
		x.Append(true)
		for _, c := range absent {
			names.Append(b.Schema().Column(int(c)).Name)
		}
	}
	return x.NewArray()
}

func specialTexts(b *rows.Batch) arrow.Array {
	x := array.NewStringBuilder(memory.DefaultAllocator)
	for i := range b.NumRows() {
		special := b.Special(i)
		if len(special) == 0 {
			x.AppendNull()
			continue
		}
		texts := make(map[string]string, len(special))
		for _, s := range special {
			texts[b.Schema().Column(s.Column).Name] = s.Text
		}
		text, err := json.Marshal(texts)
		if err != nil {
			panic("iceberg: texts do not encode: " + err.Error()) // a map of strings always does
		}
		x.BinaryBuilder.Append(text)
	}
	return x.NewArray()
}

// encode writes records as one Parquet file.
func encode(f form, records []arrow.RecordBatch) (*bytes.Buffer, *pqarrow.FileWriter, int, error) {
	var out bytes.Buffer
	var size, count int64
	for _, r := range records {
		count += r.NumRows()
		size += heldBy(r)
	}
	limit := max(rowGroup(groupBytes, size/max(count, 1)), leastRowGroup)
	w, err := pqarrow.NewFileWriter(f.arrow, &out, parquet.NewWriterProperties(
		parquet.WithMaxRowGroupLength(limit), parquet.WithCompression(compress.Codecs.Zstd), parquet.WithCompressionLevel(compressionLevel),
		parquet.WithCreatedBy("weir"), parquet.WithStats(true), parquet.WithDictionaryDefault(false),
	), pqarrow.DefaultWriterProps())
	if err != nil {
		return nil, nil, 0, err
	}
	n := 0
	for _, r := range records {
		n += int(r.NumRows())
		if err := w.WriteBuffered(r); err != nil {
			return nil, nil, 0, err
		}
	}
	return &out, w, n, w.Close()
}

// file makes one file of records.
func (l *layout) file(f form, kind iceberg.ManifestEntryContent, records []arrow.RecordBatch, partition map[int]any) (content, error) {
	out, w, n, err := encode(f, records)
	if err != nil {
		return content{}, fmt.Errorf("write rows of %s: %w", l.schema.Table(), err)
	}
	md, err := w.FileMetadata()
	if err != nil {
		return content{}, fmt.Errorf("write rows of %s: %w", l.schema.Table(), err)
	}
	args := table.DataFileArgs{
		Schema: f.schema, Spec: l.spec, Format: iceberg.ParquetFile, Metadata: md, FileSize: int64(out.Len()), Content: kind,
		PartitionValues: partition, FormatVersion: formatVersion,
	}
	if kind == iceberg.EntryContentEqDeletes {
		args.EqualityFieldIDs = f.ids
	}
	return content{data: out.Bytes(), rows: n, entry: func(path string) (iceberg.DataFile, error) {
		args.FilePath = path
		return table.DataFileFromMetadata(args)
	}}, nil
}

// files makes those that the table gets of a piece's rows: the images of an epoch, or deletes and then what comes. Rows that lack
// columns are not in them.
func (l *layout) files(ctx context.Context, s sorted, e epoch.ID) ([]content, error) {
	if l.role == changelog {
		return l.contents(ctx, s.images, e)
	}
	deletes, err := l.deletes(ctx, s.keys)
	if err != nil {
		return nil, err
	}
	data, err := l.contents(ctx, s.whole, 0)
	return append(deletes, data...), err
}

// contents makes the data files of batches, one for each partition.
func (l *layout) contents(ctx context.Context, batches []*rows.Batch, e epoch.ID) ([]content, error) {
	records, err := l.records(ctx, l.data, batches, e)
	if err != nil {
		return nil, err
	}
	return l.divided(ctx, l.data, iceberg.EntryContentData, records)
}

// deletes makes files of the keys of batches, one for each partition.
func (l *layout) deletes(ctx context.Context, batches []*rows.Batch) ([]content, error) {
	records, err := l.records(ctx, l.key, batches, 0)
	if err != nil {
		return nil, err
	}
	return l.divided(ctx, l.key, iceberg.EntryContentEqDeletes, records)
}

// divided makes files of records, one for each partition that has rows.
func (l *layout) divided(ctx context.Context, f form, kind iceberg.ManifestEntryContent, records []arrow.RecordBatch) ([]content, error) {
	if len(records) == 0 {
		return nil, nil
	}
	if len(f.parts) == 0 {
		c, err := l.file(f, kind, records, nil)
		return []content{c}, err
	}
	piles, err := f.piles(ctx, records)
	if err != nil {
		return nil, err
	}
	out := make([]content, len(piles))
	for i, p := range piles {
		if out[i], err = l.file(f, kind, p.records, p.values); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func take(ctx context.Context, r arrow.RecordBatch, idx []int32) (arrow.RecordBatch, error) {
	if len(idx) == int(r.NumRows()) {
		return r, nil
	}
	columns := make([]arrow.Array, r.NumCols())
	for i, c := range r.Columns() {
		var err error
		if columns[i], err = takeArray(ctx, c, idx); err != nil {
			return nil, err
		}
	}
	return array.NewRecordBatch(r.Schema(), columns, int64(len(idx))), nil
}
