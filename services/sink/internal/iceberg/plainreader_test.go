package iceberg

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	parquetfile "github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink/sinktest"
)

// plain reads tables in a directory by the words of the specification: which deletes reach which files, and rows, is decided here and
// not by the library. It looks at no statistics. What snapshots with a name need has to be there, too.
func (r *reader) plain(role role) func(tb testing.TB, id rows.TableID) []sinktest.Row {
	return func(tb testing.TB, id rows.TableID) []sinktest.Row {
		tb.Helper()
		return r.plainNow(tb, role, id)
	}
}

func (r *reader) plainNow(tb testing.TB, role role, id rows.TableID) []sinktest.Row {
	tb.Helper()
	s, err := r.tables.load(tb.Context(), role, id, nil)
	if err != nil {
		tb.Fatal(err)
	}
	if s.meta == nil || s.meta.CurrentSnapshot() == nil {
		return nil
	}
	for name, ref := range s.meta.Refs() {
		if name != table.MainBranch {
			r.plainAt(tb, s, role, s.meta.SnapshotByID(ref.SnapshotID))
		}
	}
	return r.plainAt(tb, s, role, s.meta.CurrentSnapshot())
}

func (r *reader) plainAt(tb testing.TB, s *state, role role, snapshot *table.Snapshot) []sinktest.Row {
	tb.Helper()
	list, err := snapshot.Manifests(r.p.fs)
	if err != nil {
		tb.Fatal(err)
	}
	var data, deletes []iceberg.ManifestEntry
	for _, m := range list {
		for e, err := range m.Entries(r.p.fs, true) {
			if err != nil {
				tb.Fatal(err)
			}
			if e.DataFile().ContentType() == iceberg.EntryContentData {
				data = append(data, e)
			} else {
				deletes = append(deletes, e)
			}
		}
	}
	taken := make(map[string]func(path string, row plainRow) bool)
	for _, d := range deletes {
		taken[d.DataFile().FilePath()] = takenBy(d.DataFile(), plainFile(tb, d.DataFile().FilePath()))
	}
	var lines []plainLine
	for _, e := range data {
		for _, row := range plainFile(tb, e.DataFile().FilePath()) {
			if !slices.ContainsFunc(deletes, func(d iceberg.ManifestEntry) bool {
				whole := s.meta.PartitionSpecByID(int(d.DataFile().SpecID())).IsUnpartitioned()
				return reachesFile(d, e, whole) && taken[d.DataFile().FilePath()](e.DataFile().FilePath(), row)
			}) {
				lines = append(lines, plainLineOf(s.meta.CurrentSchema(), role, row))
			}
		}
	}
	slices.SortStableFunc(lines, func(x, y plainLine) int { return int(x.seq - y.seq) })
	out := make([]sinktest.Row, len(lines))
	for i, l := range lines {
		out[i] = l.row
	}
	return out
}

// reachesFile reports whether a file of deletes may take rows of a data file.
func reachesFile(d, e iceberg.ManifestEntry, whole bool) bool {
	there := d.DataFile().SpecID() == e.DataFile().SpecID() && fmt.Sprint(d.DataFile().Partition()) == fmt.Sprint(e.DataFile().Partition())
	if d.DataFile().ContentType() == iceberg.EntryContentPosDeletes {
		return there && e.SequenceNum() <= d.SequenceNum()
	}
	return (whole || there) && e.SequenceNum() < d.SequenceNum()
}

// takenBy tells the rows that a file of deletes takes from a file that it reaches.
func takenBy(d iceberg.DataFile, all []plainRow) func(path string, row plainRow) bool {
	const deletedPath, deletedPos = 2147483546, 2147483545 // the specification's ids
	gone := make(map[string]bool)
	if d.ContentType() == iceberg.EntryContentPosDeletes {
		for _, x := range all {
			gone[x.cells[deletedPath].text+" "+x.cells[deletedPos].text] = true
		}
		return func(path string, row plainRow) bool { return gone[path+" "+strconv.Itoa(row.at)] }
	}
	key := func(x plainRow) (text string) {
		for _, id := range d.EqualityFieldIDs() {
			text += fmt.Sprintf("%v %q ", x.cells[id].null, x.cells[id].text)
		}
		return text
	}
	for _, x := range all {
		gone[key(x)] = true
	}
	return func(_ string, row plainRow) bool { return gone[key(row)] }
}

// plainRow is a row of a file: its place, and its cells by field id.
type plainRow struct {
	at    int
	cells map[int]plainCell
}

type plainCell struct {
	null bool
	text string
	list []string
}

func plainFile(tb testing.TB, uri string) (out []plainRow) {
	tb.Helper()
	f, err := os.Open(pathOf(uri))
	if err != nil {
		tb.Fatal(err)
	}
	p, err := parquetfile.NewParquetReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	a, err := pqarrow.NewFileReader(p, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		tb.Fatal(err)
	}
	t, err := a.ReadTable(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	for records := array.NewTableReader(t, 1<<20); records.Next(); {
		rec := records.RecordBatch()
		for i := range int(rec.NumRows()) {
			row := plainRow{at: len(out), cells: make(map[int]plainCell)}
			for c, field := range rec.Schema().Fields() {
				row.cells[fieldID(tb, field)] = plainCellOf(rec.Column(c), i)
			}
			out = append(out, row)
		}
	}
	return out
}

func fieldID(tb testing.TB, f arrow.Field) int {
	tb.Helper()
	text, _ := f.Metadata.GetValue("PARQUET:field_id")
	id, err := strconv.Atoi(text)
	if err != nil {
		tb.Fatalf("column %s: %v", f.Name, err)
	}
	return id
}

func plainCellOf(col arrow.Array, i int) plainCell {
	if col.IsNull(i) {
		return plainCell{null: true}
	}
	if _, ok := col.(array.ListLike); ok {
		return plainCell{list: names(col, i)}
	}
	return plainCell{text: col.ValueStr(i)}
}

type plainLine struct {
	seq int64
	row sinktest.Row
}

func plainLineOf(schema *iceberg.Schema, role role, row plainRow) plainLine {
	l := plainLine{row: sinktest.Row{Cells: make(map[string]string)}}
	var absent []string
	for _, f := range schema.Fields() {
		cell, ok := row.cells[f.ID]
		n, _ := strconv.ParseInt(cell.text, 10, 64) // used for numbers only
		switch {
		case role == current || f.Name[0] != '_':
			l.row.Cells[f.Name] = cell.text
			if !ok || cell.null {
				l.row.Cells[f.Name] = sinktest.Null
			}
		case f.Name == rows.ColOp:
			l.row.Op = rows.Op(n)
		case f.Name == rows.ColSeq:
			l.seq = n
		case f.Name == rows.ColAbsent:
			absent = cell.list
		}
	}
	for _, name := range absent {
		l.row.Cells[name] = sinktest.Absent
	}
	return l
}
