// Package store keeps the latest progress records in the bucket weir_progress.
//
// Role: one key for each reader and enumerator and one summary for each source, for whoever looks with the tools of NATS:
// `nats kv get weir_progress <job>.<source>`.
//
// Invariants: the newest report wins, by fence and sequence, whichever instance writes; keys go when their job is at rest or
// gone, at the latest with the next sweep.
//
// Failure: nothing rests on these records; what a lost write leaves old is written again a second later.
//
// Source: docs/progress.md.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/progress"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/services/progress/internal/view"
)

// Version is that of [Record].
const Version = 1

// sweepEvery is the number of looks between two sweeps.
const sweepEvery = 15

// Record is one key's value: a report of a reader or enumerator, or a source's summary.
type Record struct {
	Version int       `json:"version"`
	Job     string    `json:"job"`
	Life    string    `json:"life"`
	Fence   uint64    `json:"fence"`
	At      time.Time `json:"at"`
	// Node and Report are set for readers and enumerators, Source for a summary.
	Node   string           `json:"node,omitempty"`
	Report *report.Envelope `json:"report,omitempty"`
	Source *progress.Source `json:"source,omitempty"`
}

// newer reports whether r replaces an older record.
func (r *Record) newer(old *Record) bool {
	switch {
	case r.Life != old.Life || r.Fence != old.Fence:
		return r.Fence > old.Fence
	case r.Report != nil && old.Report != nil:
		return r.Report.Newer(old.Report)
	}
	return r.At.After(old.At)
}

// Records writes. It is for one goroutine.
type Records struct {
	bucket *bus.Bucket
	wrote  map[string]written
	looks  int
}

type written struct {
	record   Record
	revision uint64
}

// Open opens the bucket.
func Open(ctx context.Context, conn *bus.Conn) (*Records, error) {
	b, err := conn.Bucket(ctx, bus.ProgressBucket)
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", bus.ProgressBucket, err)
	}
	return &Records{bucket: b, wrote: make(map[string]written)}, nil
}

// Keep writes what is new of these jobs, and removes what is of no job that runs. reports gives a job's newest reports.
func (r *Records) Keep(ctx context.Context, jobs []view.Job, reports func(name string, now time.Time) map[string]progress.Sample) error {
	now := time.Now().UTC()
	open := make(map[string]bool)
	for i := range jobs {
		j := &jobs[i]
		if j.Phase.AtRest() {
			continue
		}
		open[bus.EscapeToken(j.Job)] = true
		latest := reports(j.Job, now)
		for k := range j.Sources {
			if err := r.source(ctx, j, &j.Sources[k], latest, now); err != nil {
				return err
			}
		}
	}
	if r.looks++; r.looks%sweepEvery != 1 && !r.closed(open) {
		return nil
	}
	return r.sweep(ctx, open)
}

func (r *Records) source(ctx context.Context, j *view.Job, s *progress.Source, latest map[string]progress.Sample, now time.Time) error {
	base := Record{Version: Version, Job: j.Job, Life: j.Life, Fence: j.Fence, At: now}
	one := func(key string, id plan.SubtaskID) error {
		sample, ok := latest[id.String()]
		if !ok {
			return nil
		}
		rec := base
		rec.Node, rec.Report = sample.Node, &sample.Envelope
		return r.put(ctx, key, rec)
	}
	if err := one(bus.ProgressEnumeratorKey(j.Job, s.Name), plan.SubtaskID{Vertex: plan.EnumeratorOf(s.Name)}); err != nil {
		return err
	}
	for i := range s.Summary.Tasks {
		if err := one(bus.ProgressReaderKey(j.Job, s.Name, i), plan.SubtaskID{Vertex: plan.VertexID(s.Name), Index: i}); err != nil {
			return err
		}
	}
	base.Source = s
	return r.put(ctx, bus.ProgressKey(j.Job, s.Name), base)
}

// put stores a record unless the one that is there is as new.
func (r *Records) put(ctx context.Context, key string, rec Record) error {
	w, known := r.wrote[key]
	if known && !rec.newer(&w.record) {
		return nil
	}
	body, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("encode %s: %w", key, err)
	}
	for range 3 {
		var revision uint64
		if known {
			revision, err = r.bucket.Update(ctx, key, body, w.revision)
		} else {
			revision, err = r.bucket.Create(ctx, key, body)
		}
		if err == nil {
			r.wrote[key] = written{rec, revision}
			return nil
		}
		if !errors.Is(err, bus.ErrConflict) && !errors.Is(err, bus.ErrUnknown) {
			return err
		}
		e, err := r.bucket.Get(ctx, key)
		if errors.Is(err, bus.ErrNotFound) {
			known = false
			continue
		}
		if err != nil {
			return err
		}
		var there Record
		if json.Unmarshal(e.Value, &there) != nil {
			there = Record{}
		}
		w, known = written{there, e.Revision}, true
		r.wrote[key] = w
		if !rec.newer(&there) {
			return nil
		}
	}
	return nil // another instance is as busy with it; the next look comes
}

// closed reports whether something was written of a job that is not open any more.
func (r *Records) closed(open map[string]bool) bool {
	for key := range r.wrote {
		if !open[jobOf(key)] {
			return true
		}
	}
	return false
}

// sweep removes the keys of jobs that are not open.
func (r *Records) sweep(ctx context.Context, open map[string]bool) error {
	keys, err := r.bucket.Keys(ctx, ">")
	if err != nil {
		return fmt.Errorf("list progress records: %w", err)
	}
	for _, key := range keys {
		if open[jobOf(key)] || strings.HasPrefix(key, "_") { // what is of no job is not ours
			continue
		}
		if err := r.bucket.PurgeSubject(ctx, key); err != nil {
			return fmt.Errorf("remove progress record: %w", err)
		}
		delete(r.wrote, key)
	}
	for key := range r.wrote {
		if !open[jobOf(key)] {
			delete(r.wrote, key)
		}
	}
	return nil
}

func jobOf(key string) string {
	name, _, _ := strings.Cut(key, ".")
	return name
}
