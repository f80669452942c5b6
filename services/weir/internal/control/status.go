package control

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/spec"
)

// staleAfter is the age at which a report is called old: nodes send one each second.
const staleAfter = 5 * time.Second

// Status is what is known of one job at one moment.
type Status struct {
	Job    string     `json:"job"`
	Life   string     `json:"life"`
	Phase  job.Phase  `json:"phase"`
	Fence  uint64     `json:"fence"`
	Term   uint64     `json:"term"`
	Reason job.Reason `json:"reason"`
	Epoch  Epochs     `json:"epoch"`
	// Guarantee is what was asked for and what holds.
	Guarantee Guarantee `json:"guarantee"`
	// Sources and Sinks are in the order of the spec.
	Sources []Source `json:"sources"`
	Sinks   []Sink   `json:"sinks"`
	// Why says in words what keeps the job from moving; empty when nothing does.
	Why []string  `json:"why"`
	At  time.Time `json:"at"`
}

// Epochs is how far the job is.
type Epochs struct {
	InFlight  uint64 `json:"inFlight,omitempty"`
	Durable   uint64 `json:"durable"`
	Committed uint64 `json:"committed"`
	// Skipped counts epochs given up in a row.
	Skipped   int       `json:"skipped,omitempty"`
	DurableAt time.Time `json:"durableAt,omitzero"`
}

// Source is the progress of one source.
type Source struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// Lifecycle is that of the slowest reader; UNKNOWN while a reader does not report.
	Lifecycle report.Lifecycle `json:"lifecycle"`
	Readers   []Reader         `json:"readers"`
	// Enumerator is absent while it does not report.
	Enumerator *report.Enumerator `json:"enumerator,omitempty"`
	Tables     []report.Table     `json:"tables"`
}

// Reader is one reader's report with its freshness; age is not accuracy.
type Reader struct {
	Subtask string `json:"subtask"`
	Node    string `json:"node"`
	// Age is since the report was made, by the clocks of two hosts.
	Age time.Duration `json:"age"`
	report.Reader
}

// Sink is the progress of one sink.
type Sink struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Mode string `json:"mode"`
	// Claimed is what the target's ledger held when this attempt began.
	Claimed *job.LedgerRow `json:"claimed,omitempty"`
	// Waiting is why commits do not go through, and since when.
	Waiting *job.Trouble `json:"waiting,omitempty"`
	// Dead counts the dead letters that are there: rows set aside and neither replayed nor discarded.
	Dead uint64 `json:"dead,omitempty"`
}

// Status reads everything about one job.
func (c *Client) Status(ctx context.Context, name string) (Status, error) {
	h, j, err := c.current(ctx, name)
	if err != nil {
		return Status{}, err
	}
	reports, err := c.reports(ctx, h)
	if err != nil {
		return Status{}, err
	}
	waiting, err := c.waiting(ctx, h)
	if err != nil {
		return Status{}, err
	}
	dead, err := c.conn.CountLetters(ctx, name)
	if err != nil {
		return Status{}, err
	}
	s := status(h, j, reports, waiting, time.Now().UTC())
	s.Guarantee = c.guarantee(ctx, h, j)
	for i := range s.Sinks {
		s.Sinks[i].Dead = dead[s.Sinks[i].Name]
	}
	return s, nil
}

// sample is one report with the node that made it.
type sample struct {
	node string
	report.Envelope
}

// reports reads the latest reports of the job's own attempt, by subtask. Reports of an older attempt are left out.
func (c *Client) reports(ctx context.Context, h *job.Head) (map[string]sample, error) {
	entries, err := c.conn.Reports(ctx)
	if err != nil {
		return nil, fmt.Errorf("read progress reports: %w", err)
	}
	found := make(map[string]sample)
	for _, e := range entries {
		b, err := report.ParseBatch(e.Value)
		if err != nil {
			return nil, err
		}
		for _, r := range b.Reports {
			if r.Job != h.Job || r.Fence != uint64(h.Fence) {
				continue
			}
			if old, ok := found[r.Subtask]; !ok || r.Sequence > old.Sequence {
				found[r.Subtask] = sample{node: b.Node, Envelope: r}
			}
		}
	}
	return found, nil
}

// waiting reads why committers retry.
func (c *Client) waiting(ctx context.Context, h *job.Head) (map[plan.VertexID]job.Trouble, error) {
	facts, err := c.conn.Facts(ctx, h.Job, h.Fence)
	if err != nil {
		return nil, fmt.Errorf("read facts of %s: %w", h.Job, err)
	}
	found := make(map[plan.VertexID]job.Trouble)
	for _, f := range facts {
		var fact job.CommittedFact
		if json.Unmarshal(f.Value, &fact) == nil && fact.Waiting != nil {
			found[fact.Subtask.Vertex] = *fact.Waiting
		}
	}
	return found, nil
}

