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
	"weir.dev/weir/services/sink/internal/checkup"
	"weir.dev/weir/services/sink/internal/iceberg"
	"weir.dev/weir/services/sink/internal/mysql"
	"weir.dev/weir/services/sink/internal/nats"
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

// Doctor looks at the target of a sink as its committer's start would: in a transaction that is rolled back, or, where DDL ends
// transactions, by statements that change nothing. Findings never hold a password or the value of a row. The error is that of ctx,
// or a defect.
func Doctor(ctx context.Context, c Checkup) (Diagnosis, error) {
	cfg := sink.Config{
		Identity: source.Identity{Job: c.Job, Life: c.Life, Subtask: plan.SubtaskID{Vertex: plan.CommitterOf(c.Sink.Name)}},
		Sink:     c.Sink, Resolve: c.Resolve, Logger: slog.New(slog.DiscardHandler),
	}
	var d Diagnosis
	var err error
	switch c.Sink.Config.(type) {
	case *spec.PostgresSink:
		d.Findings, d.Grants, err = postgres.Doctor(ctx, checkup.Checkup{Config: cfg, LivesKnown: c.LivesKnown, Tables: c.Tables})
	case *spec.MySQLSink:
		d.Findings, d.Grants, err = mysql.Doctor(ctx, checkup.Checkup{Config: cfg, LivesKnown: c.LivesKnown, Tables: c.Tables})
	case *spec.IcebergSink:
		d.Findings, err = iceberg.Doctor(ctx, iceberg.Checkup{Config: cfg, LivesKnown: c.LivesKnown, Tables: c.Tables})
	case *spec.NATSSink:
		d.Findings, err = nats.Doctor(ctx, cfg, c.LivesKnown)
	default:
		d.Findings = []preflight.Finding{{
			Group: "sinks." + c.Sink.Name, Check: "type", Status: preflight.OK, Found: fmt.Sprintf("sinks of type %s have no checks", c.Sink.Type),
		}}
	}
	return d, err
}
