package verify

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
)

func TestJournalAwaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var j journal
		committed := func(e epoch.ID) func(job.Head) bool { return func(h job.Head) bool { return h.Committed == e } }
		j.add(sight{time.Now(), job.Head{Committed: 1}})
		if s, next, err := j.await(t.Context(), "the past", 0, committed(1)); err != nil || next != 1 || s.head.Committed != 1 {
			t.Errorf("the past: %+v, %d, %v", s, next, err)
		}
		go func() {
			<-time.After(time.Second)
			j.add(sight{time.Now(), job.Head{Committed: 2}})
			j.add(sight{time.Now(), job.Head{Committed: 3}})
		}()
		if _, next, err := j.await(t.Context(), "the future", 1, committed(2)); err != nil || next != 2 {
			t.Errorf("the future: %d, %v", next, err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("too long"))
		defer cancel()
		if _, _, err := j.await(ctx, "what never comes", 0, committed(9)); err == nil || !strings.Contains(err.Error(), "what never comes") || !strings.Contains(err.Error(), "too long") {
			t.Errorf("what never comes: %v", err)
		}
	})
}

// The report's times and epochs are read from the heads that followed a fault.
func TestTrace(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	restore := &job.Durable{Ref: epoch.Ref{Epoch: 7}}
	tr := &trial{}
	for i, h := range []job.Head{
		{Fence: 1, Term: 1, Phase: job.Running, Plan: &job.PlanRef{Fence: 1, Restore: &job.Durable{Ref: epoch.Ref{Epoch: 3}}}}, // before it
		{Fence: 1, Term: 1, Phase: job.Running},
		{Fence: 2, Term: 1, Phase: job.Starting},
		{Fence: 2, Term: 1, Phase: job.Running, Plan: &job.PlanRef{Fence: 2, Restore: restore}},
	} {
		tr.journal.add(sight{at.Add(time.Duration(i-1)*time.Second + time.Millisecond), h})
	}
	f := Fault{At: at, FenceBefore: 1, TermBefore: 1}
	tr.trace(&f)
	if f.Detect == nil || *f.Detect != 1.001 || f.Restored == nil || *f.Restored != 7 {
		t.Errorf("%v %v", f.Detect, f.Restored)
	}
	f = Fault{At: at, FenceBefore: 2, TermBefore: 1}
	if tr.trace(&f); f.Restored != nil {
		t.Errorf("restored from %d without a new attempt", *f.Restored)
	}
}
