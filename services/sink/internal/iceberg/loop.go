package iceberg

import (
	"context"
	"fmt"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/spec"
)

// checkLoop refuses a catalog whose tables a source of the same job captures: every commit would be a change to commit. Whether a
// source reads this very database is asked of the server, where its sessions are, since one server has many addresses.
func (c *committer) checkLoop(ctx context.Context) error {
	catalog, ok := c.tables.catalog.(*sqlCatalog)
	if !ok || !catalog.postgres {
		return nil
	}
	for _, src := range c.cfg.Sources {
		pg, ok := src.Config.(*spec.PostgresSource)
		if !ok {
			continue
		}
		var schema string
		if err := catalog.db.QueryRowContext(ctx, `SELECT current_schema()`).Scan(&schema); err != nil {
			return err
		}
		if !pg.Tables.Match(schema, "weir_iceberg_ledger") && !pg.Tables.Match(schema, "iceberg_tables") {
			continue
		}
		var here bool
		prefix := func(v plan.VertexID) string { return fmt.Sprintf("weir:%s:%s:", c.cfg.Life, v) }
		if err := catalog.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_stat_activity
			WHERE datname = current_database() AND (starts_with(application_name, $1) OR starts_with(application_name, $2)))`,
			prefix(plan.VertexID(src.Name)), prefix(plan.EnumeratorOf(src.Name))).Scan(&here); err != nil {
			return err
		}
		if here {
			return fault.New(fault.SinkOwnSource, c.where+".catalog", "source "+src.Name+" captures the tables of the catalog, from this very database")
		}
	}
	return nil
}
