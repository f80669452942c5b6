package gather

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/progress"
	"weir.dev/weir/pkg/registry"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/spec"
)

func TestMain(m *testing.M) { meshtest.Main(m) }

const shop = `
apiVersion: weir/v1
job: shop
sources:
  db: {type: postgres, url: "${SHOP_URL}", tables: ["public.*"]}
sinks:
  out: {from: [db], type: postgres, url: "${OUT_URL}", schema: shop}
`

var (
	reader    = plan.SubtaskID{Vertex: "db"}
	committer = plan.SubtaskID{Vertex: plan.CommitterOf("out")}
)

// world is a server with what a leader and its nodes wrote to it.
type world struct {
	*testing.T

	ctx      context.Context
	conn     *bus.Conn
	reg      *registry.Registry
	read     *Reader
	head     job.Head
	revision uint64
}

func inBubble(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := meshtest.StartServer(t, meshtest.ServerOptions{})
		conn, err := bus.Connect(t.Context(), bus.Options{Name: "test", InProcess: srv})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			conn.Close()
			srv.Shutdown()
		}()
		w := &world{T: t, ctx: t.Context(), conn: conn}
		w.must(conn.EnsureBase(w.ctx, bus.BaseConfig{MemoryState: true}))
		w.reg, err = registry.Open(w.ctx, conn, 0)
		w.must(err)
		w.must(conn.EnsureDLQ(w.ctx, "shop", 1<<20))
		j, err := spec.Parse([]byte(shop), "job.yaml")
		w.must(err)
		digest, err := w.reg.PutSpec(w.ctx, j)
		w.must(err)
		w.head = job.Head{Version: job.HeadVersion, Job: "shop", Life: "aa", Phase: job.Running, Term: 1, Fence: 2, NextEpoch: 1, SpecDigest: digest}
		w.read = New(conn, w.reg)
		f(w)
	})
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// lead writes the head as changed and returns it as it is read.
func (w *world) lead(change func(h *job.Head)) *job.Head {
	w.Helper()
	change(&w.head)
	w.head.Updated = time.Now()
	var err error
	w.revision, err = w.reg.WriteHead(w.ctx, &w.head, w.revision)
	w.must(err)
	v, err := w.reg.Head(w.ctx, "shop")
	w.must(err)
	return v.Head
}

// seal stores a manifest behind the head's durable one and makes it durable.
func (w *world) seal(id epoch.ID, lsn string) {
	w.Helper()
	m := &epoch.Manifest{Version: 1, Job: "shop", Life: "aa", Epoch: id, Kind: epoch.Periodic, Fence: 2, Term: 1, Subtasks: map[plan.SubtaskID]epoch.SubtaskState{reader: {Position: at(lsn)}}}
	if d := w.head.Durable; d != nil {
		m.Prev = d.Ref
	}
	stored, err := m.Bytes()
	w.must(err)
	durable, err := w.reg.PutManifest(w.ctx, m, stored, epoch.Ref{Epoch: id, Digest: epoch.Digest(stored)})
	w.must(err)
	durable.Fence, durable.At = 2, time.Now()
	w.head.Durable, w.head.NextEpoch = &durable, id+1
}

func (w *world) fact(f fence.Token, kind string, id plan.SubtaskID, body any) {
	w.Helper()
	b, err := json.Marshal(body)
	w.must(err)
	w.must(w.conn.PutFact(w.ctx, bus.AckSubject("shop", f, kind, id), nil, b))
}

func (w *world) say(node string, fence, sequence uint64) {
	w.Helper()
	b, err := json.Marshal(report.Batch{Version: report.BatchVersion, Node: node, Incarnation: "1", At: time.Now(), Reports: []report.Envelope{{
		Job: "shop", Subtask: "db-0", Fence: fence, Sequence: sequence, Observed: time.Now(),
		Reader: &report.Reader{Connector: "postgres", Lifecycle: report.Incremental, Rows: report.ExactOf(sequence)},
	}}})
	w.must(err)
	w.must(w.conn.PublishReport(w.ctx, node, b))
}

func at(lsn string) position.Position {
	return position.Position{Type: position.PostgresLSN, Version: 1, Fields: map[string]string{"lsn": lsn}}
}

