package bubble

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/envelope"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/node"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/source/generator"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/pkg/task"
	"weir.dev/weir/pkg/verdict"
)

// stopMode is a way to stop a job, and what it promises.
type stopMode struct {
	name string
	ask  func(job.Intent) job.Intent
	// end is where the job comes to rest.
	end job.Phase
	// waits says that the end waits for the sinks, takes that it takes an epoch of this kind.
	waits bool
	takes epoch.Kind
}

var stopModes = []stopMode{
	{"CANCEL", func(i job.Intent) job.Intent { return i.Cancelled("stop", time.Now()) }, job.Cancelled, false, ""},
	{"DRAIN", func(i job.Intent) job.Intent { return i.Drained(time.Hour, "stop", time.Now()) }, job.Finished, true, epoch.Terminal},
	{"SUSPEND", func(i job.Intent) job.Intent { return i.Suspended("stop", time.Now()) }, job.Suspended, false, epoch.Savepoint},
}

// stopState is what the job is at when it is told to stop.
type stopState string

const (
	idle     stopState = "idle"
	loaded   stopState = "loaded"
	midEpoch stopState = "mid-epoch"
)

// I15: every mode, told while nothing comes, while rows come and while an epoch is half taken, with the sink up and down.
//
// CANCEL stops now, skips the epoch in flight and lets what is committed be all that there ever is. DRAIN delivers everything up to
// an end that it fixes, and waits for the sink for as long as it may. SUSPEND takes a SAVEPOINT epoch, does not wait for the sink,
// and goes on from there.
func TestI15StopModes(t *testing.T) {
	for _, mode := range stopModes {
		for _, state := range []stopState{idle, loaded, midEpoch} {
			for _, down := range []bool{false, true} {
				sink := "up"
				if down {
					sink = "down"
				}
				t.Run(fmt.Sprintf("%s/%s/sink %s", mode.name, state, sink), func(t *testing.T) {
					t.Parallel()
					inBubble(t, func(m *mesh) { stopAndJudge(m, mode, state, down) })
				})
			}
		}
	}
}

func stopAndJudge(m *mesh, mode stopMode, state stopState, down bool) {
	m.t.Helper()
	calm := &calmSource{Connector: generator.Connector{}}
	m.source = calm
	held := &heldAcks{}
	m.coordinator("c1")
	m.node("n1", func(n node.Mesh) node.Mesh {
		n.Facts = heldFacts{n.Facts, held}
		return n
	}, "source", "sink")
	m.submit(shop)
	stop := m.watchTarget()
	defer stop()
	m.await(committed(4))
	if state == idle {
		calm.idle.Store(true)
		<-time.After(5 * time.Second)
	}
	if down {
		m.target.SetDown(true)
		if state != idle {
			m.await("epochs that are durable and not committed", func(h *job.Head) bool { return h.Durable.Epoch > h.Committed })
		}
	}
	// With max_uncommitted epochs at a sink that is down none is taken but one that somebody asks for.
	if state == midEpoch && !down {
		held.hold.Store(true)
		h := m.await("an epoch in flight", func(h *job.Head) bool { return h.InFlight != nil })
		<-time.After(300 * time.Millisecond)
		if again := m.await("any", func(*job.Head) bool { return true }); again.InFlight == nil || again.InFlight.Epoch != h.InFlight.Epoch {
			m.t.Fatalf("epoch %d is not held", h.InFlight.Epoch)
		}
	}
	if state == midEpoch && down {
		held.hold.Store(true)
		m.ask(mode.ask) // its own epoch is the one that is half taken
		<-time.After(300 * time.Millisecond)
	}
	before := m.await("any", func(*job.Head) bool { return true })
	began := time.Now()
	m.ask(mode.ask)
	if mode.takes == "" {
		m.cancelled(m.await("the end", func(h *job.Head) bool { return h.Phase.AtRest() }), before, time.Since(began))
		return
	}
	held.hold.Store(false)
	if mode.waits && down && state != idle { // an epoch that staged nothing needs no sink
		<-time.After(time.Minute)
		if h := m.await("any", func(*job.Head) bool { return true }); h.Phase != job.Draining || h.Committed >= h.Durable.Epoch || h.Durable.Kind != mode.takes {
			m.t.Errorf("with the sink down: %s, committed %d, durable %+v", h.Phase, h.Committed, h.Durable)
		}
		m.target.SetDown(false)
	}
	h := m.await("the end", func(h *job.Head) bool { return h.Phase.AtRest() })
	if h.Phase != mode.end || h.Durable.Kind != mode.takes || h.InFlight != nil || h.Reason.Request != "stop" {
		m.t.Fatalf("came to rest as %s with %+v in flight %+v: %+v", h.Phase, h.Durable, h.InFlight, h.Reason)
	}
	if h.Durable.Epoch <= before.Durable.Epoch {
		m.t.Errorf("rests at epoch %d, %d was durable before", h.Durable.Epoch, before.Durable.Epoch)
	}
	if took := time.Since(began); !mode.waits && took > 5*time.Second {
		m.t.Errorf("took %s", took)
	}
	if mode.end == job.Finished {
		m.judge(h)
		return
	}
	if down && state != idle && h.Committed >= h.Durable.Epoch {
		m.t.Errorf("epoch %d is committed at a sink that is down", h.Committed)
	}
	m.target.SetDown(false)
	calm.idle.Store(false)
	m.ask(func(i job.Intent) job.Intent { return i.Resumed("again", time.Now()) })
	n := m.await("a run", func(n *job.Head) bool { return n.Phase == job.Running && n.Committed > h.Durable.Epoch })
	if n.Fence != h.Fence+1 {
		m.t.Errorf("attempt %d became %d: %+v", h.Fence, n.Fence, n.Restarts)
	}
	m.drain()
}

