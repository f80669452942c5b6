package iceberg

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/core"
)

// scene is a sink whose epochs a test writes by hand.
type scene struct {
	*reader
	spec  spec.Sink
	w     sink.Writer
	c     *committer
	fence fence.Token
	seq   uint64
	last  epoch.Ref
	store *store
	warns *warnings
	quiet bool // warnings are expected
}

// warnings are what maintenance could not do; it must say nothing.
type warnings struct {
	slog.Handler
	mu  sync.Mutex
	all []string
}

func (w *warnings) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, text)
	return nil
}

// store keeps pieces on a bus that never fails.
type store struct{ all map[string][]byte }

func (s *store) Put(_ context.Context, data []byte) (epoch.Object, error) {
	o := epoch.Object{Subject: strconv.Itoa(len(s.all)), Size: int64(len(data))}
	s.all[o.Subject] = data
	return o, nil
}

func (s *store) Get(_ context.Context, o epoch.Object) ([]byte, error) { return s.all[o.Subject], nil }

func newScene(t testing.TB, s spec.Sink) *scene {
	t.Helper()
	sc := &scene{spec: s, store: &store{make(map[string][]byte)}, warns: &warnings{}}
	sc.reader = newReader(t, s)
	sc.start(t)
	return sc
}

// start opens the next attempt; the one before it is left as a killed process leaves it.
func (s *scene) start(t testing.TB) {
	t.Helper()
	s.fence++
	cfg := sink.Config{
		Identity: source.Identity{Job: "suite", Life: "life", Fence: s.fence, Subtask: plan.SubtaskID{Vertex: "lake"}},
		Sink:     s.spec, Resolve: resolve, Writers: 1, Store: s.store, Logger: slog.New(s.warns),
	}
	w, err := Connector{}.OpenWriter(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Connector{}.OpenCommitter(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = w.Close(), c.Close() })
	if _, err := c.Claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.w, s.c = w, c.(*committer)
}

// image is one row of a batch.
type image struct {
	op   rows.Op
	id   int64
	name string
}

func (s *scene) batch(t *testing.T, schema *rows.Schema, images ...image) rows.Batch {
	t.Helper()
	b := rows.NewBuilder(schema)
	for _, x := range images {
		s.seq++
		b.Column(0).(*array.Int64Builder).Append(x.id)
		for i := 1; i < schema.NumColumns(); i++ {
			switch col := b.Column(i).(type) {
			case *array.StringBuilder:
				col.Append(x.name)
			case *array.Int64Builder:
				col.Append(x.id * 10)
			default:
				col.AppendNull()
			}
		}
		b.EndRow(rows.Meta{Op: x.op, Seq: s.seq, Ts: int64(s.seq) * 1_000_000, Txn: s.seq})
	}
	out, err := b.Flush()
	if err != nil {
		t.Fatal(err)
	}
	return *out
}