func status(h *job.Head, j *spec.Job, reports map[string]sample, waiting map[plan.VertexID]job.Trouble, now time.Time) Status {
	s := Status{
		Job: h.Job, Life: h.Life, Phase: h.Phase, Fence: uint64(h.Fence), Term: h.Term, Reason: h.Reason, At: now,
		Epoch: Epochs{Committed: uint64(h.Committed), Skipped: h.Skipped}, Why: []string{},
	}
	if h.InFlight != nil {
		s.Epoch.InFlight = uint64(h.InFlight.Epoch)
	}
	if h.Durable != nil {
		s.Epoch.Durable, s.Epoch.DurableAt = uint64(h.Durable.Epoch), h.Durable.At
	}
	for _, src := range j.Sources {
		s.Sources = append(s.Sources, sourceStatus(src, reports, now))
	}
	for _, snk := range j.Sinks {
		k := Sink{Name: snk.Name, Type: snk.Type, Mode: string(snk.Mode)}
		if row, ok := h.Claimed[snk.Name]; ok {
			k.Claimed = &row
		}
		if t, ok := waiting[plan.CommitterOf(snk.Name)]; ok {
			k.Waiting = &t
		}
		s.Sinks = append(s.Sinks, k)
	}
	s.Why = append(s.Why, why(h, s, now)...)
	return s
}

func sourceStatus(src spec.Source, reports map[string]sample, now time.Time) Source {
	out := Source{Name: src.Name, Type: src.Type, Lifecycle: report.Unknown, Readers: []Reader{}, Tables: []report.Table{}}
	n := src.Config.Parallelism()
	for i := range n {
		id := plan.SubtaskID{Vertex: plan.VertexID(src.Name), Index: i}
		r, ok := reports[id.String()]
		if !ok || r.Reader == nil {
			continue
		}
		out.Readers = append(out.Readers, Reader{Subtask: id.String(), Node: r.node, Age: now.Sub(r.Observed), Reader: *r.Reader})
		out.Tables = append(out.Tables, r.Reader.Tables...)
	}
	if e, ok := reports[plan.SubtaskID{Vertex: plan.EnumeratorOf(src.Name)}.String()]; ok {
		out.Enumerator = e.Enumerator
	}
	if len(out.Readers) == n {
		out.Lifecycle = slowest(out.Readers)
	}
	slices.SortFunc(out.Tables, func(a, b report.Table) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// slowest is the earliest lifecycle among readers.
func slowest(readers []Reader) report.Lifecycle {
	order := []report.Lifecycle{report.Unknown, report.Snapshot, report.CatchUp, report.Incremental}
	at := len(order) - 1
	for _, r := range readers {
		at = min(at, max(0, slices.Index(order, r.Lifecycle)))
	}
	return order[at]
}

// why collects the evidence for a job that does not move, in words.
func why(h *job.Head, s Status, now time.Time) []string {
	var w []string
	say := func(format string, v ...any) { w = append(w, fmt.Sprintf(format, v...)) }
	switch {
	case h.Phase == job.Failed:
		say("failed: %s %s", h.Reason.Code, h.Reason.Text)
		if h.Reason.Remedy != "" {
			say("remedy: %s", h.Reason.Remedy)
		}
		return w
	case h.Phase.AtRest():
		return w
	case h.Phase == job.Starting && h.Reason.Text != "":
		say("starting: %s %s", h.Reason.Code, h.Reason.Text)
	case h.Phase == job.Starting:
		say("starting: attempt %d is being deployed", h.Fence)
	}
	for _, k := range s.Sinks {
		if k.Waiting != nil {
			say("sink %s takes no commits since %s: %s", k.Name, k.Waiting.Since.Format(time.RFC3339), faultLine(k.Waiting.Fault))
		}
	}
	if h.Skipped > 0 {
		say("%d epochs in a row were skipped", h.Skipped)
	}
	if f := h.InFlight; f != nil && now.Sub(f.Triggered) > staleAfter {
		say("epoch %d is under way since %s", f.Epoch, now.Sub(f.Triggered).Round(time.Second))
	}
	for _, src := range s.Sources {
		for _, r := range src.Readers {
			if r.Age > staleAfter {
				say("the report of %s is %s old", r.Subtask, r.Age.Round(time.Second))
			}
		}
	}
	return w
}

// faultLine is the one line of an error object.
func faultLine(raw json.RawMessage) string {
	var f struct{ Code, What, Why string }
	if json.Unmarshal(raw, &f) != nil {
		return "unknown"
	}
	return strings.TrimRight(f.Code+" "+f.What+": "+f.Why, ": ")
}

// Jobs reads the heads of all jobs that are not deleted, by name.
func (c *Client) Jobs(ctx context.Context) ([]job.Head, error) {
	views, err := c.reg.Heads(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the heads: %w", err)
	}
	heads := []job.Head{}
	for _, v := range views {
		if v.Head != nil && v.Head.Phase != job.Deleted {
			heads = append(heads, *v.Head)
		}
	}
	slices.SortFunc(heads, func(a, b job.Head) int { return strings.Compare(a.Job, b.Job) })
	return heads, nil
}

// Spec reads the spec a head runs.
func (c *Client) Spec(ctx context.Context, h *job.Head) (*spec.Job, error) {
	return c.reg.Spec(ctx, h.Job, h.SpecDigest)
}

// current reads a job's head and the spec it runs.
func (c *Client) current(ctx context.Context, name string) (*job.Head, *spec.Job, error) {
	h, err := c.Head(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	j, err := c.Spec(ctx, h)
	if err != nil {
		return nil, nil, fmt.Errorf("read the spec of %s: %w", name, err)
	}
	return h, j, nil
}

// History reads every manifest that is still kept, oldest first.
func (c *Client) History(ctx context.Context, h *job.Head) ([]epoch.Link, error) {
	if h.Durable == nil {
		return nil, nil
	}
	return c.reg.History(ctx, h.Job, h.Durable.Ref)
}
