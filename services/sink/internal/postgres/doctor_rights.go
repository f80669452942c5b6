package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/preflight"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/transact"
)

// rights grants what an error says is missing, when that is what it says.
func (d *doctor) rights(ctx context.Context, err error) *preflight.Remedy {
	missing, ok := errors.AsType[*fault.Error](translate(ctx, err, d.at))
	if !ok || missing.Code != fault.SinkMissingRight {
		return nil
	}
	schema, role := quote(d.ledger.schema), quote(d.login)
	if strings.Contains(missing.Why, "for table ") { // the ledger is there, and somebody else's
		tables := []string{d.ledger.name(ledgerTable), d.ledger.name(logTable), d.ledger.name(ownTable)}
		return &preflight.Remedy{Database: d.database, SQL: []string{
			"GRANT SELECT, INSERT, UPDATE, DELETE ON TABLE " + strings.Join(tables, ", ") + " TO " + role + ";",
		}}
	}
	return &preflight.Remedy{Database: d.database, SQL: []string{
		"CREATE SCHEMA IF NOT EXISTS " + schema + ";",
		"GRANT USAGE, CREATE ON SCHEMA " + schema + " TO " + role + ";",
	}}
}

// writable judges the rights on a table that exists. changes are what the start would do to it first.
func (d *doctor) writable(ctx context.Context, t *target, changes []string, at transact.Place) error {
	var owner bool
	var missing []string
	rights := []string{"SELECT", "INSERT", "UPDATE", "DELETE"}
	if d.pg.Allows(spec.AllowTruncate) || slices.ContainsFunc(changes, func(s string) bool { return strings.HasPrefix(s, "TRUNCATE ") }) {
		rights = append(rights, "TRUNCATE")
	}
	err := d.session.QueryRow(ctx, `SELECT pg_has_role(c.relowner, 'USAGE'),
			array(SELECT r FROM unnest($2::text[]) r WHERE NOT has_table_privilege(c.oid, r))
		FROM pg_class c WHERE c.oid = $1::text::regclass`, t.name, rights).Scan(&owner, &missing)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		err := fault.New(fault.SinkMissingRight, at.String(), strings.Join(missing, ", ")+" on "+t.plain)
		d.report.Fail("table_rights", t.plain, err, &preflight.Remedy{
			Database: d.database, SQL: []string{"GRANT " + strings.Join(missing, ", ") + " ON TABLE " + t.name + " TO " + quote(d.login) + ";"},
		})
	}
	alter := slices.DeleteFunc(slices.Clone(changes), func(s string) bool { return !strings.HasPrefix(s, "ALTER ") })
	if len(alter) > 0 && !owner {
		err := fault.New(fault.SinkMissingRight, at.String(), "columns have to be changed, and role "+d.login+" does not own the table")
		d.report.Fail("columns", t.plain, err, &preflight.Remedy{Database: d.database, SQL: alter})
		return nil
	}
	if len(missing) == 0 {
		d.report.Fits(t.plain, alter)
	}
	return nil
}

// grants is an SQL script with the least the role needs; running it again changes nothing.
func (d *doctor) grants(ctx context.Context) string {
	var b strings.Builder
	role, schema, db := quote(d.login), quote(d.ledger.schema), quote(d.database)
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("-- %s: role %s writes schema %s of database %s. Run it as a superuser, connected to %s; it can be run again.",
		d.at.Sink, d.login, d.ledger.schema, d.database, d.database)
	line("GRANT CONNECT, TEMPORARY ON DATABASE %s TO %s;", db, role)
	line("CREATE SCHEMA IF NOT EXISTS %s;", schema)
	line("GRANT USAGE, CREATE ON SCHEMA %s TO %s;", schema, role)
	for _, t := range d.existing(ctx) {
		rights := "SELECT, INSERT, UPDATE, DELETE"
		if d.pg.Allows(spec.AllowTruncate) || d.pg.Existing == spec.ExistingTruncate {
			rights += ", TRUNCATE"
		}
		line("GRANT %s ON TABLE %s TO %s;", rights, pgx.Identifier{d.ledger.schema, t}.Sanitize(), role)
	}
	return b.String()
}

// existing lists the tables that are there and that the sink writes.
func (d *doctor) existing(ctx context.Context) []string {
	names := []string{ledgerTable, logTable, ownTable}
	for _, s := range d.checkup.Tables {
		sourceSchema, sourceTable := splitTable(s.Table())
		names = append(names, d.pg.TableName(sourceSchema, sourceTable))
	}
	if d.session.IsClosed() {
		return nil
	}
	found, err := d.session.Query(ctx, `SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relname = ANY($2) AND c.relkind IN ('r', 'p') ORDER BY 1`, d.ledger.schema, names)
	if err != nil {
		return nil
	}
	there, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		return nil
	}
	return there
}
