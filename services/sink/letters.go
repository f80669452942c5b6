package sink

import (
	"context"
	"fmt"
	"log/slog"

	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/mysql"
	"weir.dev/weir/services/sink/internal/postgres"
)

// Resend applies a dead letter to its sink's target, once however often it is asked for: the target remembers it. A letter
// whose key has had a later change is fault.SinkDLQOvertaken unless force is set. What the target still cannot take is its
// error, and the letter stays as it was.
func Resend(ctx context.Context, s spec.Sink, l sink.Letter, resolve func(ref string) (string, error), force bool) error {
	cfg := sink.Config{
		Identity: source.Identity{Job: l.Job, Life: l.Life, Subtask: plan.SubtaskID{Vertex: plan.VertexID(s.Name + ".replay")}},
		Sink:     s, Resolve: resolve, Logger: slog.New(slog.DiscardHandler),
	}
	switch s.Config.(type) {
	case *spec.PostgresSink:
		return postgres.Resend(ctx, cfg, l, force)
	case *spec.MySQLSink:
		return mysql.Resend(ctx, cfg, l, force)
	}
	return fmt.Errorf("replay a letter of sink %s: a sink of type %s cannot", s.Name, s.Type)
}
