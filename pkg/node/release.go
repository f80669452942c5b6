package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"weir.dev/weir/pkg/envelope"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/task"
	"weir.dev/weir/pkg/telemetry"
)

// drop removes what a life made outside the bus and tells the leader, until the record says that it knows.
func (s *seat) drop(ctx context.Context, h *job.Head, a job.DropExternal) {
	if s.release != nil {
		s.release()
	}
	rctx, cancel := context.WithCancel(ctx)
	s.release = cancel
	id := plan.SubtaskID{Vertex: job.ReleaseVertex}
	board := task.NewBoard(s.n.mesh.Facts, s.name, a.Fence, id, s.log)
	life := h.Life
	s.ended.Go(func() { board.Run(rctx) })
	s.ended.Go(func() {
		fact := job.ReleasedFact{Fence: a.Fence, Node: s.n.me.Node, Request: a.Request}
		if err := s.dropSources(rctx, life, a); err != nil {
			s.log.WarnContext(rctx, "external resources not dropped", telemetry.KeyError, err)
			if body, merr := json.Marshal(fault.Of(err)); merr == nil {
				fact.Fault = body
			}
		}
		if rctx.Err() == nil {
			board.Open(envelope.Released, 0, fact)
		}
	})
}

func (s *seat) dropSources(ctx context.Context, life string, a job.DropExternal) error {
	ctx, cancel := context.WithTimeout(ctx, releaseTime)
	defer cancel()
	j, err := s.n.mesh.Records.Spec(ctx, s.name, a.SpecDigest)
	if err != nil {
		return fmt.Errorf("read spec: %w", err)
	}
	var failed []error
	for _, name := range a.Sources {
		src, ok := j.Source(name)
		c := s.n.cfg.Sources[src.Type]
		if !ok || c == nil {
			failed = append(failed, fmt.Errorf("release source %s: %w", name, errNoConnector))
			continue
		}
		err := c.Release(ctx, source.Config{
			Identity: source.Identity{
				Job: s.name, Life: life, Fence: a.Fence, Subtask: plan.SubtaskID{Vertex: plan.EnumeratorOf(name)},
			},
			Source: src, Resolve: s.resolve, Readers: src.Config.Parallelism(), Logger: s.log,
		})
		if err != nil {
			failed = append(failed, fmt.Errorf("release source %s: %w", name, err))
		}
	}
	return errors.Join(failed...)
}
