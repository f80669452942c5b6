package progress

import (
	"time"

	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/report"
)

// Verdict is what became of a report.
type Verdict string

// The verdicts.
const (
	// Taken: it is the newest of its subtask.
	Taken Verdict = "taken"
	// Repeated: it is the one that is there.
	Repeated Verdict = "repeated"
	// OldSequence: a newer one of the same attempt is there.
	OldSequence Verdict = "old_sequence"
	// OldFence: it is of an attempt that is over.
	OldFence Verdict = "old_fence"
	// NoScope: its job is not open: over, deleted or not begun.
	NoScope Verdict = "no_scope"
	// Invalid: it contradicts itself.
	Invalid Verdict = "invalid"
)

// Refused reports whether a verdict is worth counting as a refusal.
func (v Verdict) Refused() bool { return v != Taken && v != Repeated }

// Tracker keeps the newest report of each subtask of the jobs that are open. A job is open while its head says that an attempt
// is under way; only reports of that attempt are taken, so that a late one cannot bring anything back. The zero Tracker is
// ready. It is for one goroutine.
type Tracker struct {
	jobs map[string]*scope
}

// scope is the attempt whose reports are taken.
type scope struct {
	fence  fence.Token
	latest map[string]kept
}

type kept struct {
	Sample

	// seen is when this report was first seen; for the first one of a subtask when it was made.
	seen time.Time
}

// Open takes what a head says: a new attempt begins with nothing, a job at rest is closed. It reports whether anything of an
// older attempt was forgotten.
func (t *Tracker) Open(h *job.Head) (forgot bool) {
	s := t.jobs[h.Job]
	if h.Phase.AtRest() {
		return t.Close(h.Job)
	}
	switch {
	case s == nil:
	case h.Fence == s.fence:
		return false
	case h.Fence < s.fence:
		return false // a head that is older than one that was seen
	}
	if t.jobs == nil {
		t.jobs = make(map[string]*scope)
	}
	t.jobs[h.Job] = &scope{fence: h.Fence, latest: make(map[string]kept)}
	return s != nil && len(s.latest) > 0
}

// Close forgets a job. It reports whether there was anything to forget.
func (t *Tracker) Close(name string) bool {
	s := t.jobs[name]
	delete(t.jobs, name)
	return s != nil && len(s.latest) > 0
}

// Jobs are the names of those that are open.
func (t *Tracker) Jobs() []string {
	names := make([]string, 0, len(t.jobs))
	for n := range t.jobs {
		names = append(names, n)
	}
	return names
}

// Take takes a report in that was found at now, or refuses it.
func (t *Tracker) Take(node string, e report.Envelope, now time.Time) Verdict {
	if e.Validate() != nil {
		return Invalid
	}
	s := t.jobs[e.Job]
	switch {
	case s == nil, e.Fence > uint64(s.fence):
		return NoScope
	case e.Fence < uint64(s.fence):
		return OldFence
	}
	old, there := s.latest[e.Subtask]
	switch {
	case there && e.Sequence == old.Sequence:
		return Repeated
	case there && !e.Newer(&old.Envelope):
		return OldSequence
	}
	k := kept{Sample: Sample{Envelope: e, Node: node}, seen: now}
	if !there {
		// How long it lay there before it was looked at, only its own node's clock tells.
		k.seen = e.Observed
	}
	s.latest[e.Subtask] = k
	return Taken
}

// Of returns the newest reports of a job's attempt with their age at now.
func (t *Tracker) Of(name string, now time.Time) map[string]Sample {
	out := make(map[string]Sample)
	if s := t.jobs[name]; s != nil {
		for id, k := range s.latest {
			k.Age = now.Sub(k.seen)
			out[id] = k.Sample
		}
	}
	return out
}

// TaskIndex is the number of a reader within its source.
func TaskIndex(subtask string) int {
	id, err := plan.ParseSubtask(subtask)
	if err != nil {
		return 0
	}
	return id.Index
}