func schemaOf(t *testing.T, version uint32, columns ...rows.Column) *rows.Schema {
	t.Helper()
	all := append([]rows.Column{{Name: "id", Type: rows.Of(rows.KindInt64), KeyPos: 1, ID: 1}}, columns...)
	s, err := rows.NewSchema("shop.goods", version, "", all)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func text(name string, id int) rows.Column {
	return rows.Column{Name: name, Type: rows.Of(rows.KindText), Nullable: true, ID: id}
}

// stage writes batches and stages them as an epoch, which is the next.
func (s *scene) stage(t *testing.T, batches ...rows.Batch) sink.Commit {
	t.Helper()
	e := s.last.Epoch + 1
	s.w.(sink.Numbered).Number(e)
	for _, b := range batches {
		if err := s.w.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	return s.staged(t, e)
}

// staged is what was written, as an epoch.
func (s *scene) staged(t testing.TB, e epoch.ID) sink.Commit {
	t.Helper()
	pieces, err := s.w.Stage(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	c := sink.Commit{Ref: epoch.Ref{Epoch: e, Digest: "d" + e.String()}, Prev: s.last}
	for _, p := range pieces {
		c.Staged = append(c.Staged, epoch.Staged{Epoch: e, Subtask: plan.SubtaskID{Vertex: "lake"}, Data: p.Data, Objects: p.Objects, Rows: p.Rows})
	}
	return c
}

func (s *scene) commit(t testing.TB, c sink.Commit) {
	t.Helper()
	if r, err := s.c.Commit(t.Context(), c); err != nil || !r.Applied {
		t.Fatalf("commit of epoch %s: %+v, %v", c.Ref.Epoch, r, err)
	}
	s.last = c.Ref
	if len(s.warns.all) > 0 && !s.quiet {
		t.Fatalf("after epoch %s: %q", c.Ref.Epoch, s.warns.all)
	}
}

func (s *scene) epoch(t *testing.T, batches ...rows.Batch) {
	t.Helper()
	s.commit(t, s.stage(t, batches...))
}

// retry is an epoch on a target that fails at times: an attempt that fails to stage is followed by another, and a commit is repeated.
func (s *scene) retry(t *testing.T, batches ...rows.Batch) {
	t.Helper()
	for {
		s.w.(sink.Numbered).Number(s.last.Epoch + 1)
		for _, b := range batches {
			if err := s.w.Write(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		pieces, err := s.w.Stage(t.Context(), s.last.Epoch+1)
		if err == nil {
			s.repeat(t, pieces)
			return
		}
		if !errors.Is(err, fault.Transient) {
			t.Fatal(err)
		}
		s.start(t)
	}
}

func (s *scene) repeat(t *testing.T, pieces []sink.Piece) {
	t.Helper()
	e := s.last.Epoch + 1
	c := sink.Commit{Ref: epoch.Ref{Epoch: e, Digest: "d" + e.String()}, Prev: s.last}
	for _, p := range pieces {
		c.Staged = append(c.Staged, epoch.Staged{Epoch: e, Subtask: plan.SubtaskID{Vertex: "lake"}, Data: p.Data, Objects: p.Objects, Rows: p.Rows})
	}
	for {
		_, err := s.c.Commit(t.Context(), c)
		if err == nil {
			s.last = c.Ref
			return
		}
		if !errors.Is(err, fault.Transient) {
			t.Fatal(err)
		}
	}
}

// state is a table as the catalog has it.
func (s *scene) state(t *testing.T, r role) *state {
	t.Helper()
	st, err := s.tables.load(t.Context(), r, "shop.goods", nil)
	if err != nil || st.meta == nil {
		t.Fatalf("load %s: %v", r, err)
	}
	return st
}

// alter changes a table's properties behind the committer's back, as another engine would.
func (s *scene) alter(t *testing.T, r role, props iceberg.Properties) {
	t.Helper()
	s.foreign(t, r, func(tx *table.Transaction) error { return tx.SetProperties(props) })
}

// foreign is a commit of another engine.
func (s *scene) foreign(t *testing.T, r role, does func(*table.Transaction) error) {
	t.Helper()
	st := s.state(t, r)
	tx := table.New(table.Identifier{st.namespace, st.name}, st.meta, st.at, s.p.files, nil).NewTransaction()
	if err := does(tx); err != nil {
		t.Fatal(err)
	}
	b, err := s.c.write(t.Context(), tx, st)
	if err != nil {
		t.Fatal(err)
	}
	ch := change{moves: []move{{st, &b.state}}, allow: allowAll}
	if _, err := s.tables.catalog.apply(t.Context(), ch); err != nil {
		t.Fatal(err)
	}
}

func allowAll(core.Row) error { return nil }

// deadOf are the deletes that go when tasks are rewritten.
func deadOf(t *testing.T, r *rewriting, tasks ...table.FileScanTask) []iceberg.DataFile {
	t.Helper()
	dead, err := r.dead(t.Context(), []table.CompactionTaskGroup{{Tasks: tasks}})
	if err != nil {
		t.Fatal(err)
	}
	return dead
}
