// Package exec performs the effects of pkg/job on the bus.
//
// Role: adapter. Each effect is done by a call that may be repeated; its answer is an event for the machine. Nothing is
// decided here.
//
// Invariants: an outcome that nobody knows is told as such, never as success and never as "not done".
//
// Failure: the package remembers only which manifests it has read, for the collection of garbage.
//
// Source: docs/architecture.md.
package exec

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/registry"
)

// barrierReserve is the room of a channel beyond its window, for barriers only.
const barrierReserve = 8

// lettersLimit bounds the dead letters of a job until a person sets another bound at the stream itself.
const lettersLimit = 256 << 20

// Executor performs effects for one leader. It is safe for concurrent use.
type Executor struct {
	conn *bus.Conn
	reg  *registry.Registry
	log  *slog.Logger
	term uint64

	mu   sync.Mutex
	kept map[string]map[epoch.Ref]*epoch.Manifest
}

// New makes the executor of a leader with this term.
func New(conn *bus.Conn, reg *registry.Registry, log *slog.Logger, term uint64) *Executor {
	return &Executor{conn: conn, reg: reg, log: log, term: term, kept: make(map[string]map[epoch.Ref]*epoch.Manifest)}
}

// Answer makes the event of an answer, at the time it is taken in.
type Answer func(job.Moment) job.Event

// Do performs an effect of a job and returns its answer; nil for the effects that have none.
func (x *Executor) Do(ctx context.Context, name string, effect job.Effect) Answer {
	switch e := effect.(type) {
	case job.WriteHead:
		return x.writeHead(ctx, e)
	case job.ReadHead:
		v, err := x.reg.Head(ctx, name)
		return answer(job.OpReadHead, err, func(m job.Moment) job.Event { return job.HeadRead{Moment: m, View: v} })
	case job.ReadSpec:
		s, err := x.readSpec(ctx, name, e.Digest)
		return answer(job.OpReadSpec, err, func(m job.Moment) job.Event { return job.SpecRead{Moment: m, Spec: s} })
	case job.ResetStreams:
		err := x.resetStreams(ctx, name, e)
		return answer(job.OpResetStreams, err, func(m job.Moment) job.Event { return job.StreamsReset{Moment: m, Fence: e.Fence} })
	case job.StorePlan:
		ref, err := x.reg.PutPlan(ctx, e.Plan, x.term)
		return answer(job.OpStorePlan, err, func(m job.Moment) job.Event { return job.PlanStored{Moment: m, Ref: ref, Plan: e.Plan} })
	case job.FetchPlan:
		d, err := patiently(ctx, func() (*plan.Deployment, error) { return x.reg.Plan(ctx, e.Ref) })
		return answer(job.OpFetchPlan, err, func(m job.Moment) job.Event { return job.PlanFetched{Moment: m, Plan: d} })
	case job.FetchChain:
		links, err := x.fetchChain(ctx, name, e)
		return answer(job.OpFetchChain, err, func(m job.Moment) job.Event { return job.ChainFetched{Moment: m, Links: links} })
	case job.FetchManifest:
		found, err := x.reg.Manifest(ctx, name, e.Ref)
		return answer(job.OpFetchManifest, manifestLost(name, err), func(m job.Moment) job.Event {
			return job.ManifestFetched{Moment: m, Link: epoch.Link{Ref: e.Ref, Manifest: found}}
		})
	case job.StoreManifest:
		d, err := x.reg.PutManifest(ctx, e.Manifest, e.Bytes, e.Ref)
		return answer(job.OpStoreManifest, err, func(m job.Moment) job.Event { return job.ManifestStored{Moment: m, Durable: d} })
	case job.DropStreams:
		err := x.dropStreams(ctx, name, e.Fence+1)
		return answer(job.OpDropStreams, err, func(m job.Moment) job.Event {
			return job.Swept{Moment: m, Op: job.OpDropStreams, Fence: e.Fence}
		})
	case job.Collect:
		err := x.collect(ctx, name, e)
		return answer(job.OpCollect, err, func(m job.Moment) job.Event { return job.Swept{Moment: m, Op: job.OpCollect} })
	case job.Erase:
		err := x.erase(ctx, name, e)
		return answer(job.OpErase, err, func(m job.Moment) job.Event { return job.Swept{Moment: m, Op: job.OpErase} })
	case job.Announce, job.StepDown:
		return nil
	}
	return nil
}

