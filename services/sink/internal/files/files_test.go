package files

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/sink/sinktest"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
)

func resolve(ref string) (string, error) { return ref, nil }

func specOf(path string, mode spec.Mode, format spec.FileFormat) spec.Sink {
	return spec.Sink{Name: "lake", Type: "files", Mode: mode, Config: &spec.FilesSink{
		Files: spec.FilesTarget{Path: config.NewText(path), Format: format},
	}}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, format := range []spec.FileFormat{spec.Parquet, spec.JSONLines} {
		for _, mode := range []spec.Mode{spec.Changelog, spec.Append} {
			t.Run(fmt.Sprintf("%s %s", format, mode), func(t *testing.T) {
				t.Parallel()
				sinktest.Run(t, func(t *testing.T) sinktest.Fixture {
					t.Helper()
					path := filepath.Join(t.TempDir(), "lake [1]*")
					return sinktest.Fixture{
						Connector: Connector{}, Resolve: resolve, Spec: specOf(path, mode, format),
						TinyEpochs: 50, // a thousand would prove the disk slow
						Read: func(tb testing.TB, id rows.TableID) []sinktest.Row {
							tb.Helper()
							return read(tb, path, id)
						},
					}
				})
			})
		}
	}
}

// read is a reader that trusts manifests only.
func read(tb testing.TB, path string, id rows.TableID) []sinktest.Row {
	tb.Helper()
	all, err := Manifests(path)
	if err != nil {
		tb.Fatal(err)
	}
	var out []sinktest.Row
	prev := epoch.Ref{}
	for _, m := range all {
		if m.Prev != prev {
			tb.Fatalf("manifest %s follows %v, before it is %v", m.Epoch, m.Prev, prev)
		}
		prev = m.Ref
		for _, f := range m.Files {
			if f.Table != id {
				continue
			}
			found := readFile(tb, filepath.Join(path, f.Path))
			if uint64(len(found)) != f.Rows {
				tb.Fatalf("%s has %d rows, its manifest says %d", f.Path, len(found), f.Rows)
			}
			out = append(out, found...)
		}
	}
	return out
}

func readFile(tb testing.TB, name string) []sinktest.Row {
	tb.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		tb.Fatal(err)
	}
	if strings.HasSuffix(name, ".jsonl") {
		return readLines(tb, data)
	}
	r, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		tb.Fatal(err)
	}
	defer r.Close()
	for i := range r.NumRowGroups() {
		if n := r.RowGroup(i).NumRows(); n > maxRowGroup {
			tb.Errorf("%s: a row group of %d rows", name, n)
		}
	}
	pr, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{BatchSize: 1024}, memory.DefaultAllocator)
	if err != nil {
		tb.Fatal(err)
	}
	records, err := pr.GetRecordReader(context.Background(), nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	defer records.Release()
	var out []sinktest.Row
	for records.Next() {
		rec := records.RecordBatch()
		for i := range int(rec.NumRows()) {
			row := sinktest.Row{Cells: make(map[string]string)}
			var absent []uint16
			for c, f := range rec.Schema().Fields() {
				switch col := rec.Column(c).(type) {
				case *array.Uint8:
					row.Op = rows.Op(col.Value(i))
				case *array.List:
					if f.Name == rows.ColAbsent && col.IsValid(i) {
						from, to := col.ValueOffsets(i)
						absent = col.ListValues().(*array.Uint16).Uint16Values()[from:to]
					}
				default:
					if strings.HasPrefix(f.Name, "_") {
						continue
					}
					row.Cells[f.Name] = sinktest.Null
					if col.IsValid(i) {
						row.Cells[f.Name] = col.ValueStr(i)
					}
				}
			}
			for _, a := range absent {
				row.Cells[rec.Schema().Field(int(a)).Name] = sinktest.Absent
			}
			out = append(out, row)
		}
	}
	return out
}

