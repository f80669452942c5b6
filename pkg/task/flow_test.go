package task_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/envelope"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/pkg/verdict"
)

const flowSpec = `
apiVersion: weir/v1
job: shop
sources:
  gen: {type: generator, rate: 300, rows: 3000, tables: 2, columns: 5, keys: 50, deletes: 20, transaction_rows: 3, readers: 2}
sinks:
  out: {from: [gen], type: blackhole, mode: changelog, writers: 2}
`

// inBubble runs a test against a real server in virtual time.
func inBubble(t *testing.T, text string, target *meshtest.Target, f func(ctx context.Context, l *leader)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := meshtest.StartServer(t, meshtest.ServerOptions{})
		defer srv.Shutdown()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		conn, err := bus.Connect(ctx, bus.Options{Name: "test", InProcess: srv})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.EnsureBase(ctx, bus.BaseConfig{LeaseTTL: 3 * time.Second, MemoryState: true}); err != nil {
			t.Fatal(err)
		}
		l := newLeader(t, conn, text, meshtest.LedgerSink{Target: target})
		defer func() {
			if l.run != nil {
				l.stop()
			}
		}()
		f(ctx, l)
	})
}

// judge holds the target against the truth up to the last manifest.
func judge(t *testing.T, l *leader, target *meshtest.Target) {
	t.Helper()
	last := l.order[len(l.order)-1].Manifest
	src, _ := l.spec.Source("gen")
	want, err := meshtest.Generated(*src.Config.(*spec.GeneratorSource), "gen", last)
	if err != nil {
		t.Fatal(err)
	}
	got := target.Changes()
	if len(want) == 0 {
		t.Fatal("nothing was generated: the test proves nothing")
	}
	for _, err := range []error{
		verdict.SameChanges(got, want), verdict.KeyOrder(got, want), verdict.WholeTransactions(got),
		verdict.LedgerContiguous(target.Log()), verdict.ChainUnbroken(l.order, target.Log()),
	} {
		if err != nil {
			t.Error(err)
		}
	}
}

func TestFlow(t *testing.T) {
	t.Parallel()
	var target meshtest.Target
	inBubble(t, flowSpec, &target, func(ctx context.Context, l *leader) {
		l.start(ctx)
		l.change(func(h *job.Head) { h.Phase = job.Running })
		for range 5 {
			pass(time.Second)
			l.epoch(ctx)
		}
		judge(t, l, &target)
	})
}

// pass lets virtual time pass.
func pass(d time.Duration) { <-time.After(d) }

// An attempt that dies anywhere in an epoch is followed by one from the last durable epoch: what was staged and not
// durable is made again, nothing is lost, nothing is there twice.
func TestRecoveryFromEachStepOfAnEpoch(t *testing.T) {
	t.Parallel()
	for name, half := range map[string]func(ctx context.Context, l *leader){
		"before the barrier": func(context.Context, *leader) {},
		"after the barrier":  func(_ context.Context, l *leader) { l.trigger() },
		"all acks in": func(ctx context.Context, l *leader) {
			l.await(ctx, envelope.Ack, len(l.part.Ackers()), l.trigger())
		},
		"durable, not committed": func(ctx context.Context, l *leader) { l.durable(ctx, l.trigger()) },
		"committed": func(ctx context.Context, l *leader) {
			n := l.trigger()
			l.durable(ctx, n)
			l.await(ctx, envelope.Committed, 1, n)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var target meshtest.Target
			inBubble(t, flowSpec, &target, func(ctx context.Context, l *leader) {
				for range 3 {
					l.start(ctx)
					l.change(func(h *job.Head) { h.Phase = job.Running })
					pass(300 * time.Millisecond)
					l.epoch(ctx)
					pass(300 * time.Millisecond)
					half(ctx, l)
					l.stop()
				}
				l.start(ctx)
				l.change(func(h *job.Head) { h.Phase = job.Running })
				l.epoch(ctx)
				judge(t, l, &target)
			})
		})
	}
}

