package iceberg

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go/table"

	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/sink/sinktest"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
)

func resolve(ref string) (string, error) { return ref, nil }

func specOf(dir string, mode spec.Mode, more func(*spec.IcebergSink)) spec.Sink {
	ice := &spec.IcebergSink{Warehouse: config.NewText(dir), Namespace: "lake", Table: "{schema}_{table}"}
	if more != nil {
		more(ice)
	}
	return spec.Sink{Name: "lake", Type: "iceberg", Mode: mode, SchemaChange: spec.Lenient, Config: ice}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		mode spec.Mode
		more func(*spec.IcebergSink)
	}{
		"changelog":             {spec.Changelog, nil},
		"changelog, partitions": {spec.Changelog, func(i *spec.IcebergSink) { i.Partition = []string{"day", "bucket(3)"} }},
		"current":               {spec.Upsert, nil},
		"current, buckets":      {spec.Upsert, func(i *spec.IcebergSink) { i.Buckets = 3 }},
		"both": {spec.Upsert, func(i *spec.IcebergSink) {
			i.Changelog, i.Allow = "{schema}_{table}_log", []spec.Allowance{spec.AllowTruncate}
		}},
	} {
		if raced && name != "both" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sinktest.Run(t, func(t *testing.T) sinktest.Fixture {
				t.Helper()
				s := specOf(tempDir(t), tt.mode, tt.more)
				r := newReader(t, s)
				tiny := 20
				if name == "both" && !raced {
					tiny = 60 // enough to compact several times
				}
				return sinktest.Fixture{
					Connector: Connector{}, Resolve: resolve, Spec: s, TinyEpochs: tiny,
					Truncates: s.Config.(*spec.IcebergSink).Allows(spec.AllowTruncate), Read: r.read,
				}
			})
		})
	}
}

// tempDir is a directory whose name needs no escaping; those of t.TempDir have the test's name in them. It is in memory where there
// is room: a commit syncs a dozen files, no test here cuts the power, and so most of their time would be the disk's.
func tempDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp(inMemory(), "lake") //nolint:usetesting // see above
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "lake")
}

// inMemory is a file system in memory with a gigabyte to spare; empty when there is none, which means the default.
func inMemory() string {
	const shm = "/dev/shm"
	var fs syscall.Statfs_t
	if err := syscall.Statfs(shm, &fs); err != nil || fs.Bavail*uint64(fs.Bsize) < 1<<30 {
		return ""
	}
	return shm
}

// reader reads tables through the catalog, as another engine would, with the library's scan.
type reader struct {
	p      place
	tables *tables
}

func newReader(tb testing.TB, s spec.Sink) *reader {
	tb.Helper()
	p, err := placeOf(context.Background(), sink.Config{
		Identity: source.Identity{Job: "suite", Life: "reader", Subtask: plan.SubtaskID{Vertex: "reader"}},
		Sink:     s, Resolve: resolve, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		tb.Fatal(err)
	}
	r := &reader{p: p}
	if r.tables, err = openTables(context.Background(), &r.p); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = r.tables.close() })
	return r
}

func (r *reader) read(tb testing.TB, id rows.TableID) []sinktest.Row {
	tb.Helper()
	roles := r.p.roles()
	return r.rows(tb, roles[len(roles)-1], id)
}

func (r *reader) rows(tb testing.TB, role role, id rows.TableID) []sinktest.Row {
	tb.Helper()
	s, err := r.tables.load(tb.Context(), role, id, nil)
	if err != nil {
		tb.Fatal(err)
	}
	if s.meta == nil {
		return nil
	}
	t := table.New(table.Identifier{"lake", s.name}, s.meta, s.at, r.p.files, nil)
	all, err := t.Scan().ToArrowTable(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	type line struct {
		seq int64
		row sinktest.Row
	}
	var lines []line
	records := array.NewTableReader(all, 1<<20)
	for records.Next() {
		rec := records.RecordBatch()
		for i := range int(rec.NumRows()) {
			l := line{row: sinktest.Row{Cells: make(map[string]string)}}
			var absent []string
			for c, f := range rec.Schema().Fields() {
				col := rec.Column(c)
				switch {
				case role == current, f.Name[0] != '_':
					l.row.Cells[f.Name] = sinktest.Null
					if col.IsValid(i) {
						l.row.Cells[f.Name] = col.ValueStr(i)
					}
				case f.Name == rows.ColOp:
					l.row.Op = rows.Op(col.(*array.Int32).Value(i))
				case f.Name == rows.ColSeq:
					l.seq = col.(*array.Int64).Value(i)
				case f.Name == rows.ColAbsent && col.IsValid(i):
					absent = names(col, i)
				}
			}
			for _, name := range absent {
				l.row.Cells[name] = sinktest.Absent
			}
			lines = append(lines, l)
		}
	}
	slices.SortStableFunc(lines, func(x, y line) int { return cmp.Compare(x.seq, y.seq) })
	out := make([]sinktest.Row, len(lines))
	for i, l := range lines {
		out[i] = l.row
	}
	return out
}

func names(col arrow.Array, i int) (out []string) {
	l := col.(array.ListLike)
	from, to := l.ValueOffsets(i)
	for k := from; k < to; k++ {
		out = append(out, l.ListValues().ValueStr(int(k)))
	}
	return out
}
