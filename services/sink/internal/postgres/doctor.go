package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/preflight"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/core"
	"weir.dev/weir/services/sink/internal/transact"
)

// Checkup asks [Doctor] about one sink.
type Checkup struct {
	// Config is that of the committer; the life is that of the job, empty when the job has none yet.
	Config sink.Config
	// LivesKnown says that an empty life is known to be none; else nobody could be asked.
	LivesKnown bool
	// Tables are the rows that will come, as far as they are known.
	Tables []*rows.Schema
}

// doctor is a committer that has a session for one transaction, which is rolled back in the end.
type doctor struct {
	*Committer

	session  *session
	checkup  Checkup
	findings []preflight.Finding
	login    string
	database string
}

// Doctor proves what the start of a committer proves, with the start's own functions, in a transaction that is rolled
// back: server, ledger, a write, and each target table that the rows need. Tables that exist are only looked at: what the
// start would change in them is found out and not done. grants is SQL that gives the role the least it needs; empty when
// the target was not reached.
func Doctor(ctx context.Context, c Checkup) (findings []preflight.Finding, grants string, err error) {
	where := "sinks." + c.Config.Sink.Name
	pg, err := configOf(c.Config)
	if err != nil {
		return nil, "", err
	}
	life := c.Config.Life
	c.Config.Life = cmp.Or(life, "doctor")
	d := doctor{checkup: c, Committer: &Committer{
		cfg: c.Config, pg: pg, at: transact.Place{Sink: where, Job: c.Config.Job},
		ledger: ledger{schema: cmp.Or(pg.Schema, defaultSchema), job: c.Config.Job, sink: c.Config.Sink.Name},
	}}
	d.checkup.Config.Life = life
	if d.url, err = c.Config.Resolve(pg.URL.Raw()); err != nil {
		return []preflight.Finding{preflight.Failed(where, "url", err, nil)}, "", nil
	}
	id := c.Config.Identity
	id.Life, id.Fence = "doctor", 0 // ends no session of anybody
	d.session, err = connect(ctx, d.url, id, nil, d.at)
	if err != nil {
		return []preflight.Finding{preflight.Failed(where, "connect", err, nil)}, "", context.Cause(ctx)
	}
	defer d.session.close(ctx)
	d.login, d.database = d.session.Config().User, d.session.Config().Database
	d.at.Role = d.login
	if err := d.run(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, "", context.Cause(ctx)
		}
		d.fail("look", "", translate(ctx, err, d.at), nil)
	}
	return d.findings, d.grants(ctx), nil
}

func (d *doctor) add(f preflight.Finding) {
	f.Group = d.at.Sink
	d.findings = append(d.findings, f)
}

func (d *doctor) ok(check, format string, args ...any) {
	d.add(preflight.Finding{Check: check, Status: preflight.OK, Found: fmt.Sprintf(format, args...)})
}

func (d *doctor) fail(check, subject string, err error, remedy *preflight.Remedy) {
	f := preflight.Failed(d.at.Sink, check, err, remedy)
	f.Subject = subject
	d.add(f)
}

