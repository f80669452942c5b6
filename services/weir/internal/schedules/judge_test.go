package schedules

import (
	"context"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/pkg/verdict"
)

// observe looks at target and head until stop is called: nothing that is visible may be undurable or go away again.
// Every manifest that was durable at one of the looks is kept, whatever the registry forgets.
func (m *mesh) observe() (stop func()) {
	ctx, cancel := context.WithCancel(m.ctx)
	done := make(chan error, 1)
	m.work.Go(func() {
		var o verdict.Observer
		for ctx.Err() == nil {
			visible := m.target.Changes()
			if v, err := m.reg.Head(ctx, m.spec.Name); err == nil && v.Head != nil && !m.mayEnd.Load() {
				var durable epoch.ID
				if d := v.Head.Durable; d != nil {
					durable = d.Epoch
					m.keep(ctx, d.Ref)
				}
				o.Look(visible, durable)
			}
			pass(time.Duration(m.look.Load()))
		}
		done <- o.Err()
	})
	return func() {
		cancel()
		if err := <-done; err != nil {
			m.t.Error(err)
		}
	}
}

// keep remembers a manifest.
func (m *mesh) keep(ctx context.Context, ref epoch.Ref) {
	m.mu.Lock()
	_, known := m.seen[ref]
	m.mu.Unlock()
	if known {
		return
	}
	if mf, err := m.reg.Manifest(ctx, m.spec.Name, ref); err == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.seen[ref] = mf
	}
}

// drain ends the job in good order and judges everything.
func (m *mesh) drain() {
	m.t.Helper()
	m.ask(func(i job.Intent) job.Intent { return i.Drained(time.Minute, "r2", time.Now()) })
	h := m.await("end", func(h *job.Head) bool { return h.Phase.AtRest() })
	if h.Phase != job.Finished || h.Durable == nil || h.Durable.Epoch != h.Committed {
		m.t.Fatalf("the drain ended in %s with epoch %+v durable and %s committed: %+v", h.Phase, h.Durable, h.Committed, h.Reason)
	}
	for _, r := range h.Restarts {
		if r.Kind == job.RestartFailure {
			// Such as two ends of a channel that counted differently: caught, but nothing outside the mesh explains it.
			m.t.Errorf("after epoch %s the attempt ended for a reason of its own", r.Durable)
		}
	}
	links, err := m.reg.History(m.ctx, h.Job, h.Durable.Ref)
	if err != nil {
		m.t.Fatal(err)
	}
	m.judge(links)
}

// judge holds the target against the truth at the last manifest.
func (m *mesh) judge(links []epoch.Link) {
	m.t.Helper()
	last := links[len(links)-1]
	src, _ := m.spec.Source("gen")
	want, err := meshtest.Generated(*src.Config.(*spec.GeneratorSource), "gen", last.Manifest)
	if err != nil {
		m.t.Fatal(err)
	}
	if len(want) == 0 {
		m.t.Fatal("nothing was generated: the test proves nothing")
	}
	got, log := m.target.Changes(), m.target.Log()
	for _, err := range []error{
		verdict.SameChanges(got, want), verdict.KeyOrder(got, want), verdict.FinalRows(got, want),
		verdict.WholeTransactions(got), verdict.LedgerContiguous(log), verdict.ChainUnbroken(links, log),
		onceEach(log),
	} {
		if err != nil {
			m.t.Error(err)
		}
	}
}
