package explain

import (
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/spec"
)

// Explanation is the plan of one job as people read it.
type Explanation struct {
	Job         string         `json:"job"`
	Guarantee   plan.Guarantee `json:"guarantee"`
	Fingerprint string         `json:"planFingerprint"`
	Vertices    []Vertex       `json:"vertices"`
	Hops        []Hop          `json:"hops"`
	// Weakest is the hop that promises least; of several alike the first.
	Weakest  Hop         `json:"weakest"`
	Subtasks int         `json:"subtasks"`
	Channels int         `json:"channels"`
	Window   plan.Window `json:"window"`
}

// Vertex is a stage of the plan, or a system outside of it at either end.
type Vertex struct {
	ID   string `json:"id"`
	Role string `json:"role"`
	// Service is the one that runs it, as in "weir serve SERVICE"; empty for a system outside.
	Service     string `json:"service,omitempty"`
	Parallelism int    `json:"parallelism,omitempty"`
}

// outside is the role of databases and other systems that Weir does not run.
const outside = "outside"

// Hop is what travels between two vertices.
type Hop struct {
	From    string         `json:"from"`
	To      string         `json:"to"`
	Carries string         `json:"carries"`
	Spread  plan.Partition `json:"spread,omitempty"`
	// Subjects is where it can be seen on the bus. The fence is not known before the job runs.
	Subjects string `json:"subjects,omitempty"`
	Channels int    `json:"channels,omitempty"`
	// Promise is the guarantee in one word, Why what makes it true.
	Promise string `json:"promise"`
	Why     string `json:"why"`
	// Back marks the way from readers to their enumerator, against the flow.
	Back bool `json:"back,omitempty"`
}

// New explains a job. The errors are those of a submit: of [plan.FromSpec] and [plan.WindowFor].
func New(j *spec.Job) (*Explanation, error) {
	model, err := plan.FromSpec(j)
	if err != nil {
		return nil, err
	}
	p := plan.NewPartitioned(model)
	w, err := plan.WindowFor(&p)
	if err != nil {
		return nil, err
	}
	e := &Explanation{
		Job: j.Name, Guarantee: p.Guarantee, Fingerprint: p.Fingerprint(), Window: w, Subtasks: len(p.Subtasks()),
	}
	e.sources(&p, j.Sources)
	e.rows(&p)
	e.sinks(&p, j.Sinks)
	for _, x := range p.Edges {
		e.Channels += len(p.Channels(x))
	}
	e.Weakest = slices.MaxFunc(e.Hops, func(a, b Hop) int { return weakness(a.Promise) - weakness(b.Promise) })
	return e, nil
}

// exact is the promise of a hop between Weir's own processes.
const exact = "EXACTLY_ONCE"

// weakness orders promises: what a sink can do is never more than what brings the rows there.
func weakness(promise string) int {
	order := []string{
		exact, string(plan.Replayable), string(plan.Transactional), string(plan.Ordered), string(plan.Idempotent),
		string(plan.AppendOnly), string(plan.NotReplayable),
	}
	return slices.Index(order, promise)
}

func (e *Explanation) sources(p *plan.Partitioned, sources spec.Sources) {
	for _, v := range p.Vertices {
		if v.Role != plan.Reader {
			continue
		}
		at := slices.IndexFunc(sources, func(s spec.Source) bool { return s.Name == v.Name })
		kind := sources[at].Type
		replay, _ := plan.SourceReplay(kind)
		from, enum := outsideOf(v.Name, kind), plan.EnumeratorOf(v.Name)
		e.Vertices = append(e.Vertices, Vertex{ID: from, Role: outside}, inside(p, enum), inside(p, v.ID))
		e.Hops = append(e.Hops,
			Hop{
				From: from, To: string(v.ID), Carries: "snapshot and changes", Promise: string(replay),
				Why: "read again from the position of the last durable epoch; confirmed only when committed at every sink",
			},
			e.hop(p, plan.Edge{From: enum, To: v.ID, Partition: plan.Broadcast}, "orders",
				"in band with the barriers, so they belong to an epoch like rows"),
			e.hop(p, plan.Edge{From: v.ID, To: enum, Partition: plan.Rebalance, Feedback: true}, "reports",
				"kept in the state of the reader until the enumerator has them in its own"),
		)
	}
}