func readLines(tb testing.TB, data []byte) []sinktest.Row {
	tb.Helper()
	var out []sinktest.Row
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct {
			Op     string         `json:"op"`
			Row    map[string]any `json:"row"`
			Absent []string       `json:"absent"`
		}
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.UseNumber()
		if err := d.Decode(&line); err != nil {
			tb.Fatal(err)
		}
		row := sinktest.Row{Cells: make(map[string]string)}
		for op := rows.OpRead; op <= rows.OpTruncate; op++ {
			if op.String() == line.Op {
				row.Op = op
			}
		}
		if line.Row == nil { // append: the columns alone
			d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
			d.UseNumber()
			if err := d.Decode(&line.Row); err != nil {
				tb.Fatal(err)
			}
		}
		for name, v := range line.Row {
			row.Cells[name] = sinktest.Null
			if v != nil {
				row.Cells[name] = fmt.Sprint(v)
			}
		}
		for _, name := range line.Absent {
			row.Cells[name] = sinktest.Absent
		}
		out = append(out, row)
	}
	return out
}

// lake is one sink's halves in one attempt.
type lake struct {
	w sink.Writer
	c sink.Committer
}

func open(t *testing.T, path string, token fence.Token) lake {
	t.Helper()
	cfg := sink.Config{
		Identity: source.Identity{Job: "j", Life: "l", Fence: token, Subtask: plan.SubtaskID{Vertex: "lake"}},
		Sink:     specOf(path, spec.Changelog, spec.JSONLines), Resolve: resolve, Logger: slog.New(slog.DiscardHandler),
	}
	w, err := Connector{}.OpenWriter(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Connector{}.OpenCommitter(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return lake{w, c}
}

func (l lake) stage(t *testing.T, e epoch.ID, ids ...int64) []epoch.Staged {
	t.Helper()
	s, err := rows.NewSchema("a/b.c", 1, "", []rows.Column{{Name: "id", Type: rows.Of(rows.KindInt64), KeyPos: 1}})
	if err != nil {
		t.Fatal(err)
	}
	b := rows.NewBuilder(s)
	for _, id := range ids {
		b.Column(0).(*array.Int64Builder).Append(id)
		b.EndRow(rows.Meta{Op: rows.OpInsert})
	}
	batch, err := b.Flush()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.w.Write(t.Context(), *batch); err != nil {
		t.Fatal(err)
	}
	pieces, err := l.w.Stage(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	var staged []epoch.Staged
	for _, p := range pieces {
		staged = append(staged, epoch.Staged{Epoch: e, Subtask: plan.SubtaskID{Vertex: "lake"}, Data: p.Data, Rows: p.Rows})
	}
	return staged
}

func names(t *testing.T, path string) map[string]bool {
	t.Helper()
	all := make(map[string]bool)
	err := filepath.WalkDir(path, func(name string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(path, name)
			all[rel] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func wantNames(t *testing.T, path string, want ...string) {
	t.Helper()
	set := make(map[string]bool)
	for _, n := range want {
		set[n] = true
	}
	if got := names(t, path); !maps.Equal(got, set) {
		t.Errorf("the directory has %v, want %v", got, want)
	}
}

// What a dead attempt left is removed when, and only when, nothing can name it any more.
func TestSweep(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	first := open(t, path, 1)
	if _, err := first.c.Claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	durable := first.stage(t, 2, 1, 2)
	first.stage(t, 3, 3) // staged, and its ack never sent
	ref := epoch.Ref{Epoch: 2, Digest: "two"}

	second := open(t, path, 2)
	if row, err := second.c.Claim(t.Context()); err != nil || row.Fence != 1 || !row.Ref.IsZero() {
		t.Fatalf("Claim = %+v, %v", row, err)
	}
	wantNames(t, path, "_manifest/claims/2.l", "a%2Fb.c/.e2-0-1-1.jsonl.tmp", "a%2Fb.c/.e3-0-1-2.jsonl.tmp")
	if r, err := second.c.Commit(t.Context(), sink.Commit{Ref: ref, Staged: durable}); err != nil || !r.Applied || r.Rows != 2 {
		t.Fatalf("Commit = %+v, %v", r, err)
	}
	// Epoch 3 may still be durable as far as the committer knows.
	wantNames(t, path, "_manifest/claims/2.l", "_manifest/2.json", "a%2Fb.c/e2-0.jsonl", "a%2Fb.c/.e3-0-1-2.jsonl.tmp")
	third := open(t, path, 3)
	if _, err := third.c.Claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := sink.Commit{Ref: epoch.Ref{Epoch: 4, Digest: "four"}, Prev: ref, Staged: third.stage(t, 4, 9)}
	if _, err := third.c.Commit(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	wantNames(t, path, "_manifest/claims/3.l", "_manifest/2.json", "_manifest/4.json", "a%2Fb.c/e2-0.jsonl", "a%2Fb.c/e4-0.jsonl")
}

// A commit that stopped before its manifest left files that nobody trusts; the repeated one goes on from there.
func TestCommitStoppedBeforeItsManifest(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	l := open(t, path, 1)
	if _, err := l.c.Claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	commit := sink.Commit{Ref: epoch.Ref{Epoch: 1, Digest: "one"}, Staged: append(l.stage(t, 1, 1), l.stage(t, 1, 2)...)}
	dir := filepath.Join(path, "a%2Fb.c")
	// The first file was linked, and the second name is taken by a file that some other history left.
	if err := os.Link(filepath.Join(dir, ".e1-0-1-1.jsonl.tmp"), filepath.Join(dir, "e1-0.jsonl")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "e1-0-1.jsonl"), []byte("{}\n{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := read(t, path, "a/b.c"); len(got) != 0 {
		t.Errorf("a reader sees %d rows without a manifest", len(got))
	}
	for i := range 3 {
		if r, err := l.c.Commit(t.Context(), commit); err != nil || r.Applied != (i == 0) {
			t.Fatalf("commit %d: %+v, %v", i, r, err)
		}
	}
	if got := read(t, path, "a/b.c"); len(got) != 2 {
		t.Errorf("a reader sees %d rows, want 2", len(got))
	}
}

// A zombie that looked at the claims before its successor came publishes the same epoch, or finds it published.
func TestZombieBetweenClaimAndLink(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	old := open(t, path, 1)
	if _, err := old.c.Claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	commit := sink.Commit{Ref: epoch.Ref{Epoch: 1, Digest: "one"}, Staged: old.stage(t, 1, 1)}
	zombie := old.c.(*committer)
	m, _, err := zombie.manifest(commit) // it has passed every check
	if err != nil {
		t.Fatal(err)
	}
	successor := open(t, path, 2)
	if _, err := successor.c.Claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r, err := successor.c.Commit(t.Context(), commit); err != nil || !r.Applied {
		t.Fatalf("%+v, %v", r, err)
	}
	if applied, err := zombie.publish(m); applied || err != nil {
		t.Errorf("the zombie's link: %t, %v; want neither", applied, err)
	}
	m.Digest = "another history"
	if _, err := zombie.publish(m); fault.CodeOf(err) != fault.JobLedgerDiverged {
		t.Errorf("another manifest of the epoch: %v, want LEDGER_DIVERGED", err)
	}
	if got := read(t, path, "a/b.c"); len(got) != 1 {
		t.Errorf("a reader sees %d rows, want 1", len(got))
	}
}

func TestLostStagedFile(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	l := open(t, path, 1)
	if _, err := l.c.Claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	commit := sink.Commit{Ref: epoch.Ref{Epoch: 1, Digest: "one"}, Staged: l.stage(t, 1, 1)}
	name := filepath.Join(path, "a%2Fb.c", ".e1-0-1-1.jsonl.tmp")
	if err := os.Truncate(name, 3); err != nil {
		t.Fatal(err)
	}
	if _, err := l.c.Commit(t.Context(), commit); fault.CodeOf(err) != fault.SinkStageLost {
		t.Errorf("a staged file cut short: %v", err)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if _, err := l.c.Commit(t.Context(), commit); fault.CodeOf(err) != fault.SinkStageLost {
		t.Errorf("a staged file gone: %v", err)
	}
	wantNames(t, path, "_manifest/claims/1.l")
}

func TestUnusablePath(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Connector{}.OpenCommitter(t.Context(), sink.Config{Sink: specOf(file, spec.Changelog, spec.Parquet), Resolve: resolve})
	if fault.CodeOf(err) != fault.SinkPathUnusable {
		t.Errorf("a path that is a file: %v", err)
	}
}