// ⚑ A skipped epoch's pieces are named by the next ack, once.
func TestSkippedEpochs(t *testing.T) {
	t.Parallel()
	var target meshtest.Target
	inBubble(t, flowSpec, &target, func(ctx context.Context, l *leader) {
		l.start(ctx)
		l.change(func(h *job.Head) { h.Phase = job.Running })
		for i := range 6 {
			pass(200 * time.Millisecond)
			n := l.trigger()
			if i%3 != 2 {
				l.await(ctx, envelope.Ack, len(l.part.Ackers()), n)
				l.change(func(h *job.Head) { h.InFlight = nil })
				continue
			}
			l.durable(ctx, n)
			l.committed(ctx, n)
		}
		judge(t, l, &target)
		staged := 0
		for _, link := range l.order {
			staged += len(link.Manifest.Sinks["out"].Staged)
		}
		if staged < 8 {
			t.Errorf("%d pieces in %d manifests: nothing was skipped", staged, len(l.order))
		}
	})
}

// A commit whose reply is lost is looked up, not repeated; a target that is down is waited for and told.
func TestCommitsThatFailForAWhile(t *testing.T) {
	t.Parallel()
	var target meshtest.Target
	inBubble(t, flowSpec, &target, func(ctx context.Context, l *leader) {
		l.start(ctx)
		l.change(func(h *job.Head) { h.Phase = job.Running })
		pass(200 * time.Millisecond)
		target.LoseReplies(1)
		l.epoch(ctx)
		pass(200 * time.Millisecond)
		target.SetDown(true)
		n := l.trigger()
		l.durable(ctx, n)
		pass(5 * time.Minute)
		var waiting job.CommittedFact
		for _, body := range l.await(ctx, envelope.Committed, 1, 0) {
			if err := json.Unmarshal(body, &waiting); err != nil {
				t.Fatal(err)
			}
		}
		if waiting.Waiting == nil || waiting.Epoch >= n {
			t.Errorf("a committer whose target is down says %+v", waiting)
		}
		target.SetDown(false)
		l.committed(ctx, n)
		judge(t, l, &target)
	})
}

// T5: a committer that is told of a durable epoch and finds another fence in the record commits nothing, although the
// ledger would still let it.
func TestCommitterReadsTheHeadAfresh(t *testing.T) {
	t.Parallel()
	var target meshtest.Target
	inBubble(t, flowSpec, &target, func(ctx context.Context, l *leader) {
		l.start(ctx)
		l.change(func(h *job.Head) { h.Phase = job.Running })
		pass(200 * time.Millisecond)
		target.SetDown(true)
		l.durable(ctx, l.trigger())
		pass(10 * time.Second)
		l.mu.Lock()
		l.head.Fence++
		l.mu.Unlock()
		target.SetDown(false)
		pass(time.Minute)
		if log := target.Log(); len(log) != 0 || target.Refused() != 0 {
			t.Errorf("committed %+v, %d refused by the ledger", log, target.Refused())
		}
	})
}

// I8: a committer that was frozen before its commit and wakes up in the attempt after is refused by the ledger.
func TestFrozenCommitterIsRefused(t *testing.T) {
	t.Parallel()
	var target meshtest.Target
	inBubble(t, flowSpec, &target, func(ctx context.Context, l *leader) {
		l.start(ctx)
		l.change(func(h *job.Head) { h.Phase = job.Running })
		pass(200 * time.Millisecond)
		reached, thaw := target.Freeze()
		l.durable(ctx, l.trigger())
		<-reached
		zombie := l.run
		l.start(ctx)
		l.change(func(h *job.Head) { h.Phase = job.Running })
		l.epoch(ctx)
		thaw()
		pass(time.Second)
		if target.Refused() != 1 {
			t.Errorf("%d commits refused, want that of the zombie", target.Refused())
		}
		judge(t, l, &target)
		zombie.cancel(fence.ErrFenced)
		zombie.wg.Wait()
	})
}