func (e *Explanation) rows(p *plan.Partitioned) {
	for _, x := range p.Edges {
		if to, _ := p.Vertex(x.To); to.Role == plan.Writer {
			e.Hops = append(e.Hops, e.hop(p, x, "rows and barriers",
				"fenced, numbered, aligned at barriers; both ends count and the sums must agree before an epoch is durable"))
		}
	}
}

func (e *Explanation) sinks(p *plan.Partitioned, sinks []spec.Sink) {
	for _, v := range p.Vertices {
		if v.Role != plan.Writer {
			continue
		}
		at := slices.IndexFunc(sinks, func(s spec.Sink) bool { return s.Name == v.Name })
		kind := sinks[at].Type
		level, _ := plan.LevelOf(sinks[at])
		commit, to := plan.CommitterOf(v.Name), outsideOf(v.Name, kind)
		e.Vertices = append(e.Vertices, inside(p, v.ID), inside(p, commit), Vertex{ID: to, Role: outside})
		e.Hops = append(e.Hops,
			Hop{
				From: string(v.ID), To: string(commit), Carries: "staged epochs", Promise: exact,
				Why: "staged out of sight and named by the manifest; an epoch that is not durable is never seen",
			},
			Hop{From: string(commit), To: to, Carries: "epochs", Promise: string(level), Why: reasons[level]},
		)
	}
}

var reasons = map[plan.Level]string{
	plan.Transactional: "rows and ledger become visible in one step; a repeated commit finds its epoch in the ledger",
	plan.Ordered:       "each row once and in order, but an epoch becomes visible row by row, or table by table",
	plan.Idempotent:    "a repeated row overwrites itself; readers can see it twice",
	plan.AppendOnly:    "a repeated row is there twice",
}

// outsideOf names the system at the other end of a source or sink.
func outsideOf(name, kind string) string { return name + ":" + kind }

func inside(p *plan.Partitioned, id plan.VertexID) Vertex {
	v, _ := p.Vertex(id)
	return Vertex{ID: string(id), Role: string(v.Role), Service: plan.ServiceOf(v.Capability), Parallelism: v.Parallelism}
}

func (e *Explanation) hop(p *plan.Partitioned, x plan.Edge, carries, why string) Hop {
	return Hop{
		From: string(x.From), To: string(x.To), Carries: carries, Spread: x.Partition, Back: x.Feedback,
		Subjects: subjects(p.Job, x), Channels: len(p.Channels(x)), Promise: exact, Why: why,
	}
}

// subjects is the pattern of the subjects of an edge. The form is the bus's own, with words where the attempt or the
// subtask decides.
func subjects(job string, x plan.Edge) string {
	s := bus.DataSubject(job, 1, plan.SubtaskID{Vertex: x.To}, plan.SubtaskID{Vertex: x.From})
	t := strings.Split(s, ".")
	t[3] = "<fence>"
	for _, i := range []int{4, 5} {
		t[i] = strings.TrimSuffix(t[i], "-0") + "-<n>"
	}
	return strings.Join(t, ".")
}

// Text is the explanation in lines for a terminal.
func (e *Explanation) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "job %s: %s, subtasks: %d, channels: %d, each with a window of %d KiB\n\n", e.Job, e.Guarantee, e.Subtasks, e.Channels, e.Window.Bytes>>10)
	for _, v := range e.Vertices {
		if v.Role == outside {
			fmt.Fprintf(&b, "%-24s outside\n", v.ID)
			continue
		}
		fmt.Fprintf(&b, "%-24s %-11s x%-3d weir serve %s\n", v.ID, v.Role, v.Parallelism, v.Service)
	}
	for _, h := range e.Hops {
		fmt.Fprintf(&b, "\n%s -> %s: %s, %s\n", h.From, h.To, h.Carries, h.Promise)
		if h.Subjects != "" {
			fmt.Fprintf(&b, "  %s, %s, channels: %d\n", h.Subjects, h.Spread, h.Channels)
		}
		fmt.Fprintf(&b, "  %s\n", h.Why)
	}
	fmt.Fprintf(&b, "\nweakest link: %s -> %s, %s: %s\n", e.Weakest.From, e.Weakest.To, e.Weakest.Promise, e.Weakest.Why)
	return b.String()
}
