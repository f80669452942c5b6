package postgres

import (
	"context"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/transact"
)

// checkLoop refuses a table that a source of the same job captures: its changes would come back as changes. Whether a
// source reads this very database is asked of the server, where its sessions are, since one server has many addresses.
func (c *Committer) checkLoop(ctx context.Context, q querier, table string, at transact.Place) error {
	for _, src := range c.cfg.Sources {
		pg, ok := src.Config.(*spec.PostgresSource)
		if !ok || !pg.Tables.Match(c.ledger.schema, table) {
			continue
		}
		reader, enumerator := c.cfg.Identity, c.cfg.Identity
		reader.Subtask.Vertex, enumerator.Subtask.Vertex = plan.VertexID(src.Name), plan.EnumeratorOf(src.Name)
		var here bool
		if err := q.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_stat_activity
			WHERE datname = current_database() AND (starts_with(application_name, $1) OR starts_with(application_name, $2)))`,
			sessionPrefix(reader), sessionPrefix(enumerator)).Scan(&here); err != nil {
			return err
		}
		if here {
			return fault.New(fault.SinkOwnSource, at.String(), "source "+src.Name+" captures it, from this very database")
		}
	}
	return nil
}
