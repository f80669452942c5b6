package task_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir.dev/weir/pkg/envelope"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/pkg/verdict"
)

// At least once nobody waits for the slowest channel of an epoch: while one reader holds its barrier back, the rows of the other go
// on into the writers. They are in the epoch, so a recovery from it has them twice; none is ever missing.
func TestAtLeastOnceDoesNotAlign(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		guarantee string
		loose     bool
	}{{"exactly_once", false}, {"at_least_once", true}} {
		t.Run(tt.guarantee, func(t *testing.T) {
			t.Parallel()
			var target meshtest.Target
			text := strings.Replace(flowSpec, "job: shop", "job: shop\nguarantee: "+tt.guarantee, 1)
			inBubble(t, text, &target, func(ctx context.Context, l *leader) {
				halt := &halting{Connector: l.src, until: make(chan struct{})}
				l.src = halt
				l.start(ctx)
				l.change(func(h *job.Head) { h.Phase = job.Running })
				pass(time.Second)
				l.epoch(ctx)
				halt.on.Store(true)
				pass(100 * time.Millisecond) // the halting reader is in a Poll
				n := l.trigger()
				pass(100 * time.Millisecond) // the other one has passed its barrier
				before := written(l)
				pass(2 * time.Second)
				if more := written(l) - before; more > 0 != tt.loose {
					t.Errorf("%d rows were written while a barrier was missing", more)
				}
				halt.on.Store(false)
				close(halt.until)
				l.await(ctx, envelope.Ack, len(l.part.Ackers()), n)
				l.durable(ctx, n)
				l.committed(ctx, n)
				l.stop()

				l.src = halt.Connector
				l.start(ctx)
				l.change(func(h *job.Head) { h.Phase = job.Running })
				pass(10 * time.Second)
				last := l.epoch(ctx)
				src, _ := l.spec.Source("gen")
				want, err := meshtest.Generated(*src.Config.(*spec.GeneratorSource), "gen", last)
				if err != nil {
					t.Fatal(err)
				}
				err = verdict.SameChanges(target.Changes(), want)
				switch {
				case !tt.loose && err != nil:
					t.Error(err)
				case tt.loose && (err == nil || strings.Contains(err.Error(), "missing") || !strings.Contains(err.Error(), "too often")):
					t.Errorf("want some rows twice and none missing, got: %v", err)
				}
			})
		})
	}
}

// written counts the rows that the writers have taken.
func written(l *leader) (n uint64) {
	for _, s := range l.run.tasks {
		if s.ID().Vertex == "out" {
			n += s.Counters().Rows.Load()
		}
	}
	return n
}

// halting is a source whose second reader does not come back from a Poll while on is set.
type halting struct {
	source.Connector
	on    atomic.Bool
	until chan struct{}
}

func (h *halting) OpenReader(ctx context.Context, cfg source.Config) (source.Reader, error) {
	r, err := h.Connector.OpenReader(ctx, cfg)
	if cfg.Subtask.Index != 1 {
		return r, err
	}
	return halted{r, h}, err
}

type halted struct {
	source.Reader
	h *halting
}

func (r halted) Poll(ctx context.Context, out source.Output, wake <-chan struct{}) (source.Status, error) {
	if r.h.on.Load() {
		<-r.h.until
	}
	return r.Reader.Poll(ctx, out, wake)
}
