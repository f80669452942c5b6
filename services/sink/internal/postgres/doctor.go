package postgres

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"weir.dev/weir/pkg/preflight"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/checkup"
	"weir.dev/weir/services/sink/internal/transact"
)

// doctor is a committer that has a session for one transaction, which is rolled back in the end.
type doctor struct {
	*Committer

	session  *session
	checkup  checkup.Checkup
	report   checkup.Report
	login    string
	database string
}

// Doctor proves what the start of a committer proves, with the start's own functions, in a transaction that is rolled
// back: server, ledger, a write, and each target table that the rows need. Tables that exist are only looked at: what the
// start would change in them is found out and not done. grants is SQL that gives the role the least it needs; empty when
// the target was not reached.
func Doctor(ctx context.Context, c checkup.Checkup) (findings []preflight.Finding, grants string, err error) {
	where := c.Where()
	pg, err := configOf(c.Config)
	if err != nil {
		return nil, "", err
	}
	life := c.Config.Life
	c.Config.Life = cmp.Or(life, "doctor")
	d := doctor{checkup: c, report: checkup.Report{Group: where}, Committer: &Committer{
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
		d.report.Fail("look", "", translate(ctx, err, d.at), nil)
	}
	return d.report.Findings, d.grants(ctx), nil
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
		d.report.Fail("write", "", err, d.rights(ctx, err))
		return nil
	}
	if err := d.write(ctx); err != nil {
		d.report.Fail("write", "", translate(ctx, err, d.at), d.rights(ctx, err))
		return nil
	}
	d.report.OK("write", "role %s can make and write the ledger in schema %s", d.login, d.ledger.schema)
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
	d.report.Owner(&d.checkup, row, ledgerTable+" in schema "+d.ledger.schema, preflight.Remedy{
		SQL: []string{d.forget(ledgerTable), d.forget(logTable), d.forget(ownTable)}, Database: d.database,
	})
	return nil
}

func (d *doctor) forget(table string) string {
	return fmt.Sprintf("DELETE FROM %s WHERE job = %s AND sink = %s;", d.ledger.name(table), sqlText(d.ledger.job), sqlText(d.ledger.sink))
}

func sqlText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
