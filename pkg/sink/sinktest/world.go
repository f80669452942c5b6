package sinktest

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/zeebo/xxh3"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
)

// life is the job of every world; a target is used by one world.
const life = "sinktestlife"

// world is a mesh around one sink.
type world struct {
	t       *testing.T
	f       Fixture
	store   memory
	letters letters
	schemas schemas
	feed    feed

	writers int
	fence   fence.Token
	attempt attempt
	// left are attempts that crashed; they are closed when the test ends.
	left []attempt

	next     epoch.ID
	last     epoch.Ref      // the newest manifest that staged something
	staged   []epoch.Staged // named by the next ack
	durable  []sink.Commit  // made durable and not known to be committed
	sent     *model         // with everything written
	cut      *model         // with everything durable
	visible  *model         // with everything committed
	visibles []*model       // one for each of durable
}

// attempt is one deployment.
type attempt struct {
	writers   []sink.Writer
	split     *rows.Splitter
	committer sink.Committer
}

func newWorld(t *testing.T, f Fixture, writers int) *world {
	t.Helper()
	if f.Logger == nil {
		f.Logger = slog.New(slog.DiscardHandler)
	}
	w := &world{
		t: t, f: f, schemas: newSchemas(t), writers: writers, next: 1,
		sent: newModel(f.Spec.Mode), cut: newModel(f.Spec.Mode), visible: newModel(f.Spec.Mode),
	}
	if f.Images != nil {
		for _, m := range []*model{w.sent, w.cut, w.visible} {
			m.images = newModel(spec.Changelog)
		}
	}
	t.Cleanup(func() {
		for _, a := range append(w.left, w.attempt) {
			a.close(t)
		}
	})
	return w
}

func (a attempt) close(t *testing.T) {
	t.Helper()
	for _, x := range a.writers {
		if err := x.Close(); err != nil {
			t.Errorf("close writer: %v", err)
		}
	}
	if a.committer != nil {
		if err := a.committer.Close(); err != nil {
			t.Errorf("close committer: %v", err)
		}
	}
}

func (w *world) config(vertex plan.VertexID, index int) sink.Config {
	cfg := sink.Config{
		Identity: source.Identity{Job: "suite", Life: life, Fence: w.fence, Subtask: plan.SubtaskID{Vertex: vertex, Index: index}},
		Sink:     w.f.Spec, Resolve: w.f.Resolve, Writers: w.writers, Store: &w.store, Logger: w.f.Logger,
	}
	if w.f.Spec.DLQ && vertex == plan.CommitterOf(w.f.Spec.Name) {
		cfg.Letters = heldLetters{&w.letters, w.fence}
	}
	return cfg
}

// crash abandons the attempt as it is. What was not durable has to be written again.
func (w *world) crash() {
	w.left = append(w.left, w.attempt)
	w.attempt = attempt{}
	w.staged = nil
	w.sent = w.cut.clone()
}

// start opens the next attempt, without its claim.
func (w *world) start() {
	w.t.Helper()
	w.fence++
	w.attempt = attempt{split: rows.NewSplitter(w.writers)}
	for i := range w.writers {
		x, err := w.f.Connector.OpenWriter(w.t.Context(), w.config(plan.VertexID(w.f.Spec.Name), i))
		if err != nil {
			w.t.Fatalf("open writer: %v", err)
		}
		w.attempt.writers = append(w.attempt.writers, x)
	}
	c, err := w.f.Connector.OpenCommitter(w.t.Context(), w.config(plan.CommitterOf(w.f.Spec.Name), 0))
	if err != nil {
		w.t.Fatalf("open committer: %v", err)
	}
	w.attempt.committer = c
}

// claim takes the ledger and checks that it stands where the chain allows; then it commits again what is missing.
func (w *world) claim() {
	w.t.Helper()
	row, err := w.attempt.committer.Claim(w.t.Context())
	if err != nil {
		w.t.Fatalf("claim with fence %s: %v", w.fence, err)
	}
	w.letters.hold(w.fence)
	allowed := []epoch.Ref{w.last}
	for _, c := range w.durable {
		allowed = append(allowed, c.Prev, c.Ref)
	}
	if row.Life != "" && (row.Life != life || !slices.Contains(allowed, row.Ref)) {
		w.t.Fatalf("claim found %+v, the chain allows %v", row, allowed)
	}
	w.commit()
}

// run starts an attempt that is ready for rows.
func (w *world) run() {
	w.t.Helper()
	w.start()
	w.claim()
}

// write sends batches through the hash edge.
func (w *world) write(batches ...*rows.Batch) {
	w.t.Helper()
	for _, x := range w.attempt.writers {
		if n, ok := x.(sink.Numbered); ok {
			n.Number(w.next)
		}
	}
	for _, b := range batches {
		for i, part := range w.attempt.split.Split(b) {
			if part == nil {
				continue
			}
			if err := w.attempt.writers[i].Write(w.t.Context(), *part); err != nil {
				w.t.Fatalf("write: %v", err)
			}
		}
		w.sent.add(b)
	}
}