// One look puts together what the head, its manifests, the facts, the reports, the nodes and the dead letters say, and nothing
// of another attempt.
func TestALookIsOfTheHeadsAttempt(t *testing.T) {
	inBubble(t, func(w *world) {
		w.seal(1, "0/10")
		w.seal(2, "0/20")
		d := &plan.Deployment{Life: "aa", Fence: 2, Spec: json.RawMessage(`{}`)}
		d.Job = "shop"
		ref, err := w.reg.PutPlan(w.ctx, d, 1)
		w.must(err)
		h := w.lead(func(h *job.Head) { h.Committed, h.Plan = 1, &ref })
		w.fact(1, "ack", reader, epoch.Ack{Fence: 1, Subtask: reader, Epoch: 9})
		w.fact(2, "ack", reader, epoch.Ack{Fence: 2, Subtask: reader, Epoch: 3})
		w.fact(2, "committed", committer, job.CommittedFact{Fence: 2, Subtask: committer, Epoch: 1})
		w.say("n1", 1, 50)
		w.say("n2", 2, 4)
		lease, err := w.reg.AcquireNode(w.ctx, job.NodeLease{Node: "n1", Capabilities: []string{"source:postgres"}})
		w.must(err)
		claim, err := w.conn.ClaimDLQ(w.ctx, "shop", "out", 2)
		w.must(err)
		w.must(w.conn.PutDeadLetter(w.ctx, bus.DLQSubject("shop", "out", "orders", 1, 0), claim, nil, []byte("x")))

		o, err := w.read.Look(w.ctx, h)
		w.must(err)
		if o.Spec == nil || o.Spec.Name != "shop" || o.Plan == nil || o.Plan.Fence != 2 || o.At.IsZero() {
			t.Errorf("spec %v, plan %v, at %v", o.Spec, o.Plan, o.At)
		}
		if o.Durable == nil || o.Durable.Epoch != 2 || o.Committed == nil || o.Committed.Epoch != 1 {
			t.Errorf("manifests: durable %+v, committed %+v", o.Durable, o.Committed)
		}
		if a := o.Acks[reader]; len(o.Acks) != 1 || a.Epoch != 3 {
			t.Errorf("acks: %+v", o.Acks)
		}
		if c := o.Commits[committer]; len(o.Commits) != 1 || c.Epoch != 1 {
			t.Errorf("commits: %+v", o.Commits)
		}
		if r := o.Reports["db-0"]; len(o.Reports) != 1 || r.Sequence != 4 || r.Node != "n2" {
			t.Errorf("reports: %+v", o.Reports)
		}
		if len(o.Nodes) != 1 || o.Nodes[0].Node != "n1" || o.Letters["out"] != 1 {
			t.Errorf("nodes %+v, letters %v", o.Nodes, o.Letters)
		}
		if at, ok := progress.Build(o).Sources[0].Readers[0].Completed.Get(); !ok || at.Fields["lsn"] != "0/10" {
			t.Errorf("completed at %v", at)
		}
		w.must(lease.Release(w.ctx))
	})
}

// What cannot be read is left out, and comes with the next look when it is there; only the head's own spec has to be.
func TestWhatIsMissingIsLeftOut(t *testing.T) {
	inBubble(t, func(w *world) {
		gone := epoch.Ref{Epoch: 3, Digest: epoch.Digest([]byte("never stored"))}
		h := w.lead(func(h *job.Head) {
			h.Plan = &job.PlanRef{Key: "plan.shop.2.1", Digest: "d"}
			h.Durable, h.Committed, h.NextEpoch = &job.Durable{Ref: gone, Key: "m.shop.3.1", Fence: 2}, 3, 4
		})
		o, err := w.read.Look(w.ctx, h)
		w.must(err)
		if o.Plan != nil || o.Durable != nil || o.Committed != nil || o.Spec == nil {
			t.Errorf("plan %v, durable %v, committed %v, spec %v", o.Plan, o.Durable, o.Committed, o.Spec)
		}
		if o.Nodes == nil || len(o.Nodes) != 0 {
			t.Errorf("nodes were read and none is there: %#v", o.Nodes)
		}
		w.head.Durable = nil
		w.seal(1, "0/10")
		h = w.lead(func(h *job.Head) { h.Committed = 1 })
		if o, err = w.read.Look(w.ctx, h); err != nil || o.Durable == nil || o.Committed != o.Durable {
			t.Errorf("durable %v, committed %v, %v", o.Durable, o.Committed, err)
		}
		h.SpecDigest = "of nothing"
		if _, err := w.read.Look(w.ctx, h); err == nil {
			t.Error("a head without a spec was looked at")
		}
	})
}

