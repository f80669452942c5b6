package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/preflight"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/services/sink/internal/transact"
)

// recorder is a transaction whose statements are noted and not executed; it answers queries.
type recorder struct {
	*session
	noted []string
}

func (r *recorder) Exec(_ context.Context, sql string, _ ...any) (pgconn.CommandTag, error) {
	r.noted = append(r.noted, sql+";")
	return pgconn.CommandTag{}, nil
}

// table judges the target of one source table.
func (d *doctor) table(ctx context.Context, schema *rows.Schema) error {
	if _, err := d.session.Exec(ctx, "SAVEPOINT weir_doctor"); err != nil {
		return err
	}
	if err := d.judge(ctx, schema); err != nil {
		return err
	}
	_, err := d.session.Exec(ctx, "ROLLBACK TO SAVEPOINT weir_doctor")
	return err
}

func (d *doctor) judge(ctx context.Context, schema *rows.Schema) error {
	sourceSchema, sourceTable := splitTable(schema.Table())
	name := d.pg.TableName(sourceSchema, sourceTable)
	t := &target{schema: schema, mode: d.cfg.Sink.Mode, name: quote(d.ledger.schema) + "." + quote(name), plain: d.ledger.schema + "." + name}
	at := d.at
	at.Table = t.plain
	owned, _, err := d.ownership(ctx, d.session, schema.Table(), name, at)
	if err != nil {
		d.report.Fail("table", t.plain, translate(ctx, err, at), nil)
		return nil
	}
	found, err := examine(ctx, d.session, d.ledger.schema, name)
	if err != nil {
		return err
	}
	types, err := columnTypes(ctx, d.session, schema)
	if err != nil {
		return err
	}
	if found == nil {
		return d.create(ctx, t, types, owned, at)
	}
	r := &recorder{session: d.session}
	if !owned {
		if err := d.takeOver(ctx, r, t, at); err != nil {
			d.report.Fail("table", t.plain, translate(ctx, err, at), d.report.NotEmpty(err))
			return nil
		}
		changes, err := d.changes(t, found, types, at)
		if err != nil {
			d.report.Fail("columns", t.plain, translate(ctx, err, at), d.unfit(t, found, err))
			return nil
		}
		r.noted = append(r.noted, changes...)
		if err := t.checkKey(found, at); err != nil {
			d.report.Fail("key", t.plain, translate(ctx, err, at), &preflight.Remedy{Database: d.database, SQL: []string{t.uniqueSQL()}})
			return nil
		}
	}
	return d.writable(ctx, t, r.noted, at)
}

// changes are what the start would do to the columns of a table that it takes over: found out by its own code, which is
// given a pen in place of the table.
func (d *doctor) changes(t *target, found *relation, types []string, at transact.Place) (changes []string, err error) {
	note := func(sql string) error {
		changes = append(changes, "ALTER TABLE "+t.name+" "+sql+";")
		return nil
	}
	a := &alteration{t: t, found: found, types: types, exec: note, try: note}
	return changes, t.fit(t.evolution(a, &d.cfg, d.pg, false, at), a, at)
}

// unfit says how the columns of a table that is there can be made to fit.
func (d *doctor) unfit(t *target, found *relation, err error) *preflight.Remedy {
	alter := func(column, change string) *preflight.Remedy {
		return &preflight.Remedy{Database: d.database, SQL: []string{"ALTER TABLE " + t.name + " ALTER COLUMN " + quote(column) + " " + change + ";"}}
	}
	if fault.CodeOf(err) == fault.SinkSchemaChange {
		for _, c := range t.schema.Columns() {
			if found.columns[c.Name].Generated {
				return alter(c.Name, "DROP EXPRESSION")
			}
		}
	}
	if fault.CodeOf(err) == fault.SinkConstraint {
		for name, c := range found.columns {
			if _, ours := t.schema.Lookup(name); !ours && c.Required {
				return alter(name, "DROP NOT NULL")
			}
		}
	}
	return nil
}

// create tries the statement that would make the table, in the savepoint.
func (d *doctor) create(ctx context.Context, t *target, types []string, owned bool, at transact.Place) error {
	if owned {
		d.report.Fail("table", t.plain, fault.New(fault.SinkMissingTable, at.String(), "it was there before", "table", t.plain), nil)
		return nil
	}
	_, err := d.session.Exec(ctx, t.createSQL(types))
	if err == nil {
		d.report.Made(t.plain)
		return nil
	}
	if _, answered := errors.AsType[*pgconn.PgError](err); !answered {
		return err
	}
	d.report.Fail("table", t.plain, translate(ctx, err, at), d.rights(ctx, err))
	return nil
}

// uniqueSQL makes the index that an upsert needs.
func (t *target) uniqueSQL() string {
	var key []string
	for _, i := range t.schema.Key() {
		key = append(key, quote(t.schema.Column(i).Name))
	}
	return "CREATE UNIQUE INDEX ON " + t.name + " (" + strings.Join(key, ", ") + ");"
}