// cancelled judges the end of a job that was cancelled.
func (m *mesh) cancelled(h, before *job.Head, took time.Duration) {
	m.t.Helper()
	if h.Phase != job.Cancelled || h.InFlight != nil || h.Reason.Request != "stop" {
		m.t.Fatalf("came to rest as %s, in flight %+v: %+v", h.Phase, h.InFlight, h.Reason)
	}
	if took > time.Second {
		m.t.Errorf("took %s", took)
	}
	if f := before.InFlight; f != nil && h.Durable.Epoch >= f.Epoch {
		m.t.Errorf("epoch %d was in flight and is durable", f.Epoch)
	}
	// A commit that was under way may still land; then nothing moves any more, whatever becomes of the sink.
	<-time.After(time.Second)
	m.target.SetDown(false)
	<-time.After(time.Minute)
	got := m.target.Changes()
	if len(got) == 0 {
		m.t.Fatal("nothing was committed: the test proves nothing")
	}
	row, _ := m.target.Ledger(h.Job, "out")
	last, err := m.reg.Manifest(m.ctx, h.Job, row.Ref)
	if err != nil {
		m.t.Fatal(err)
	}
	src, _ := m.spec.Source("gen")
	want, err := meshtest.Generated(*src.Config.(*spec.GeneratorSource), "gen", last)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, err := range []error{verdict.SameChanges(got, want), verdict.LedgerContiguous(m.target.Log())} {
		if err != nil {
			m.t.Error(err)
		}
	}
	if row.Ref.Epoch > h.Durable.Epoch {
		m.t.Errorf("epoch %d is committed, %d is durable", row.Ref.Epoch, h.Durable.Epoch)
	}
}

// calmSource is a source that has nothing while it is idle.
type calmSource struct {
	source.Connector
	idle atomic.Bool
}

func (c *calmSource) OpenReader(ctx context.Context, cfg source.Config) (source.Reader, error) {
	r, err := c.Connector.OpenReader(ctx, cfg)
	return &calmReader{Reader: r, idle: &c.idle}, err
}

type calmReader struct {
	source.Reader
	idle     *atomic.Bool
	draining bool
}

func (r *calmReader) Drain(ctx context.Context) error {
	r.draining = true
	return r.Reader.Drain(ctx)
}

func (r *calmReader) Poll(ctx context.Context, out source.Output, wake <-chan struct{}) (source.Status, error) {
	if !r.idle.Load() || r.draining {
		return r.Reader.Poll(ctx, out, wake)
	}
	select {
	case <-wake:
		return source.Status{}, nil
	case <-ctx.Done():
		return source.Status{}, context.Cause(ctx)
	}
}

// heldAcks keeps what subtasks say of an epoch while hold is set, and says it afterwards.
type heldAcks struct {
	hold atomic.Bool
}

type heldFacts struct {
	task.Facts
	held *heldAcks
}

func (f heldFacts) PutFact(ctx context.Context, subject string, h bus.Header, data []byte) error {
	if _, _, kind, _, err := bus.ParseAckSubject(subject); err == nil && kind == string(envelope.Ack) && f.held.hold.Load() {
		return bus.ErrUnknown // repeated until it is told
	}
	return f.Facts.PutFact(ctx, subject, h, data)
}
