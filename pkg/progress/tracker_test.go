package progress_test

import (
	"testing"
	"time"

	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/progress"
	"weir.dev/weir/pkg/report"
)

func head(f fence.Token, p job.Phase) *job.Head { return &job.Head{Job: "shop", Fence: f, Phase: p} }

func reported(fence, sequence uint64, split string) report.Envelope {
	r := copier(split)
	return report.Envelope{Job: "shop", Subtask: "db-1", Fence: fence, Sequence: sequence, Observed: now, Reader: &r}
}

// STIP-30 validation 9: within an attempt the sequence decides; a new attempt begins at zero; late reports of an older one are
// refused, whatever their sequence and time.
func TestOrderOfAttemptsAndSequences(t *testing.T) {
	t.Parallel()
	var k progress.Tracker
	take := func(fence, sequence uint64, want progress.Verdict) {
		t.Helper()
		if got := k.Take("n1", reported(fence, sequence, "x"), now); got != want {
			t.Errorf("report %d of attempt %d: %s, want %s", sequence, fence, got, want)
		}
	}
	shown := func(fence, sequence uint64) {
		t.Helper()
		s, ok := k.Of("shop", now)["db-1"]
		if ok != (fence > 0) || s.Fence != fence || s.Sequence != sequence {
			t.Errorf("attempt %d sequence %d is shown", s.Fence, s.Sequence)
		}
	}
	take(2, 1, progress.NoScope) // nothing is open yet
	k.Open(head(2, job.Running))
	take(2, 40, progress.Taken)
	take(2, 40, progress.Repeated)
	take(2, 39, progress.OldSequence)
	take(3, 0, progress.NoScope) // ahead of what the head says
	shown(2, 40)
	if !k.Open(head(3, job.Starting)) {
		t.Error("a new attempt forgets nothing")
	}
	shown(0, 0)
	take(2, 99, progress.OldFence)
	take(3, 0, progress.Taken)
	shown(3, 0)
	k.Open(head(2, job.Running)) // an older reading of the head
	take(2, 99, progress.OldFence)
	shown(3, 0)
	k.Open(head(3, job.Finished))
	shown(0, 0)
	take(3, 1, progress.NoScope) // a late report cannot bring it back
	shown(0, 0)
	bad := reported(3, 1, "x")
	bad.Reader.Lifecycle = report.Incremental
	if got := k.Take("n1", bad, now); got != progress.Invalid {
		t.Errorf("a reader without the log that follows it: %s", got)
	}
}

// Age is by the clock of whoever looks, from the second report on; only of the first one its own node's clock tells it.
func TestAgeIsByOneClock(t *testing.T) {
	t.Parallel()
	var k progress.Tracker
	k.Open(head(1, job.Running))
	age := func(at time.Time) time.Duration { return k.Of("shop", at)["db-1"].Age }
	e := reported(1, 1, "x")
	e.Observed = now.Add(-time.Minute)
	k.Take("n1", e, now)
	if got := age(now); got != time.Minute {
		t.Errorf("found a minute after it was made: %s old", got)
	}
	e.Sequence++
	k.Take("n1", e, now.Add(time.Second))
	if got := age(now.Add(2 * time.Second)); got != time.Second {
		t.Errorf("seen a second ago, by a clock that is a minute behind: %s old", got)
	}
	k.Take("n1", e, now.Add(time.Hour)) // the same again makes nothing young
	if got := age(now.Add(time.Hour)); got != time.Hour-time.Second {
		t.Errorf("not heard of for an hour: %s old", got)
	}
}
