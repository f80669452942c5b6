package task_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/envelope"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/source/generator"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/pkg/task"
)

// leader plays the coordinator for one job, in memory: it moves the head record as a script tells it and lets the
// subtasks of the attempt obey. Everything on the bus is real.
type leader struct {
	t    testing.TB
	conn *bus.Conn
	spec *spec.Job
	part plan.Partitioned
	sink sink.Connector
	src  source.Connector
	// wire and facts stand between the subtasks and the bus.
	wire  task.Bus
	facts task.Facts
	// metrics and tracer may be nil; trace is the leader's span of epochs.
	metrics *task.Metrics
	tracer  trace.Tracer
	trace   string

	mu        sync.Mutex
	head      job.Head
	manifests map[epoch.Ref]*epoch.Manifest
	order     []epoch.Link

	run *attempt
}

// attempt is the running subtasks of one fence.
type attempt struct {
	d      *plan.Deployment
	tasks  []*task.Subtask
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	failed chan error
}

func newLeader(t testing.TB, conn *bus.Conn, text string, snk sink.Connector) *leader {
	t.Helper()
	j, err := spec.Parse([]byte(text), "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m, err := plan.FromSpec(j)
	if err != nil {
		t.Fatal(err)
	}
	return &leader{
		t: t, conn: conn, spec: j, part: plan.NewPartitioned(m), sink: snk, src: generator.Connector{},
		wire: task.Conn{Conn: conn}, facts: conn,
		head:      job.Head{Version: 1, Job: j.Name, Life: "l1", Phase: job.Created, NextEpoch: 1, Term: 1},
		manifests: make(map[epoch.Ref]*epoch.Manifest),
	}
}

// Head and Manifest make the leader the records of its subtasks.
func (l *leader) Head(context.Context, string) (*job.Head, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.head
	return &h, nil
}

func (l *leader) Manifest(_ context.Context, _ string, ref epoch.Ref) (*epoch.Manifest, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m, ok := l.manifests[ref]
	if !ok {
		return nil, fmt.Errorf("no manifest %+v", ref)
	}
	return m, nil
}

// change moves the head and tells the subtasks.
func (l *leader) change(f func(h *job.Head)) {
	l.mu.Lock()
	f(&l.head)
	h := l.head
	l.mu.Unlock()
	if l.run == nil || l.run.d.Fence != h.Fence {
		return
	}
	o := task.Orders{Head: h, Emit: h.Phase.Active(), Drain: h.Phase == job.Draining, Committed: h.Committed}
	if h.Phase.Active() {
		o.Durable = h.Durable
	}
	if h.Durable != nil {
		o.Covered = h.Durable.Epoch
	}
	if h.InFlight != nil {
		o.Barrier, o.Kind = h.InFlight.Epoch, h.InFlight.Kind
	}
	for _, s := range l.run.tasks {
		s.Obey(o)
	}
}

// start begins an attempt and waits until all are ready.
func (l *leader) start(ctx context.Context) {
	l.t.Helper()
	l.change(func(h *job.Head) {
		h.Fence++
		h.Phase, h.InFlight = job.Starting, nil
	})
	h, _ := l.Head(ctx, "")
	w, err := plan.WindowFor(&l.part)
	if err != nil {
		l.t.Fatal(err)
	}
	d := &plan.Deployment{Partitioned: l.part, Life: h.Life, Fence: h.Fence, Window: w}
	if err := l.conn.DeleteDataBelow(ctx, d.Job, d.Fence); err != nil {
		l.t.Fatal(err)
	}
	if err := l.conn.CreateData(ctx, bus.DataConfig{Job: d.Job, Fence: d.Fence, MaxMsgsPerSubject: int64(w.Messages) + 8}); err != nil {
		l.t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	if testing.Verbose() {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	a := &attempt{d: d, cancel: cancel, failed: make(chan error, 16)}
	for _, id := range l.part.Subtasks() {
		board := task.NewBoard(l.facts, d.Job, d.Fence, id, log)
		s, err := task.New(task.Config{
			Subtask: id, Plan: d, Spec: l.spec, Incarnation: "i", Restore: h.Durable, Source: l.src, Sink: l.sink,
			Bus: l.wire, States: task.Conn{Conn: l.conn}, Records: l, Board: board,
			Resolve: func(ref string) (string, error) { return ref, nil }, Reread: func() {}, Logger: log,
			Metrics: l.metrics, Tracer: l.tracer,
		})
		if err != nil {
			l.t.Fatal(err)
		}
		a.tasks = append(a.tasks, s)
		a.wg.Go(func() { board.Run(ctx) })
		a.wg.Go(func() {
			if err := s.Run(ctx); !errors.Is(err, fence.ErrFenced) {
				a.failed <- err
			}
		})
	}
	l.run = a
	l.await(ctx, envelope.Ready, len(a.tasks), 0)
}

// stop ends the attempt as a node does when its fence is gone.
func (l *leader) stop() {
	l.run.cancel(fence.ErrFenced)
	l.run.wg.Wait()
}

// await reads facts of the attempt until n of a kind and epoch are there.
func (l *leader) await(ctx context.Context, kind envelope.Kind, n int, e epoch.ID) map[plan.SubtaskID]json.RawMessage {
	l.t.Helper()
	found, err := l.gather(ctx, kind, n, e)
	if err != nil {
		l.t.Fatalf("%d of %d %s facts of epoch %d: %v", len(found), n, kind, e, err)
	}
	return found
}

// errSlow says that an epoch did not get its facts in time.
var errSlow = errors.New("not all facts in time")

// epochTimeout is the script's deadline of an epoch.
const epochTimeout = 40 * time.Second

// gather is await without the end of the test.
func (l *leader) gather(ctx context.Context, kind envelope.Kind, n int, e epoch.ID) (map[plan.SubtaskID]json.RawMessage, error) {
	late := time.After(epochTimeout)
	for {
		found := make(map[plan.SubtaskID]json.RawMessage)
		entries, err := l.conn.Facts(ctx, l.run.d.Job, l.run.d.Fence)
		if err != nil {
			return found, err
		}
		for _, en := range entries {
			_, _, k, id, err := bus.ParseAckSubject(en.Key)
			if err != nil {
				return found, err
			}
			env, err := envelope.Parse(en.Header, en.Value)
			if err != nil {
				return found, err
			}
			if envelope.Kind(k) == kind && env.Epoch >= e {
				found[id] = env.Payload
			}
		}
		if len(found) >= n {
			return found, nil
		}
		select {
		case err := <-l.run.failed:
			return found, err
		case <-late:
			return found, errSlow
		case <-ctx.Done():
			return found, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// trigger puts an epoch in flight and returns its id.
func (l *leader) trigger() epoch.ID {
	var n epoch.ID
	l.change(func(h *job.Head) {
		n = h.NextEpoch
		h.NextEpoch++
		h.InFlight = &job.InFlight{Epoch: n, Kind: epoch.Periodic, Trace: l.trace}
	})
	return n
}

// durable gathers the acks of an epoch, builds its manifest and makes it durable.
func (l *leader) durable(ctx context.Context, n epoch.ID) *epoch.Manifest {
	l.t.Helper()
	acks := make(map[plan.SubtaskID]epoch.Ack)
	for id, body := range l.await(ctx, envelope.Ack, len(l.part.Ackers()), n) {
		var a epoch.Ack
		if err := json.Unmarshal(body, &a); err != nil {
			l.t.Fatal(err)
		}
		acks[id] = a
	}
	var prev *epoch.Manifest
	var prevRef epoch.Ref
	if k := len(l.order); k > 0 {
		prev, prevRef = l.order[k-1].Manifest, l.order[k-1].Ref
	}
	m, err := epoch.Build(l.run.d, epoch.Cut{Epoch: n, Kind: epoch.Periodic, Term: 1}, prev, prevRef, acks)
	if err != nil {
		l.t.Fatal(err)
	}
	b, err := m.Bytes()
	if err != nil {
		l.t.Fatal(err)
	}
	ref := epoch.Ref{Epoch: n, Digest: epoch.Digest(b)}
	l.mu.Lock()
	l.manifests[ref] = m
	l.order = append(l.order, epoch.Link{Ref: ref, Manifest: m})
	l.mu.Unlock()
	l.change(func(h *job.Head) {
		h.InFlight = nil
		h.Durable = &job.Durable{Ref: ref, Fence: h.Fence}
	})
	return m
}

// committed waits until every committer has applied an epoch.
func (l *leader) committed(ctx context.Context, n epoch.ID) {
	l.t.Helper()
	l.await(ctx, envelope.Committed, len(l.part.Subtasks())-len(l.part.Ackers()), n)
	l.change(func(h *job.Head) { h.Committed = n })
}

// try takes one epoch; false says that the attempt has to end: a subtask failed, or the epoch is late.
func (l *leader) try(ctx context.Context) bool {
	l.t.Helper()
	n := l.trigger()
	if _, err := l.gather(ctx, envelope.Ack, len(l.part.Ackers()), n); err != nil {
		return false
	}
	l.durable(ctx, n)
	if _, err := l.gather(ctx, envelope.Committed, 1, n); err != nil {
		return false
	}
	l.change(func(h *job.Head) { h.Committed = n })
	return true
}

// epoch takes one whole epoch.
func (l *leader) epoch(ctx context.Context) *epoch.Manifest {
	l.t.Helper()
	n := l.trigger()
	m := l.durable(ctx, n)
	l.committed(ctx, n)
	return m
}
