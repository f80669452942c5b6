package notify

import (
	"encoding/json"
	"slices"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/progress"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/services/progress/internal/view"
)

// Kind is what an event tells. Beside these the kinds of [job.NoticeKind] are told as the leader words them.
type Kind string

// The kinds that are concluded from views.
const (
	// CaughtUp: every source of the job has been read up to its head, for the first time in this attempt.
	CaughtUp Kind = "caught_up"
	// Why: what keeps the job from moving is other than it was; without findings it moves again.
	Why Kind = "why"
)

// EventVersion is that of [Event].
const EventVersion = 1

// Event is the body of a request.
type Event struct {
	Version int `json:"version"`
	// ID is the same whenever the event is sent again.
	ID    string    `json:"id"`
	Kind  Kind      `json:"kind"`
	Job   string    `json:"job"`
	Life  string    `json:"life,omitempty"`
	Fence uint64    `json:"fence"`
	Phase job.Phase `json:"phase,omitempty"`
	At    time.Time `json:"at"`
	// Findings are what keeps the job from moving, with [Why].
	Findings []progress.Finding `json:"findings,omitempty"`
	// Notice is what the leader told, with its kinds.
	Notice *job.Notice `json:"notice,omitempty"`
}

// noticed makes the event of a stored notice; ok is false when it cannot be read.
func noticed(e *bus.Entry) (ev Event, ok bool) {
	var n job.Notice
	if json.Unmarshal(e.Value, &n) != nil || n.Job == "" {
		return Event{}, false
	}
	return Event{Version: EventVersion, Kind: Kind(n.Kind), Job: n.Job, Life: n.Life, Fence: uint64(n.Fence), Phase: n.Phase, At: n.At, Notice: &n}, true
}

// told is what was told of a job last.
type told struct {
	Life     string `json:"life"`
	Fence    uint64 `json:"fence"`
	CaughtUp bool   `json:"caughtUp,omitempty"`
	// Why are the findings by kind and whom they are about.
	Why []string `json:"why,omitempty"`
}

// of is what was told of the attempt that a job is at: that it has caught up is told of each attempt, why it does not move of its
// life.
func (t told) of(j *view.Job) told {
	next := told{Life: j.Life, Fence: j.Fence}
	if t.Life == j.Life {
		next.Why, next.CaughtUp = t.Why, t.CaughtUp && t.Fence == j.Fence
	}
	return next
}

// event is one of a job as it is seen.
func event(k Kind, j *view.Job, at time.Time) Event {
	ev := Event{Version: EventVersion, Kind: k, Job: j.Job, Life: j.Life, Fence: j.Fence, Phase: j.Phase, At: at}
	if k == Why {
		for _, f := range j.Findings {
			if !f.Note {
				ev.Findings = append(ev.Findings, f)
			}
		}
	}
	return ev
}

func why(j *view.Job) []string {
	var all []string
	for _, f := range j.Findings {
		if !f.Note {
			all = append(all, string(f.Kind)+" "+f.About)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// level reports whether every source was read up to its head, and everything durable is committed.
func level(j *view.Job) bool {
	for i := range j.Sources {
		s := &j.Sources[i]
		if s.Lifecycle != report.Incremental || s.Summary.Missing+s.Summary.Stale > 0 {
			return false
		}
		for k := range s.Readers {
			if n, ok := s.Readers[k].Behind.Value.Get(); !s.Readers[k].Copies && (!ok || n > 0) {
				return false
			}
		}
	}
	return len(j.Sources) > 0 && j.Phase == job.Running && j.Epoch.Durable > 0 && j.Epoch.Committed == j.Epoch.Durable
}
