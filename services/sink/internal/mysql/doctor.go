package mysql

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/preflight"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/core"
	"weir.dev/weir/services/sink/internal/transact"
)

const (
	// packetLeast is the max_allowed_packet below which rows of ordinary size are in danger, packetAdvised MySQL's default.
	packetLeast   = 16 << 20
	packetAdvised = 64 << 20
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

// doctor is a committer that has a session without the lock of its name, so that it ends no session of anybody.
type doctor struct {
	*Committer

	s        *session
	checkup  Checkup
	findings []preflight.Finding
	account  string // as SQL
	login    string // for people
}

// Doctor judges what the start of a committer needs, with the start's own functions: server, settings, rights, ledger, and each
// target table. DDL is no part of a transaction here, so nothing is tried that could succeed: rights are asked for by statements
// about tables that are not there, and writes that find no row. grants is SQL that gives the account the least it needs; empty
// when the target was not reached.
func Doctor(ctx context.Context, c Checkup) (findings []preflight.Finding, grants string, err error) {
	where := "sinks." + c.Config.Sink.Name
	my, err := configOf(c.Config)
	if err != nil {
		return nil, "", err
	}
	d := doctor{checkup: c, Committer: &Committer{
		cfg: c.Config, my: my, at: transact.Place{Sink: where, Job: c.Config.Job},
		ledger: ledger{database: my.Database, job: c.Config.Job, sink: c.Config.Sink.Name},
	}}
	url, err := c.Config.Resolve(my.URL.Raw())
	if err == nil {
		d.server, err = newServer(url, d.at)
	}
	if err != nil {
		return []preflight.Finding{preflight.Failed(where, "url", err, nil)}, "", nil
	}
	d.at.Role = d.server.user
	if d.s, err = d.server.open(ctx, d.at); err != nil {
		return []preflight.Finding{preflight.Failed(where, "connect", err, nil)}, "", context.Cause(ctx)
	}
	defer d.s.close()
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

func (d *doctor) warn(check, found, why string, remedy *preflight.Remedy) {
	d.add(preflight.Finding{Check: check, Status: preflight.Warning, Found: found, Why: why, Remedy: remedy})
}

func (d *doctor) fail(check, subject string, err error, remedy *preflight.Remedy) {
	f := preflight.Failed(d.at.Sink, check, err, remedy)
	f.Subject = subject
	d.add(f)
}

func (d *doctor) run(ctx context.Context) error {
	found, err := d.s.query(ctx, "SELECT CURRENT_USER()")
	if err != nil {
		return err
	}
	d.login = found[0].text(0)
	at := strings.LastIndexByte(d.login, '@')
	d.account = quote(d.login[:at]) + "@" + quote(d.login[at+1:])
	version := d.s.conn.GetServerVersion()
	if d.s.tooOld() {
		d.fail("version", "", fault.New(fault.SinkTooOld, d.at.Sink, "its version is "+version), nil)
		return nil
	}
	d.ok("connect", "account %s, version %s", d.login, version)
	if err := d.settings(ctx); err != nil {
		return err
	}
	ledgerThere, may, err := d.rights(ctx)
	if err != nil || !may {
		return err
	}
	if err := d.claimed(ctx, ledgerThere); err != nil {
		return err
	}
	for _, s := range d.checkup.Tables {
		if d.cfg.Sink.Mode == spec.Upsert && len(s.Key()) == 0 {
			continue // the checks of its source refuse it
		}
		if err := d.table(ctx, s, ledgerThere); err != nil {
			return err
		}
	}
	return nil
}

// set writes a setting for sessions to come. MariaDB cannot note it for the next start.
func (d *doctor) set(name, value string) *preflight.Remedy {
	if d.s.maria {
		return &preflight.Remedy{
			SQL:    []string{"SET GLOBAL " + name + " = " + value + ";"},
			Advice: "Also write " + name + " = " + strings.Trim(value, "'") + " into the server's configuration, so that it is kept. A managed service has it in its parameter group.",
		}
	}
	return &preflight.Remedy{SQL: []string{"SET PERSIST " + name + " = " + value + ";"}, Advice: "A managed service has it in its parameter group."}
}

func (d *doctor) settings(ctx context.Context) error {
	d.ok("sql_mode", "sessions of the sink set their own, a strict one")
	if err := d.s.checkFormat(ctx, d.at); err != nil {
		if fault.CodeOf(err) != fault.SinkSetting {
			return err
		}
		d.fail("binlog_format", "", err, d.set("binlog_format", "'ROW'"))
	} else {
		d.ok("binlog_format", "it takes rows of READ COMMITTED")
	}
	logs, err := d.s.variable(ctx, "log_bin")
	if err != nil {
		return err
	}
	names := []string{"innodb_flush_log_at_trx_commit"}
	if logs == "ON" {
		names = append(names, "sync_binlog")
	}
	durable := true
	for _, name := range names {
		value, err := d.s.variable(ctx, name)
		if err != nil {
			return err
		}
		if value == "1" {
			continue
		}
		durable = false
		d.warn(name, "it is "+value,
			"the loss of the server's machine can undo epochs that the job believes committed; it then stops (JOB_LEDGER_DIVERGED) rather than go on without them",
			d.set(name, "1"))
	}
	if durable {
		d.ok("durability", "a commit is on the disk when it is answered")
	}
	if d.s.packet < packetLeast {
		d.warn("max_allowed_packet", fmt.Sprintf("it is %d bytes", d.s.packet), "a row that does not fit into one statement cannot be written (SINK_ROW)",
			d.set("max_allowed_packet", fmt.Sprint(packetAdvised)))
	} else {
		d.ok("max_allowed_packet", "%d MiB", d.s.packet>>20)
	}
	return nil
}

// denied reports whether an error is the refusal of a right. Any other error of the server means that the right is there: rights
// come before what a statement is about.
func denied(err error) (bool, error) {
	my, answered := errors.AsType[*mysql.MyError](err)
	if err != nil && !answered {
		return false, err
	}
	return answered && slices.Contains([]uint16{1044, 1142, 1143, 1227, 1370}, my.Code), nil
}

// lacks finds out which rights an account lacks, by a statement for each that changes nothing.
func (d *doctor) lacks(ctx context.Context, statements [][2]string) (missing []string, err error) {
	for _, s := range statements {
		_, err := d.s.exec(ctx, s[1])
		no, err := denied(err)
		if err != nil {
			return nil, err
		}
		if no {
			missing = append(missing, s[0])
		}
	}
	return missing, nil
}

// empties reports whether the sink may have to empty tables, for which it needs DROP.
func (d *doctor) empties() bool {
	return d.my.Allows(spec.AllowTruncate) || d.my.Existing == spec.ExistingTruncate
}

// inDatabase is the database as GRANT takes it, where _ and % stand for letters unless rights can be revoked in part. Of two forms
// that match, the servers look at one only; so a form that the account has rights under is kept.
func (d *doctor) inDatabase(ctx context.Context) (string, error) {
	plain := quote(d.ledger.database) + ".*"
	partial, err := d.s.variable(ctx, "partial_revokes")
	if err != nil || partial == "ON" {
		return plain, err
	}
	grants, err := d.s.query(ctx, "SHOW GRANTS")
	if err != nil || slices.ContainsFunc(grants, func(r record) bool { return strings.Contains(r.text(0), " ON "+plain+" TO ") }) {
		return plain, err
	}
	return quote(strings.NewReplacer(`_`, `\_`, `%`, `\%`).Replace(d.ledger.database)) + ".*", nil
}

// rights judges those on the database.
func (d *doctor) rights(ctx context.Context) (ledgerThere, may bool, err error) {
	absent, other := d.ledger.name("weir_doctor"), d.ledger.name("weir_doctor_too")
	statements := [][2]string{
		{"SELECT", "SELECT 1 FROM " + absent},
		{"INSERT", "INSERT INTO " + absent + " VALUES (1)"},
		{"UPDATE", "UPDATE " + absent + " SET a = 1"},
		{"DELETE", "DELETE FROM " + absent},
		{"CREATE", "CREATE TABLE " + other + " LIKE " + absent},
		{"ALTER", "ALTER TABLE " + absent + " DROP COLUMN a"},
		{"CREATE TEMPORARY TABLES", "CREATE TEMPORARY TABLE " + other + " LIKE " + absent},
	}
	if d.empties() {
		statements = append(statements, [2]string{"DROP", "DROP TABLE " + absent})
	}
	missing, err := d.lacks(ctx, statements)
	if err != nil {
		return false, false, err
	}
	if len(missing) > 0 {
		on, err := d.inDatabase(ctx)
		if err != nil {
			return false, false, err
		}
		rights := strings.Join(missing, ", ")
		d.fail("rights", "", fault.New(fault.SinkMissingRight, d.at.Sink, rights+" on database "+d.ledger.database,
			"right", rights, "where", d.ledger.database, "role", d.login, "job", d.cfg.Job),
			&preflight.Remedy{SQL: []string{"GRANT " + rights + " ON " + on + " TO " + d.account + ";"}})
		return false, false, nil
	}
	d.ok("rights", "account %s has what it needs on database %s", d.login, d.ledger.database)
	if err := d.use(ctx, d.s); err != nil {
		if hasNumber(err, mysql.ER_BAD_DB_ERROR) {
			d.ok("database", "it will be made")
			return false, true, nil
		}
		return false, false, err
	}
	found, err := d.s.query(ctx, "SELECT count(*) FROM information_schema.tables WHERE table_schema = "+text(d.ledger.database)+
		" AND table_name IN ("+text(ledgerTable)+", "+text(ownTable)+")")
	return err == nil && found[0].number(0) == 2, true, err
}

// claimed looks whose ledger it is.
func (d *doctor) claimed(ctx context.Context, there bool) error {
	var row core.Row
	if there {
		var err error
		if row, err = d.ledger.read(ctx, d.s, false); err != nil {
			return err
		}
	}
	life := d.checkup.Config.Life
	switch verdict := core.Claim(row, cmp.Or(life, "doctor"), row.Fence); {
	case row == core.Row{}:
		d.ok("ledger", "no life of the job has written here")
	case verdict == core.Apply:
		d.ok("ledger", "it holds epoch %s of the job's life %s", row.Ref.Epoch, row.Life)
	case !d.checkup.LivesKnown:
		d.warn("ledger", fmt.Sprintf("it holds epoch %s of life %s", row.Ref.Epoch, row.Life),
			"a new life of the job would be refused, and which life the job has cannot be known: no mesh was asked",
			&preflight.Remedy{Advice: "Ask again with --nats or NATS_URL."})
	default:
		err := fault.New(fault.JobLedgerForeign, d.at.Sink, fmt.Sprintf("%s in database %s has life %s", ledgerTable, d.ledger.database, row.Life), "job", d.cfg.Job)
		var sql []string
		for _, table := range []string{ledgerTable, logTable, ownTable} {
			sql = append(sql, "DELETE FROM "+d.ledger.name(table)+d.ledger.mine()+";")
		}
		d.fail("ledger", d.cfg.Job, err, &preflight.Remedy{
			SQL: sql, Advice: "Only when the older life is given up. The tables then count as there before, see existing:.",
		})
	}
	return nil
}

// table judges the target of one source table, in the order of prepare.
func (d *doctor) table(ctx context.Context, schema *rows.Schema, ledgerThere bool) error {
	t := d.targetOf(d.s, schema)
	at := d.at
	at.Table = t.plain
	var own ownership
	var err error
	if ledgerThere {
		if own, err = d.ownership(ctx, d.s, schema.Table(), t.table, at); err != nil {
			d.fail("table", t.plain, translate(ctx, err, at), nil)
			return nil
		}
	}
	found, err := examine(ctx, d.s, d.ledger.database, t.table)
	if err != nil {
		return err
	}
	switch {
	case found == nil && own.fitted:
		d.fail("table", t.plain, fault.New(fault.SinkMissingTable, at.String(), "it was there before", "table", t.plain), nil)
		return nil
	case found == nil:
		if err := d.s.checkKeyless(ctx, d.cfg.Sink.Mode, at); err != nil {
			if fault.CodeOf(err) != fault.SinkSetting {
				return err
			}
			d.fail("require_primary_key", t.plain, err, d.set(keyless[d.s.maria], "OFF"))
			return nil
		}
		d.add(preflight.Finding{Check: "table", Subject: t.plain, Status: preflight.OK, Found: "it will be made"})
		return nil
	}
	var changes []string
	if !own.owned {
		if changes, err = d.fits(ctx, t, found, at); err != nil || changes == nil {
			return err
		}
	}
	add := "it fits"
	if len(changes) > 0 {
		add = "it will be changed: " + strings.Join(changes, " ")
	}
	d.add(preflight.Finding{Check: "table", Subject: t.plain, Status: preflight.OK, Found: add})
	return nil
}

// fits judges a table that was there first. changes are what the start would do to its columns: found out by its own code, which
// is given a pen in place of the table. They are nil when something is wrong, which is a finding.
func (d *doctor) fits(ctx context.Context, t *target, found *relation, at transact.Place) (changes []string, err error) {
	if d.my.Existing != spec.ExistingTruncate {
		if err := d.takeOver(ctx, d.s, t, at); err != nil {
			if fault.CodeOf(err) != fault.SinkNotEmpty {
				return nil, err
			}
			d.fail("table", t.plain, err, &preflight.Remedy{
				Spec: d.at.Sink + ".existing: truncate", Advice: "Or existing: keep, when the rows in it are those that the job would write.",
			})
			return nil, nil
		}
	}
	if found.engine != "InnoDB" {
		err := fault.New(fault.SinkEngine, at.String(), "its engine is "+found.engine, "table", t.plain, "job", d.cfg.Job)
		d.fail("engine", t.plain, err, &preflight.Remedy{SQL: []string{"ALTER TABLE " + t.name + " ENGINE = InnoDB;"}})
		return nil, nil
	}
	changes = []string{}
	a := &alteration{
		t: t, found: found, types: columnTypes(t.schema), maria: d.s.maria, save: func() error { return nil },
		exec: func(sql string) error {
			changes = append(changes, "ALTER TABLE "+t.name+" "+sql+";")
			return nil
		},
	}
	e := t.evolution(a, &d.cfg, d.my, false, at)
	err = t.fit(e, a)
	if err == nil {
		err = t.resolve(e.Known, found, false, at)
	}
	if err != nil {
		d.fail("columns", t.plain, translate(ctx, err, at), d.unfit(t, found, err))
		return nil, nil
	}
	if err := t.checkKey(found, at); err != nil {
		d.fail("key", t.plain, err, d.keyed(t, found))
		return nil, nil
	}
	return changes, nil
}

// unfit says how the columns of a table that is there can be made to fit.
func (d *doctor) unfit(t *target, found *relation, err error) *preflight.Remedy {
	alter := "ALTER TABLE " + t.name + " "
	switch fault.CodeOf(err) {
	case fault.SinkSchemaChange:
		for _, c := range t.schema.Columns() {
			if have := found.columns[c.Name]; have.Generated {
				return &preflight.Remedy{SQL: []string{
					alter + "DROP COLUMN " + quote(have.Name) + ";", alter + "ADD COLUMN " + quote(have.Name) + " " + have.Declared + " NULL;",
				}}
			}
		}
	case fault.SinkConstraint:
		for _, c := range found.columns {
			if !slices.ContainsFunc(t.schema.Columns(), func(s rows.Column) bool { return s.Name == c.Name }) && c.Required {
				return &preflight.Remedy{SQL: []string{alter + "MODIFY " + quote(c.Name) + " " + c.Declared + " NULL;"}}
			}
		}
	default:
	}
	return nil
}

// keyed makes the key that an upsert needs: its columns tell apart what the source does, and there is an index on them.
func (d *doctor) keyed(t *target, found *relation) *preflight.Remedy {
	alter := "ALTER TABLE " + t.name + " "
	var sql, quoted, plain []string
	for _, i := range t.schema.Key() {
		c := found.columns[t.columns[i].plain]
		quoted, plain = append(quoted, quote(c.Name)), append(plain, c.Name)
		if !tellsApart(c.Collation, t.schema.Column(i).Type.Kind) {
			bare, _, _ := strings.Cut(c.Declared, " CHARACTER SET ")
			sql = append(sql, alter+"MODIFY "+quote(c.Name)+" "+bare+" CHARACTER SET utf8mb4 COLLATE "+d.s.collation()+" NOT NULL;")
		}
	}
	slices.Sort(plain)
	if !slices.ContainsFunc(found.unique, func(u []string) bool { return slices.Equal(u, plain) }) {
		sql = append(sql, alter+"ADD UNIQUE INDEX ("+strings.Join(quoted, ", ")+");")
	}
	return &preflight.Remedy{SQL: sql}
}

// grants is an SQL script with the least the account needs; running it again changes nothing.
func (d *doctor) grants(ctx context.Context) string {
	if d.account == "" {
		return ""
	}
	on, err := d.inDatabase(ctx)
	if err != nil {
		return ""
	}
	rights := "SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, CREATE TEMPORARY TABLES"
	if d.empties() {
		rights += ", DROP"
	}
	return fmt.Sprintf("-- %s: account %s writes database %s. Run it as an administrator; it can be run again.\nGRANT %s ON %s TO %s;\n",
		d.at.Sink, d.login, d.ledger.database, rights, on, d.account)
}