// ⚑ A writer whose open epoch is too big asks for an early one, then stops taking messages; the source stops behind the
// window. The barrier of the next epoch gets through all the same.
func TestBackpressure(t *testing.T) {
	t.Parallel()
	var target meshtest.Target
	text := `
apiVersion: weir/v1
job: shop
epoch: {max_bytes: 1MiB}
sources:
  gen: {type: generator, columns: 9, rows: 200000}
sinks:
  out: {from: [gen], type: blackhole, mode: changelog}
`
	inBubble(t, text, &target, func(ctx context.Context, l *leader) {
		l.start(ctx)
		l.change(func(h *job.Head) { h.Phase = job.Running })
		var early job.InputFact
		for !early.Early {
			pass(100 * time.Millisecond)
			if err := json.Unmarshal(l.await(ctx, envelope.Input, 2, 0)[subtaskID("out", 0)], &early); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Minute)
		m := l.epoch(ctx)
		var bytes int64
		for _, s := range m.Sinks["out"].Staged {
			for _, o := range s.Objects {
				bytes += o.Size
			}
		}
		// One maximum, and what the window held when the barrier came.
		if limit := int64(1<<20 + 4<<20 + 1<<20); bytes < 1<<20 || bytes > limit {
			t.Errorf("the epoch has %d bytes, want between 1 MiB and %d", bytes, limit)
		}
		judge(t, l, &target)
	})
}

func subtaskID(v string, i int) plan.SubtaskID {
	return plan.SubtaskID{Vertex: plan.VertexID(v), Index: i}
}

// A drained source ends between two transactions and says so; barriers still pass.
func TestDrain(t *testing.T) {
	t.Parallel()
	var target meshtest.Target
	inBubble(t, flowSpec, &target, func(ctx context.Context, l *leader) {
		l.start(ctx)
		l.change(func(h *job.Head) { h.Phase = job.Running })
		pass(time.Second)
		l.epoch(ctx)
		l.change(func(h *job.Head) { h.Phase = job.Draining })
		l.await(ctx, envelope.Drained, 3, 0)
		l.epoch(ctx)
		before := len(target.Changes())
		pass(time.Minute)
		l.epoch(ctx)
		if after := len(target.Changes()); after != before {
			t.Errorf("%d changes after the drain, %d a minute later", before, after)
		}
		judge(t, l, &target)
	})
}

// Whatever the bus does to data messages: the attempt ends or the rows are exact, never anything else (T2).
func TestLossyBus(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			var target meshtest.Target
			faults := meshtest.NewFaults(meshtest.FaultPlan{
				Seed: seed, Budget: 6, Drop: 0.01, Repeat: 0.02, Swap: 0.01, Delay: 0.05, MaxDelay: 200 * time.Millisecond,
				RefusePublish: 0.002,
			})
			ended := 0
			inBubble(t, flowSpec, &target, func(ctx context.Context, l *leader) {
				l.wire = faults.Bus(l.wire)
				for len(l.order) < 5 {
					l.start(ctx)
					l.change(func(h *job.Head) { h.Phase = job.Running })
					for range 5 {
						pass(300 * time.Millisecond)
						if !l.try(ctx) {
							ended++
							break
						}
					}
					l.stop()
				}
				l.start(ctx)
				l.change(func(h *job.Head) { h.Phase = job.Running })
				faults.Stop()
				if !l.try(ctx) {
					l.stop()
					l.start(ctx)
					l.change(func(h *job.Head) { h.Phase = job.Running })
					l.epoch(ctx)
				}
				judge(t, l, &target)
			})
			fired := faults.Fired()
			if len(fired) == 0 {
				t.Error("no fault happened: the test proves nothing")
			}
			// A swap of two channels' messages changes nothing; a loss ends the attempt at the next message or barrier.
			if lost := fired["drop"] + fired["refuse publish"]; lost > 0 && ended == 0 {
				t.Errorf("%v happened and no attempt ended", fired)
			}
		})
	}
}
