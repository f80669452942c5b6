package job

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
)

// State is what the leader knows of one job. It is a value: Step returns a new one and never changes the old. Everything
// that must survive the leader is in the head record; the rest is gathered again by a successor.
type State struct {
	Job  string `json:"job"`
	Term uint64 `json:"term"`
	// Head is the record as last read or written, nil when there is none; valid once Known.
	Head     *Head  `json:"head"`
	Revision uint64 `json:"revision"`
	Known    bool   `json:"known"`
	// Writing is the record whose write is under way; at most one is. Say holds what becomes true with it.
	Writing *Head    `json:"writing,omitempty"`
	Say     []Notice `json:"say,omitempty"`
	// Unsure says that nobody knows what became of that write: the record is being read back.
	Unsure bool `json:"unsure,omitempty"`
	// StaleSince is when reads below Revision began.
	StaleSince time.Time `json:"staleSince,omitzero"`
	// Deposed says that a newer term was found: nothing is done any more.
	Deposed bool `json:"deposed,omitempty"`

	Intent *Intent `json:"intent,omitempty"`
	// Life is a fresh random id for the next life.
	Life string `json:"life,omitempty"`
	Spec *Spec  `json:"spec,omitempty"`
	// Chain are the manifests from the committed one to the durable one, oldest first; valid when its last is the
	// head's durable.
	Chain []epoch.Link `json:"chain,omitempty"`

	Nodes      []LiveNode `json:"nodes,omitempty"`
	NodesKnown bool       `json:"nodesKnown"`
	Settled    bool       `json:"settled"`
	Roster     roster     `json:"roster,omitzero"`

	// Busy are the effects under way, Hold those that failed with the time before which they are not issued again.
	Busy map[Op]bool      `json:"busy,omitempty"`
	Hold map[Op]time.Time `json:"hold,omitempty"`

	Attempt Attempt `json:"attempt"`
	// Dropped is the fence up to which the data streams of a job at rest are gone; Erased the life whose records are.
	Dropped fence.Token `json:"dropped,omitempty"`
	Erased  string      `json:"erased,omitempty"`
	// Collected is the committed epoch of the last collection of garbage, CollectAt the earliest time of the next.
	Collected epoch.ID  `json:"collected,omitempty"`
	CollectAt time.Time `json:"collectAt,omitzero"`
	// ReleaseAfter is the earliest time at which another process is asked to drop external resources.
	ReleaseAfter time.Time `json:"releaseAfter,omitzero"`
}

// Attempt is what the leader has gathered for the head's fence.
type Attempt struct {
	Fence fence.Token `json:"fence"`
	// Began is when this leader began to wait for the attempt's next step.
	Began   time.Time        `json:"began,omitzero"`
	Streams bool             `json:"streams,omitempty"`
	Plan    *plan.Deployment `json:"plan,omitempty"`
	// Stored is the plan that is stored but not yet in the head.
	Stored *PlanRef `json:"stored,omitempty"`

	Ready     map[plan.SubtaskID]ReadyFact `json:"ready,omitempty"`
	Acks      map[plan.SubtaskID]epoch.Ack `json:"acks,omitempty"`
	Committed map[plan.SubtaskID]epoch.ID  `json:"committed,omitempty"`
	Waiting   map[plan.SubtaskID]Trouble   `json:"waiting,omitempty"`
	Drained   map[plan.SubtaskID]bool      `json:"drained,omitempty"`
	// Input is the epoch that readers have something new for: the last barrier one of them had passed, plus one. Early
	// is the same for writers that want an epoch at once.
	Input epoch.ID `json:"input,omitempty"`
	Early epoch.ID `json:"early,omitempty"`
	// Triggered is when the last epoch was triggered, by this leader's clock.
	Triggered time.Time `json:"triggered,omitzero"`
	// Calm counts the durable epochs in a row in which nothing had moved.
	Calm int `json:"calm,omitempty"`
	// Cut is the manifest being stored, Manifest its stored form.
	Cut      *Cut     `json:"cut,omitempty"`
	Manifest *Durable `json:"manifest,omitempty"`
	// Restoring is the restore that follows this attempt.
	Restoring *Restoring `json:"restoring,omitempty"`
	// Barred says why it cannot be carried out.
	Barred string `json:"barred,omitempty"`
	// Trouble is the first reason to give the attempt up.
	Trouble *cause `json:"trouble,omitempty"`
}