// stage is a barrier: every writer makes safe what it has.
func (w *world) stage() {
	w.t.Helper()
	for i, x := range w.attempt.writers {
		pieces, err := x.Stage(w.t.Context(), w.next)
		if err != nil {
			w.t.Fatalf("stage epoch %s: %v", w.next, err)
		}
		for _, p := range pieces {
			w.staged = append(w.staged, epoch.Staged{
				Epoch: w.next, Subtask: plan.SubtaskID{Vertex: plan.VertexID(w.f.Spec.Name), Index: i},
				Data: p.Data, Objects: p.Objects, Rows: p.Rows,
			})
		}
	}
	w.check("after staging")
}

// skip gives the epoch up: its pieces are named by the next ack.
func (w *world) skip() { w.next++ }

// seal makes the epoch durable. An epoch that staged nothing leaves no trace at the sink.
func (w *world) seal() {
	ref := epoch.Ref{Epoch: w.next, Digest: fmt.Sprintf("digest-%d-%d", w.next, w.fence)}
	w.next++
	w.cut = w.sent.clone()
	if len(w.staged) == 0 {
		return
	}
	// Acks carry what each writer has staged, so a manifest has it writer by writer.
	staged := slices.Clone(w.staged)
	slices.SortStableFunc(staged, func(a, b epoch.Staged) int { return a.Subtask.Compare(b.Subtask) })
	w.durable = append(w.durable, sink.Commit{
		Ref: ref, Prev: w.last, Staged: staged,
		Positions: map[string]position.Position{"db-0": position.New(position.Generator, map[string]string{"index": ref.Epoch.String()})},
	})
	w.visibles = append(w.visibles, w.cut.clone())
	w.last, w.staged = ref, nil
}

// commit applies what is durable, in order, each epoch twice: the reply may have been lost.
func (w *world) commit() {
	w.t.Helper()
	for i, c := range w.durable {
		first, err := w.attempt.committer.Commit(w.t.Context(), c)
		if err != nil {
			w.t.Fatalf("commit epoch %s: %v", c.Ref.Epoch, err)
		}
		if first.Applied && first.Rows+first.Dead != rowsOf(c) && w.f.Spec.Mode != "upsert" {
			w.t.Errorf("commit of epoch %s applied %d rows and left out %d, %d were staged", c.Ref.Epoch, first.Rows, first.Dead, rowsOf(c))
		}
		if n := w.letters.of(c.Ref.Epoch); first.Applied && first.Dead != uint64(n) {
			w.t.Errorf("commit of epoch %s left out %d rows, %d have letters", c.Ref.Epoch, first.Dead, n)
		}
		w.visible = w.visibles[i]
		again, err := w.attempt.committer.Commit(w.t.Context(), c)
		if err != nil || again.Applied {
			w.t.Fatalf("repeated commit of epoch %s: %+v, %v; want nothing done", c.Ref.Epoch, again, err)
		}
	}
	w.durable, w.visibles = nil, nil
	w.check("after commit")
}

func rowsOf(c sink.Commit) (n uint64) {
	for _, s := range c.Staged {
		n += s.Rows
	}
	return n
}

// epoch writes batches as one committed epoch.
func (w *world) epoch(batches ...*rows.Batch) {
	w.t.Helper()
	w.write(batches...)
	w.stage()
	w.seal()
	w.commit()
}

// check compares what a reader sees with what is committed.
func (w *world) check(when string) {
	w.t.Helper()
	if w.f.Read == nil {
		return
	}
	for _, id := range []rows.TableID{w.schemas.orders.Table(), w.schemas.items.Table(), w.schemas.names.Table()} {
		if d := w.visible.diff(id, w.f.Read(w.t, id)); d != "" {
			w.t.Fatalf("%s, epoch %s, fence %s: the target differs\n%s", when, w.next, w.fence, d)
		}
		if w.f.Images == nil {
			continue
		}
		if d := w.visible.images.diff(id, w.f.Images(w.t, id)); d != "" {
			w.t.Fatalf("%s, epoch %s, fence %s: the images at the target differ\n%s", when, w.next, w.fence, d)
		}
	}
}

// memory is a store of pieces.
type memory struct {
	mu     sync.Mutex
	pieces map[string][]byte
}

// Put implements sink.Store.
func (m *memory) Put(_ context.Context, data []byte) (epoch.Object, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pieces == nil {
		m.pieces = make(map[string][]byte)
	}
	o := epoch.Object{Subject: fmt.Sprintf("piece-%d", len(m.pieces)), Size: int64(len(data)), Digest: fmt.Sprintf("%016x", xxh3.Hash(data))}
	m.pieces[o.Subject] = slices.Clone(data)
	return o, nil
}

// Get implements sink.Store.
func (m *memory) Get(_ context.Context, o epoch.Object) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.pieces[o.Subject]
	if !ok || fmt.Sprintf("%016x", xxh3.Hash(data)) != o.Digest {
		return nil, fmt.Errorf("object %s is not there", o.Subject)
	}
	return data, nil
}
