package sink

import (
	"context"
	"fmt"
	"log/slog"

	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/preflight"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/postgres"
)

// Checkup asks [Doctor] about one sink.
type Checkup struct {
	Job string
	// Life is the job's life that is not over; empty when there is none, or when LivesKnown is false and nobody could say.
	Life       string
	LivesKnown bool
	Sink       spec.Sink
	// Resolve turns a reference of the spec into its value.
	Resolve func(ref string) (string, error)
	// Tables are the rows that will come, as far as they are known.
	Tables []*rows.Schema
}

// Diagnosis is what Doctor found.
type Diagnosis struct {
	Findings []preflight.Finding
	// Grants is SQL that gives the role the least it needs, and can be run again; empty for sinks without roles and when
	// the target was not reached.
	Grants string
}

// Doctor looks at the target of a sink as its committer's start would, in a transaction that is rolled back. Findings
// never hold a password or the value of a row. The error is that of ctx, or a defect.
func Doctor(ctx context.Context, c Checkup) (Diagnosis, error) {
	if _, ok := c.Sink.Config.(*spec.PostgresSink); !ok {
		return Diagnosis{Findings: []preflight.Finding{{
			Group: "sinks." + c.Sink.Name, Check: "type", Status: preflight.OK, Found: fmt.Sprintf("sinks of type %s have no checks", c.Sink.Type),
		}}}, nil
	}
	found, grants, err := postgres.Doctor(ctx, postgres.Checkup{
		Config: sink.Config{
			Identity: source.Identity{Job: c.Job, Life: c.Life, Subtask: plan.SubtaskID{Vertex: plan.CommitterOf(c.Sink.Name)}},
			Sink:     c.Sink, Resolve: c.Resolve, Logger: slog.New(slog.DiscardHandler),
		},
		LivesKnown: c.LivesKnown, Tables: c.Tables,
	})
	return Diagnosis{Findings: found, Grants: grants}, err
}
