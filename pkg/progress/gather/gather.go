// Package gather reads what is known of jobs from the bus, for package progress.
//
// Role: the one reader behind the command line and the progress service, so that both say the same.
//
// Invariants: it reads only; what is immutable (plans, specs, manifests) is read once; a part that cannot be read is left
// out, only the head, the spec, the reports and the facts are errors.
//
// Failure: an observation is of about one moment: its parts are read one after the other, and each that belongs to an attempt
// says to which.
//
// Source: docs/progress.md.
package gather

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/progress"
	"weir.dev/weir/pkg/registry"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/spec"
)

// Reader reads observations. It is for one goroutine.
type Reader struct {
	conn *bus.Conn
	reg  *registry.Registry
	jobs map[string]*records
}

// records are what a job's head has named and does not change.
type records struct {
	life      string
	digest    string
	spec      *spec.Job
	planKey   string
	plan      *plan.Deployment
	manifests map[epoch.ID]*epoch.Manifest
	// history is what was kept when the newest epoch in it became durable: before the next one nothing is added to it.
	history []epoch.Link
}

// New makes a reader; it owns nothing.
func New(conn *bus.Conn, reg *registry.Registry) *Reader {
	return &Reader{conn: conn, reg: reg, jobs: make(map[string]*records)}
}

// Heads reads the heads of all jobs that are not deleted, by name.
func (r *Reader) Heads(ctx context.Context) ([]*job.Head, error) {
	views, err := r.reg.Heads(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the heads: %w", err)
	}
	var heads []*job.Head
	for _, v := range views {
		if v.Head != nil && v.Head.Phase != job.Deleted {
			heads = append(heads, v.Head)
		}
	}
	slices.SortFunc(heads, func(a, b *job.Head) int { return strings.Compare(a.Job, b.Job) })
	return heads, nil
}

// Reports reads the last batch of every node. One that cannot be read, of another version, is left out; bad counts those.
func (r *Reader) Reports(ctx context.Context) (batches []report.Batch, bad int, err error) {
	entries, err := r.conn.Reports(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("read progress reports: %w", err)
	}
	for _, e := range entries {
		b, err := report.ParseBatch(e.Value)
		if err != nil {
			bad++
			continue
		}
		batches = append(batches, b)
	}
	return batches, bad, nil
}

// Nodes reads the live processes; never nil without an error.
func (r *Reader) Nodes(ctx context.Context) ([]job.NodeLease, error) {
	nodes, err := r.reg.Nodes(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the nodes: %w", err)
	}
	return append([]job.NodeLease{}, nodes...), nil
}

// Look reads everything about one job at once, for somebody who looks now and then.
func (r *Reader) Look(ctx context.Context, h *job.Head) (progress.Observation, error) {
	batches, _, err := r.Reports(ctx)
	if err != nil {
		return progress.Observation{}, err
	}
	nodes, err := r.Nodes(ctx)
	if err != nil {
		return progress.Observation{}, err
	}
	now := time.Now()
	var t progress.Tracker
	t.Open(h)
	for _, b := range batches {
		for _, e := range b.Reports {
			t.Take(b.Node, e, now)
		}
	}
	return r.Observe(ctx, h, t.Of(h.Job, now), nodes)
}

// Observe reads what belongs to a head, beside reports and nodes.
func (r *Reader) Observe(ctx context.Context, h *job.Head, reports map[string]progress.Sample, nodes []job.NodeLease) (progress.Observation, error) {
	o := progress.Observation{Head: h, Reports: reports, Nodes: nodes}
	known := r.records(h)
	if err := r.immutable(ctx, h, known); err != nil {
		return o, err
	}
	o.Spec, o.Plan = known.spec, known.plan
	if h.Durable != nil {
		o.Durable = r.manifest(ctx, h, known, h.Durable.Epoch)
		o.Committed = r.manifest(ctx, h, known, h.Committed)
	}
	facts, err := r.conn.Facts(ctx, h.Job, h.Fence)
	if err != nil {
		return o, fmt.Errorf("read facts of %s: %w", h.Job, err)
	}
	o.Acks, o.Commits = sort(facts, h)
	if o.Letters, err = r.conn.CountLetters(ctx, h.Job); err != nil {
		return o, fmt.Errorf("count the dead letters of %s: %w", h.Job, err)
	}
	if h.Phase == job.Starting || h.Phase.Active() && restartedLately(h) {
		o.Recovery = r.recovery(ctx, h)
	}
	o.At = time.Now().UTC()
	return o, nil
}