func (d *doctor) run(ctx context.Context) error {
	if _, err := d.session.Exec(ctx, "BEGIN"); err != nil {
		return err
	}
	defer func() {
		if !d.session.IsClosed() {
			_, _ = d.session.Exec(context.WithoutCancel(ctx), "ROLLBACK") // the session ends anyway
		}
	}()
	if err := d.probe(ctx, d.session); err != nil {
		d.fail("write", "", err, d.rights(ctx, err))
		return nil
	}
	if err := d.write(ctx); err != nil {
		d.fail("write", "", translate(ctx, err, d.at), d.rights(ctx, err))
		return nil
	}
	d.ok("write", "role %s can make and write the ledger in schema %s", d.login, d.ledger.schema)
	if err := d.claimed(ctx); err != nil {
		return err
	}
	for _, s := range d.checkup.Tables {
		if d.cfg.Sink.Mode == spec.Upsert && len(s.Key()) == 0 {
			continue // the checks of its source refuse it
		}
		if err := d.table(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// write moves a ledger row as a commit does, under a name that no job can have.
func (d *doctor) write(ctx context.Context) error {
	l := d.ledger
	l.job = " doctor"
	if err := l.take(ctx, d.session, "doctor", 0); err != nil {
		return err
	}
	return l.advance(ctx, d.session, entry{})
}

// claimed looks whose ledger it is.
func (d *doctor) claimed(ctx context.Context) error {
	row, err := d.ledger.read(ctx, d.session, false)
	if err != nil {
		return err
	}
	life := d.checkup.Config.Life
	switch verdict := core.Claim(row, life, row.Fence); {
	case row == core.Row{}:
		d.ok("ledger", "no life of the job has written here")
	case verdict == core.Apply:
		d.ok("ledger", "it holds epoch %s of the job's life %s", row.Ref.Epoch, row.Life)
	case !d.checkup.LivesKnown:
		d.add(preflight.Finding{
			Check: "ledger", Status: preflight.Warning, Found: fmt.Sprintf("it holds epoch %s of life %s", row.Ref.Epoch, row.Life),
			Why:    "a new life of the job would be refused, and which life the job has cannot be known: no mesh was asked",
			Remedy: &preflight.Remedy{Advice: "Ask again with --nats or NATS_URL."},
		})
	default:
		err := fault.New(fault.JobLedgerForeign, d.at.Sink, fmt.Sprintf("%s in schema %s has life %s", ledgerTable, d.ledger.schema, row.Life), "job", d.cfg.Job)
		d.fail("ledger", d.cfg.Job, err, &preflight.Remedy{
			SQL: []string{
				d.forget(ledgerTable), d.forget(logTable), d.forget(ownTable),
			},
			Database: d.database,
			Advice:   "Only when the older life is given up. The tables then count as there before, see existing:.",
		})
	}
	return nil
}

func (d *doctor) forget(table string) string {
	return fmt.Sprintf("DELETE FROM %s WHERE job = %s AND sink = %s;", d.ledger.name(table), sqlText(d.ledger.job), sqlText(d.ledger.sink))
}

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
		d.fail("table", t.plain, translate(ctx, err, at), nil)
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
			d.fail("table", t.plain, translate(ctx, err, at), d.taken(err))
			return nil
		}
		changes, err := d.changes(t, found, types, at)
		if err != nil {
			d.fail("columns", t.plain, translate(ctx, err, at), d.unfit(t, found, err))
			return nil
		}
		r.noted = append(r.noted, changes...)
		if err := t.checkKey(found, at); err != nil {
			d.fail("key", t.plain, translate(ctx, err, at), &preflight.Remedy{Database: d.database, SQL: []string{t.uniqueSQL()}})
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
		d.fail("table", t.plain, fault.New(fault.SinkMissingTable, at.String(), "it was there before", "table", t.plain), nil)
		return nil
	}
	_, err := d.session.Exec(ctx, t.createSQL(types))
	if err == nil {
		d.add(preflight.Finding{Check: "table", Subject: t.plain, Status: preflight.OK, Found: "it will be made"})
		return nil
	}
	if _, answered := errors.AsType[*pgconn.PgError](err); !answered {
		return err
	}
	d.fail("table", t.plain, translate(ctx, err, at), d.rights(ctx, err))
	return nil
}

// taken says how the rows of a table that was there first can be dealt with.
func (d *doctor) taken(err error) *preflight.Remedy {
	if fault.CodeOf(err) != fault.SinkNotEmpty {
		return nil
	}
	return &preflight.Remedy{
		Spec:   d.at.Sink + ".existing: truncate",
		Advice: "Or existing: keep, when the rows in it are those that the job would write.",
	}
}

// uniqueSQL makes the index that an upsert needs.
func (t *target) uniqueSQL() string {
	var key []string
	for _, i := range t.schema.Key() {
		key = append(key, quote(t.schema.Column(i).Name))
	}
	return "CREATE UNIQUE INDEX ON " + t.name + " (" + strings.Join(key, ", ") + ");"
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
		d.fail("table_rights", t.plain, err, &preflight.Remedy{
			Database: d.database, SQL: []string{"GRANT " + strings.Join(missing, ", ") + " ON TABLE " + t.name + " TO " + quote(d.login) + ";"},
		})
	}
	alter := slices.DeleteFunc(slices.Clone(changes), func(s string) bool { return !strings.HasPrefix(s, "ALTER ") })
	if len(alter) > 0 && !owner {
		err := fault.New(fault.SinkMissingRight, at.String(), "columns have to be changed, and role "+d.login+" does not own the table")
		d.fail("columns", t.plain, err, &preflight.Remedy{Database: d.database, SQL: alter})
		return nil
	}
	if len(missing) == 0 {
		found := "it fits"
		if len(alter) > 0 {
			found = "it will be changed: " + strings.Join(alter, " ")
		}
		d.add(preflight.Finding{Check: "table", Subject: t.plain, Status: preflight.OK, Found: found})
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

func sqlText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