// answer is the event of a success, or tells the failure.
func answer(op job.Op, err error, done Answer) Answer {
	if err == nil {
		return done
	}
	e, class := fault.Of(err), fault.ClassOf(err)
	return func(m job.Moment) job.Event { return job.EffectFailed{Moment: m, Op: op, Fault: e, Class: class} }
}

func (x *Executor) writeHead(ctx context.Context, e job.WriteHead) Answer {
	rev, err := x.reg.WriteHead(ctx, &e.Head, e.Expect)
	if errors.Is(err, bus.ErrConflict) {
		return func(m job.Moment) job.Event { return job.HeadUnsure{Moment: m} }
	}
	return answer(job.OpWriteHead, err, func(m job.Moment) job.Event { return job.HeadWritten{Moment: m, Revision: rev} })
}

func (x *Executor) readSpec(ctx context.Context, name, digest string) (job.Spec, error) {
	j, err := patiently(ctx, func() (job.Spec, error) {
		parsed, err := x.reg.Spec(ctx, name, digest)
		if err != nil {
			return job.Spec{}, err
		}
		return job.NewSpec(parsed, digest)
	})
	if errors.Is(err, bus.ErrNotFound) {
		err = fault.Wrap(err, fault.RegCorrupt, "job "+name, "its spec "+digest+" is not stored")
	}
	return j, err
}

func (x *Executor) resetStreams(ctx context.Context, name string, e job.ResetStreams) error {
	left := x.dropOld(ctx, name, e.Fence)
	if left != nil && fault.ClassOf(left) != fault.Transient {
		return left
	}
	if e.Letters {
		if err := x.conn.EnsureDLQ(ctx, name, lettersLimit); err != nil {
			return err
		}
	}
	err := x.conn.CreateData(ctx, bus.DataConfig{
		Job: name, Fence: e.Fence, Life: e.Life, MaxMsgsPerSubject: int64(e.Window.Messages) + barrierReserve, Replicas: 1,
	})
	if err == nil && left != nil {
		// Nobody reads an old stream any more, and its name is never used again: it may go later.
		x.log.WarnContext(ctx, "data streams of old attempts are left", "job", name, "error", left.Error())
	}
	return err
}

// dropPatience bounds the wait for streams of old attempts to go: the server of a cluster that had one may be gone itself,
// and then nobody answers.
const dropPatience = time.Second

func (x *Executor) dropOld(ctx context.Context, name string, below fence.Token) error {
	ctx, cancel := context.WithTimeout(ctx, dropPatience)
	defer cancel()
	return x.dropStreams(ctx, name, below)
}

// dropStreams deletes the data streams below a fence. What cannot be listed or deleted now may still go later: only the
// writers' right to the newest stream matters, and that has another name.
func (x *Executor) dropStreams(ctx context.Context, name string, below fence.Token) error {
	err := x.conn.DeleteDataBelow(ctx, name, below)
	if below > 1 {
		if old := x.conn.PurgeFacts(ctx, name, below-1); old != nil {
			x.log.DebugContext(ctx, "facts of an old attempt stay until they expire", "job", name, "error", old.Error())
		}
	}
	return err
}

func (x *Executor) fetchChain(ctx context.Context, name string, e job.FetchChain) ([]epoch.Link, error) {
	links, err := patiently(ctx, func() ([]epoch.Link, error) {
		return x.reg.Chain(ctx, name, e.Durable.Ref, e.Committed)
	})
	return links, manifestLost(name, err)
}

// manifestLost makes of a manifest that is not there, or not what it was, the fault that says so.
func manifestLost(name string, err error) error {
	if errors.Is(err, bus.ErrNotFound) || errors.Is(err, bus.ErrDamaged) {
		return fault.Wrap(err, fault.JobManifestLost, "job "+name, err.Error(), "job", name)
	}
	return err
}

// patiently repeats a read of something that a head names while it is not found: a replica may be late.
func patiently[T any](ctx context.Context, read func() (T, error)) (T, error) {
	for pause := 50 * time.Millisecond; ; pause *= 2 {
		v, err := read()
		if !errors.Is(err, bus.ErrNotFound) || pause > time.Second {
			return v, err
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return v, fmt.Errorf("%w: %w", bus.ErrUnknown, context.Cause(ctx))
		}
	}
}
