package bubble

import (
	"context"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/verdict"
)

// ⚑ A target that never answers stops commits and nothing else: barriers are answered until two epochs wait for it, the
// attempt lives, and for however long.
func TestBarriersPassWhileTheTargetIsSilent(t *testing.T) {
	inBubble(t, func(m *mesh) {
		m.coordinator("c1")
		m.node("n1", nil, "source", "sink")
		m.submit(slow)
		stop := m.watchTarget()
		m.await(committed(3))
		silent, speak := m.target.Freeze()
		<-silent
		h := m.await("two durable epochs that wait", func(h *job.Head) bool {
			return h.Durable.Epoch >= h.Committed+2 && h.InFlight == nil
		})
		<-time.After(time.Minute)
		n := m.await("the head", func(*job.Head) bool { return true })
		if n.Fence != h.Fence || n.Phase != job.Running || n.Committed != h.Committed || n.Durable.Epoch != h.Durable.Epoch {
			t.Errorf("in a minute %+v became %+v", h, n)
		}
		speak()
		m.await("the next commits", func(n *job.Head) bool { return n.Fence == h.Fence && n.Committed > h.Committed+3 })
		m.drain()
		stop()
	})
}

// ⚑ A committer that hangs in the target, and notices nothing, is replaced at once; when the target lets go of it, the
// ledger turns it away.
func TestHungCommitterIsFenced(t *testing.T) {
	inBubble(t, func(m *mesh) {
		m.coordinator("c1")
		m.node("n1", nil, "source", "sink")
		m.submit(shop)
		stop := m.watchTarget()
		m.await(committed(3))
		hung, release := m.target.Freeze()
		<-hung
		h := m.await("the head", func(*job.Head) bool { return true })
		if err := m.conn.DeleteData(m.ctx, h.Job, h.Fence); err != nil {
			t.Fatal(err)
		}
		lost := time.Now()
		m.await("commits of a new attempt", func(n *job.Head) bool { return n.Fence > h.Fence && n.Committed > h.Committed })
		if took := time.Since(lost); took > 5*time.Second {
			t.Errorf("the hung committer held the next attempt up for %s", took)
		}
		if n := m.target.Refused(); n != 0 {
			t.Errorf("%d commits refused before the hung one went on", n)
		}
		release()
		m.await(committed(uint64(h.Committed) + 10))
		if n := m.target.Refused(); n != 1 {
			t.Errorf("the ledger refused %d commits, want that of the hung committer", n)
		}
		m.drain()
		stop()
	})
}

// A job is cancelled while its committer hangs in the target.
func TestJobWithAHungCommitterIsCancelled(t *testing.T) {
	inBubble(t, func(m *mesh) {
		m.coordinator("c1")
		m.node("n1", nil, "source", "sink")
		m.submit(shop)
		m.await(committed(3))
		hung, release := m.target.Freeze()
		<-hung
		asked := time.Now()
		m.ask(func(i job.Intent) job.Intent { return i.Cancelled("r3", time.Now()) })
		m.await("the end", func(h *job.Head) bool { return h.Phase == job.Cancelled })
		if took := time.Since(asked); took > 5*time.Second {
			t.Errorf("cancelled after %s", took)
		}
		release()
		<-time.After(time.Minute)
		// The commit was of a durable epoch and of the newest fence: it may still become visible, as a whole.
		if err := verdict.LedgerContiguous(m.target.Log()); err != nil {
			t.Error(err)
		}
		if err := verdict.WholeTransactions(m.target.Changes()); err != nil {
			t.Error(err)
		}
	})
}

// A writer that hangs while it stages cannot answer its barrier: the epoch's deadline ends the wait, the attempt is
// replaced, and nothing is lost.
func TestWriterThatHangsIsReplaced(t *testing.T) {
	inBubble(t, func(m *mesh) {
		stuck := &stuckWriters{Connector: m.sink, on: make(chan struct{})}
		m.sink = stuck
		m.coordinator("c1")
		m.node("n1", nil, "source", "sink")
		m.submit(strings.Replace(slow, "interval: 200ms", "interval: 200ms, timeout: 5s", 1))
		stop := m.watchTarget()
		h := m.await(committed(3))
		close(stuck.on)
		n := m.await("commits of a new attempt", func(n *job.Head) bool { return n.Fence > h.Fence && n.Committed > h.Committed+3 })
		t.Logf("fence %s became %s", h.Fence, n.Fence)
		m.drain()
		stop()
	})
}

// stuckWriters lets the writers of the first attempt hang in Stage from the moment on is closed.
type stuckWriters struct {
	sink.Connector
	on chan struct{}
}

func (s *stuckWriters) OpenWriter(ctx context.Context, cfg sink.Config) (sink.Writer, error) {
	w, err := s.Connector.OpenWriter(ctx, cfg)
	if err != nil || cfg.Fence != 1 {
		return w, err
	}
	return stuckWriter{w, s.on}, nil
}

type stuckWriter struct {
	sink.Writer
	on chan struct{}
}

func (w stuckWriter) Stage(ctx context.Context, e epoch.ID) ([]sink.Piece, error) {
	select {
	case <-w.on:
		<-ctx.Done()
		return nil, context.Cause(ctx)
	default:
		return w.Writer.Stage(ctx, e)
	}
}