// Forget drops what is known of jobs that are no more.
func (r *Reader) Forget(gone func(name string) bool) {
	for name := range r.jobs {
		if gone(name) {
			delete(r.jobs, name)
		}
	}
}

func (r *Reader) records(h *job.Head) *records {
	k := r.jobs[h.Job]
	if k == nil || k.life != h.Life {
		k = &records{life: h.Life, manifests: make(map[epoch.ID]*epoch.Manifest)}
		r.jobs[h.Job] = k
	}
	return k
}

func (r *Reader) immutable(ctx context.Context, h *job.Head, k *records) error {
	if k.digest != h.SpecDigest {
		j, err := r.reg.Spec(ctx, h.Job, h.SpecDigest)
		if err != nil {
			return fmt.Errorf("read the spec of %s: %w", h.Job, err)
		}
		k.digest, k.spec = h.SpecDigest, j
	}
	switch {
	case h.Plan == nil:
		k.planKey, k.plan = "", nil
	case k.planKey != h.Plan.Key:
		k.planKey, k.plan = "", nil
		if d, err := r.reg.Plan(ctx, *h.Plan); err == nil {
			k.planKey, k.plan = h.Plan.Key, d
		}
	}
	return nil
}

// manifest reads the manifest of an epoch that the head's chain reaches; nil when there is none or it cannot be read now.
func (r *Reader) manifest(ctx context.Context, h *job.Head, k *records, id epoch.ID) *epoch.Manifest {
	if id == 0 {
		return nil
	}
	if m := k.manifests[id]; m != nil {
		return m
	}
	links, err := r.reg.Chain(ctx, h.Job, h.Durable.Ref, id)
	if err != nil {
		return nil
	}
	for _, l := range links {
		k.manifests[l.Ref.Epoch] = l.Manifest
	}
	for known := range k.manifests {
		if known < h.Committed {
			delete(k.manifests, known)
		}
	}
	return k.manifests[id]
}

func sort(facts []bus.Entry, h *job.Head) (map[plan.SubtaskID]epoch.Ack, map[plan.SubtaskID]job.CommittedFact) {
	acks, commits := make(map[plan.SubtaskID]epoch.Ack), make(map[plan.SubtaskID]job.CommittedFact)
	for _, f := range facts {
		_, fence, kind, _, err := bus.ParseAckSubject(f.Key)
		if err != nil || fence != h.Fence {
			continue
		}
		switch kind {
		case "ack":
			var a epoch.Ack
			if json.Unmarshal(f.Value, &a) == nil {
				acks[a.Subtask] = a
			}
		case "committed":
			var c job.CommittedFact
			if json.Unmarshal(f.Value, &c) == nil {
				commits[c.Subtask] = c
			}
		}
	}
	return acks, commits
}

// How far back a recovery is looked for, and for how long the event stream is asked.
const (
	recoveriesSince = 10 * time.Minute
	eventPatience   = 2 * time.Second
)

func restartedLately(h *job.Head) bool {
	n := len(h.Restarts)
	return n > 0 && time.Since(h.Restarts[n-1].At) < time.Minute
}

// recovery reads the newest recovery of the job's life that the leader told of.
func (r *Reader) recovery(ctx context.Context, h *job.Head) *job.Notice {
	ctx, cancel := context.WithTimeout(ctx, eventPatience)
	defer cancel()
	w := r.conn.WatchEvents(ctx, h.Job, time.Now().Add(-recoveriesSince))
	defer w.Close()
	var newest *job.Notice
	for u := range w.Updates() {
		switch u.Kind {
		case bus.Put:
			var n job.Notice
			if json.Unmarshal(u.Entry.Value, &n) == nil && n.Kind == job.NoticeRecovery && n.Life == h.Life {
				newest = &n
			}
		case bus.CaughtUp:
			return newest
		case bus.Resync:
			return nil
		case bus.Deleted, bus.Expired: // nobody removes single events
		}
	}
	return newest
}

// Epochs reads the newest epochs of a job, newest first.
func (r *Reader) Epochs(ctx context.Context, h *job.Head, limit int) (progress.EpochList, error) {
	if h.Durable == nil {
		return progress.ListEpochs(h, nil, limit), nil
	}
	k := r.records(h)
	if n := len(k.history); n == 0 || k.history[n-1].Ref != h.Durable.Ref {
		links, err := r.reg.History(ctx, h.Job, h.Durable.Ref)
		if err != nil {
			return progress.EpochList{}, fmt.Errorf("read the epochs of %s: %w", h.Job, err)
		}
		k.history = links
	}
	return progress.ListEpochs(h, k.history, limit), nil
}