// Cut is a manifest with its bytes: a retry must store the same ones.
type Cut struct {
	Ref      epoch.Ref       `json:"ref"`
	Manifest *epoch.Manifest `json:"manifest"`
	Bytes    []byte          `json:"-"`
}

// cause is why an attempt is given up.
type cause struct {
	Kind   RestartKind `json:"kind"`
	Reason Reason      `json:"reason"`
	// Final fails the job instead of starting another attempt.
	Final bool `json:"final,omitempty"`
}

// NewState is a leader that knows nothing of the job yet.
func NewState(name string, term uint64) State { return State{Job: name, Term: term} }

// draft copies the head for a change. Maps and slices inside are replaced, never changed.
func (s *State) draft() Head { return *s.Head }

// settings are those of the spec; before it has been read nothing that needs them is decided.
func (s *State) settings() Settings { return s.Spec.Settings }

// newest is the record that counts for facts: the one under way if there is one, because nodes may see it first.
func (s *State) newest() *Head {
	if s.Writing != nil {
		return s.Writing
	}
	return s.Head
}

// chained reports whether Chain describes the head's durable epoch.
func (s *State) chained() bool {
	if s.Head.Durable == nil {
		return true
	}
	n := len(s.Chain)
	return n > 0 && s.Chain[n-1].Ref == s.Head.Durable.Ref
}

// last is the newest durable manifest, nil before the first.
func (s *State) last() *epoch.Manifest {
	if s.Head.Durable == nil || len(s.Chain) == 0 {
		return nil
	}
	return s.Chain[len(s.Chain)-1].Manifest
}

// ask issues an effect unless it is under way or on hold.
func (s *State) ask(op Op, now time.Time, e Effect) []Effect {
	if s.Busy[op] || now.Before(s.Hold[op]) {
		return nil
	}
	s.Busy = with(s.Busy, op, true)
	return []Effect{e}
}

// answered notes that an effect is no longer under way.
func (s *State) answered(op Op) {
	s.Busy = without(s.Busy, op)
	s.Hold = without(s.Hold, op)
}

// write issues the record. Sequences of the intent that mean nothing to a life that is under way are marked as
// answered, so that they do not take effect later.
func (s *State) write(m Moment, h Head, say ...Notice) []Effect {
	h.Version, h.Term, h.Updated = HeadVersion, s.Term, m.At
	if s.Intent != nil && s.Head != nil && !s.Head.Phase.AtRest() {
		h.Handled.Start = max(h.Handled.Start, s.Intent.Start)
		h.Handled.Resume = max(h.Handled.Resume, s.Intent.Resume)
	}
	s.Writing, s.Say = &h, say
	return []Effect{WriteHead{Head: h, Expect: s.Revision}}
}

// notice tells what a record means.
func (s *State) notice(kind NoticeKind, m Moment, h *Head) Notice {
	n := Notice{Kind: kind, Job: s.Job, Life: h.Life, Phase: h.Phase, Term: s.Term, Fence: h.Fence, Reason: h.Reason, At: m.At}
	if h.Durable != nil {
		n.Epoch = h.Durable.Epoch
	}
	return n
}

// sameHead compares two records as they are stored.
func sameHead(a, b *Head) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// with and without change a copy of a map.
func with[K comparable, V any](m map[K]V, k K, v V) map[K]V {
	c := maps.Clone(m)
	if c == nil {
		c = make(map[K]V, 1)
	}
	c[k] = v
	return c
}

func without[K comparable, V any](m map[K]V, k K) map[K]V {
	if _, ok := m[k]; !ok {
		return m
	}
	c := maps.Clone(m)
	delete(c, k)
	return c
}

// of lists the plan's subtasks with a role.
func (a *Attempt) of(role plan.Role) []plan.SubtaskID {
	return slices.DeleteFunc(a.Plan.Subtasks(), func(id plan.SubtaskID) bool {
		v, _ := a.Plan.Vertex(id.Vertex)
		return v.Role != role
	})
}
