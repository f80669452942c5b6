package exec

import (
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/registry"
)

func TestMain(m *testing.M) { meshtest.Main(m) }

type fixture struct {
	t    *testing.T
	conn *bus.Conn
	reg  *registry.Registry
	x    *Executor
}

func open(t *testing.T) *fixture {
	t.Helper()
	srv := meshtest.StartServer(t, meshtest.ServerOptions{})
	conn, err := bus.Connect(t.Context(), bus.Options{Name: "test", InProcess: srv})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	if err := conn.EnsureBase(t.Context(), bus.BaseConfig{LeaseTTL: time.Second, MemoryState: true}); err != nil {
		t.Fatal(err)
	}
	reg, err := registry.Open(t.Context(), conn, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{t: t, conn: conn, reg: reg, x: New(conn, reg, slog.New(slog.DiscardHandler), 1)}
}

func (f *fixture) do(e job.Effect) job.Event {
	f.t.Helper()
	return f.x.Do(f.t.Context(), "shop", e)(job.Moment{})
}

// object stores a state object and returns its reference.
func (f *fixture) object(fence fence.Token, e epoch.ID, n int) epoch.Object {
	f.t.Helper()
	o, err := f.conn.PutState(f.t.Context(), bus.StateSubject("l", fence, e, plan.SubtaskID{Vertex: "out"}, n), []byte("x"))
	if err != nil {
		f.t.Fatal(err)
	}
	return epoch.Object{Subject: o.Subject, Size: o.Size, Digest: o.Digest}
}

// ⚑ Garbage is only what can never be named again: unnamed by all kept manifests, and of a dead attempt or of an epoch that
// the attempt has made durable. Staged objects go when their epoch is committed.
func TestCollectRemovesOnlyWhatNobodyCanName(t *testing.T) {
	f := open(t)
	ctx := t.Context()
	var staged, states []epoch.Object
	var ref epoch.Ref
	var d job.Durable
	// Epochs 1 to 14 of fence 2, each with a state object and a staged one.
	for e := epoch.ID(1); e <= 14; e++ {
		state, piece := f.object(2, e, 0), f.object(2, e, 1)
		states, staged = append(states, state), append(staged, piece)
		m := &epoch.Manifest{
			Version: 1, Job: "shop", Life: "l", Epoch: e, Fence: 2, Term: 1, Prev: ref,
			Subtasks: map[plan.SubtaskID]epoch.SubtaskState{{Vertex: "out"}: {State: epoch.State{Objects: []epoch.Object{state}}}},
			Sinks: map[string]epoch.SinkState{"out": {Staged: []epoch.Staged{
				{Epoch: e, Subtask: plan.SubtaskID{Vertex: "out"}, Data: json.RawMessage(`{}`), Objects: []epoch.Object{piece}},
			}}},
		}
		b, err := m.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		ref = epoch.Ref{Epoch: e, Digest: epoch.Digest(b)}
		if d, err = f.reg.PutManifest(ctx, m, b, ref); err != nil {
			t.Fatal(err)
		}
	}
	kept := map[string]epoch.Object{
		"open epoch":            f.object(2, 15, 0),
		"a newer attempt":       f.object(3, 9, 0),
		"state of the newest":   states[13],
		"state of the tenth":    states[4],
		"staged, not committed": staged[13],
	}
	gone := map[string]epoch.Object{
		"a dead attempt":           f.object(1, 99, 0),
		"unnamed, epoch durable":   f.object(2, 14, 7),
		"staged and committed":     staged[12],
		"state of a collected one": states[3],
	}
	h := job.Head{Version: 1, Job: "shop", Life: "l", Fence: 2, Durable: &d, Committed: 13, NextEpoch: 16}
	if _, err := f.reg.WriteHead(ctx, &h, 0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if e := f.do(job.Collect{Life: "l", Fence: 2, Durable: d, Committed: 13}); e != (job.Swept{Op: job.OpCollect}) {
			t.Fatalf("collect: %+v", e)
		}
	}
	left, err := f.conn.ListState(ctx, bus.StateLifePrefix("l"))
	if err != nil {
		t.Fatal(err)
	}
	for what, o := range kept {
		if !slices.Contains(left, o.Subject) {
			t.Errorf("%s was collected", what)
		}
	}
	for what, o := range gone {
		if slices.Contains(left, o.Subject) {
			t.Errorf("%s was not collected", what)
		}
	}
	ids, err := f.reg.Epochs(ctx, "shop")
	if err != nil || len(ids) != keepManifests || ids[0] != 5 {
		t.Errorf("manifests %v, %v; want the newest ten", ids, err)
	}
	if links, err := f.reg.History(ctx, "shop", d.Ref); err != nil || len(links) != keepManifests {
		t.Errorf("history: %d, %v", len(links), err)
	}
}

// A second write over the same revision is told as such, never as success; the record is then read back.
func TestWriteHeadTellsConflicts(t *testing.T) {
	f := open(t)
	h := job.Head{Version: 1, Job: "shop", Life: "l"}
	if e, ok := f.do(job.WriteHead{Head: h}).(job.HeadWritten); !ok || e.Revision == 0 {
		t.Fatalf("first write: %+v", e)
	}
	if e, ok := f.do(job.WriteHead{Head: h}).(job.HeadUnsure); !ok {
		t.Errorf("second write: %+v", e)
	}
	if e, ok := f.do(job.ReadHead{}).(job.HeadRead); !ok || e.View.Head == nil {
		t.Errorf("read back: %+v", e)
	}
}

func TestMissingRecordsHaveAFault(t *testing.T) {
	f := open(t)
	for effect, want := range map[job.Effect]fault.Code{
		job.ReadSpec{Digest: "none"}: fault.RegCorrupt,
		job.FetchChain{Durable: job.Durable{Ref: epoch.Ref{Epoch: 4, Digest: "d"}}}: fault.JobManifestLost,
	} {
		e, ok := f.do(effect).(job.EffectFailed)
		if !ok || e.Fault.Code != want || e.Class != fault.Permanent {
			t.Errorf("%T: %+v, want %s", effect, e, want)
		}
	}
}

// Streams of older attempts go, those of other jobs and of the attempt itself stay.
func TestResetStreams(t *testing.T) {
	f := open(t)
	ctx := t.Context()
	for _, c := range []bus.DataConfig{{Job: "shop", Fence: 1}, {Job: "shop", Fence: 2}, {Job: "shop2", Fence: 1}} {
		if err := f.conn.CreateData(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		e := f.do(job.ResetStreams{Fence: 3, Window: plan.Window{Messages: 64}})
		if e != (job.StreamsReset{Fence: 3}) {
			t.Fatalf("reset: %+v", e)
		}
	}
	mine, err := f.conn.DataFences(ctx, "shop")
	if err != nil || !slices.Equal(mine, []fence.Token{3}) {
		t.Errorf("streams of shop: %v, %v", mine, err)
	}
	if e := f.do(job.DropStreams{Fence: 3}); e != (job.Swept{Op: job.OpDropStreams, Fence: 3}) {
		t.Errorf("drop: %+v", e)
	}
	if _, err := f.conn.DataState(ctx, "shop", 3); !errors.Is(err, bus.ErrStreamGone) {
		t.Errorf("stream of fence 3: %v", err)
	}
	if other, err := f.conn.DataFences(ctx, "shop2"); err != nil || len(other) != 1 {
		t.Errorf("streams of shop2: %v, %v", other, err)
	}
}

// A server of a cluster may answer with a head that is older than the one whose leader collects. What came since then is
// not garbage.
func TestCollectFromALateServerRemovesNothing(t *testing.T) {
	f := open(t)
	var prev epoch.Ref
	var durable []job.Durable
	for e := epoch.ID(1); e <= 3; e++ {
		m := &epoch.Manifest{Version: epoch.ManifestVersion, Job: "shop", Life: "l", Epoch: e, Fence: 1, Prev: prev}
		b, err := m.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		prev = epoch.Ref{Epoch: e, Digest: epoch.Digest(b)}
		d, err := f.reg.PutManifest(t.Context(), m, b, prev)
		if err != nil {
			t.Fatal(err)
		}
		durable = append(durable, d)
	}
	late := job.Head{Version: 1, Job: "shop", Life: "l", Fence: 1, Durable: &durable[0], Committed: 1, NextEpoch: 2}
	if _, err := f.reg.WriteHead(t.Context(), &late, 0); err != nil {
		t.Fatal(err)
	}
	e, ok := f.do(job.Collect{Life: "l", Fence: 1, Durable: durable[2], Committed: 3}).(job.EffectFailed)
	if !ok || e.Class != fault.Transient {
		t.Errorf("collect: %+v", e)
	}
	if ids, err := f.reg.Epochs(t.Context(), "shop"); err != nil || len(ids) != 3 {
		t.Errorf("manifests left %v: %v", ids, err)
	}
}

// A savepoint's manifest and the states it names stay for as long as the head names it, however old it is.
func TestCollectKeepsSavepoints(t *testing.T) {
	f := open(t)
	state := bus.StateSubject("l", 1, 2, plan.SubtaskID{Vertex: "db"}, 0)
	if _, err := f.conn.PutState(t.Context(), state, []byte("state")); err != nil {
		t.Fatal(err)
	}
	var prev epoch.Ref
	var durable []job.Durable
	for e := epoch.ID(1); e <= 15; e++ {
		m := &epoch.Manifest{Version: epoch.ManifestVersion, Job: "shop", Life: "l", Epoch: e, Fence: 1, Prev: prev}
		if e == 2 {
			m.Subtasks = map[plan.SubtaskID]epoch.SubtaskState{{Vertex: "db"}: {State: epoch.State{Objects: []epoch.Object{{Subject: state}}}}}
		}
		b, err := m.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		prev = epoch.Ref{Epoch: e, Digest: epoch.Digest(b)}
		d, err := f.reg.PutManifest(t.Context(), m, b, prev)
		if err != nil {
			t.Fatal(err)
		}
		durable = append(durable, d)
	}
	head := job.Head{
		Version: 1, Job: "shop", Life: "l", Fence: 1, Durable: &durable[14], Committed: 15, NextEpoch: 16,
		Savepoints: []job.Savepoint{{Name: "a", Durable: durable[1]}},
	}
	revision, err := f.reg.WriteHead(t.Context(), &head, 0)
	if err != nil {
		t.Fatal(err)
	}
	collect := job.Collect{Life: "l", Fence: 1, Durable: durable[14], Committed: 15}
	if e, failed := f.do(collect).(job.EffectFailed); failed {
		t.Error(e.Fault)
	}
	newest := []epoch.ID{6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	if ids, err := f.reg.Epochs(t.Context(), "shop"); err != nil || !slices.Equal(ids, append([]epoch.ID{2}, newest...)) {
		t.Errorf("manifests left %v: %v", ids, err)
	}
	if left, err := f.conn.ListState(t.Context(), bus.StateLifePrefix("l")); err != nil || len(left) != 1 {
		t.Errorf("state left %v: %v", left, err)
	}
	head.Savepoints = nil
	if _, err := f.reg.WriteHead(t.Context(), &head, revision); err != nil {
		t.Fatal(err)
	}
	if e, failed := f.do(collect).(job.EffectFailed); failed {
		t.Error(e.Fault)
	}
	if ids, err := f.reg.Epochs(t.Context(), "shop"); err != nil || !slices.Equal(ids, newest) {
		t.Errorf("let go, manifests left %v: %v", ids, err)
	}
	if left, err := f.conn.ListState(t.Context(), bus.StateLifePrefix("l")); err != nil || len(left) != 0 {
		t.Errorf("let go, state left %v: %v", left, err)
	}
}