// Reports that cannot be read are counted and do not hide the others.
func TestBadReportsAreCounted(t *testing.T) {
	inBubble(t, func(w *world) {
		w.say("n1", 2, 4)
		w.must(w.conn.PublishReport(w.ctx, "n2", []byte(`{"version":999}`)))
		w.must(w.conn.PublishReport(w.ctx, "n3", []byte(`no json`)))
		batches, bad, err := w.read.Reports(w.ctx)
		if err != nil || bad != 2 || len(batches) != 1 || batches[0].Node != "n1" {
			t.Errorf("%d bad, %+v, %v", bad, batches, err)
		}
	})
}

// A recovery is told of the same life, and only while it is news.
func TestTheNewestRecoveryOfTheLife(t *testing.T) {
	inBubble(t, func(w *world) {
		tell := func(life string, code string) {
			b, err := json.Marshal(job.Notice{Kind: job.NoticeRecovery, Job: "shop", Life: life, Fence: 2, Reason: job.Reason{Code: code}, At: time.Now()})
			w.must(err)
			w.must(w.conn.PublishEvent(w.ctx, "shop", string(job.NoticeRecovery), b))
		}
		tell("aa", "FIRST")
		tell("aa", "SECOND")
		tell("bb", "OTHER-LIFE")
		h := w.lead(func(h *job.Head) { h.Phase = job.Starting })
		o, err := w.read.Look(w.ctx, h)
		if err != nil || o.Recovery == nil || o.Recovery.Reason.Code != "SECOND" {
			t.Errorf("%+v, %v", o.Recovery, err)
		}
		h = w.lead(func(h *job.Head) { h.Phase = job.Running })
		if o, err := w.read.Look(w.ctx, h); err != nil || o.Recovery != nil {
			t.Errorf("a job that runs: %+v, %v", o.Recovery, err)
		}
		h = w.lead(func(h *job.Head) { h.Restarts = []job.Restart{{At: time.Now(), Kind: job.RestartFailure}} })
		if o, err := w.read.Look(w.ctx, h); err != nil || o.Recovery == nil {
			t.Errorf("just restarted: %v", err)
		}
		<-time.After(2 * recoveriesSince)
		h = w.lead(func(h *job.Head) { h.Phase = job.Starting })
		if o, err := w.read.Look(w.ctx, h); err != nil || o.Recovery != nil {
			t.Errorf("long ago: %+v, %v", o.Recovery, err)
		}
	})
}

// A new life under an old name begins with nothing that was kept of the one before, and a deleted job is none.
func TestALifeIsNotTheOneBefore(t *testing.T) {
	inBubble(t, func(w *world) {
		w.seal(1, "0/10")
		h := w.lead(func(h *job.Head) { h.Committed = 1 })
		if l, err := w.read.Epochs(w.ctx, h, 10); err != nil || len(l.Epochs) != 1 || l.Epochs[0].State != "committed" {
			t.Errorf("%+v, %v", l, err)
		}
		_, err := w.read.Look(w.ctx, h)
		w.must(err)
		w.seal(2, "0/20")
		h = w.lead(func(*job.Head) {})
		if l, err := w.read.Epochs(w.ctx, h, 10); err != nil || len(l.Epochs) != 2 || l.Epochs[0].State != "durable" {
			t.Errorf("%+v, %v", l, err)
		}
		if l, err := w.read.Epochs(w.ctx, h, 1); err != nil || len(l.Epochs) != 1 || !l.DetailsTruncated {
			t.Errorf("%+v, %v", l, err)
		}
		h = w.lead(func(h *job.Head) { h.Life, h.Durable, h.Committed, h.NextEpoch = "bb", nil, 0, 1 })
		o, err := w.read.Look(w.ctx, h)
		if err != nil || o.Durable != nil || o.Committed != nil {
			t.Errorf("%+v, %v", o.Durable, err)
		}
		if l, err := w.read.Epochs(w.ctx, h, 10); err != nil || len(l.Epochs) != 0 {
			t.Errorf("%+v, %v", l, err)
		}
		if hs, err := w.read.Heads(w.ctx); err != nil || len(hs) != 1 {
			t.Errorf("%+v, %v", hs, err)
		}
		w.read.Forget(func(name string) bool { return name == "shop" })
		if len(w.read.jobs) != 0 {
			t.Error("a forgotten job is kept")
		}
		w.head.Phase = job.Deleted
		_, err = w.reg.WriteHead(w.ctx, &w.head, w.revision)
		w.must(err)
		if hs, err := w.read.Heads(w.ctx); err != nil || len(hs) != 0 {
			t.Errorf("%+v, %v", hs, err)
		}
	})
}
