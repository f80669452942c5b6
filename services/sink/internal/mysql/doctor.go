package mysql

import (
	"context"
	"fmt"
	"strings"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/preflight"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/checkup"
	"weir.dev/weir/services/sink/internal/core"
	"weir.dev/weir/services/sink/internal/transact"
)

const (
	// packetLeast is the max_allowed_packet below which rows of ordinary size are in danger, packetAdvised MySQL's default.
	packetLeast   = 16 << 20
	packetAdvised = 64 << 20
)

// doctor is a committer that has a session without the lock of its name, so that it ends no session of anybody.
type doctor struct {
	*Committer

	s       *session
	checkup checkup.Checkup
	report  checkup.Report
	account string // as SQL
	login   string // for people
}

// Doctor judges what the start of a committer needs, with the start's own functions: server, settings, rights, ledger, and each
// target table. DDL is no part of a transaction here, so nothing is tried that could succeed: rights are asked for by statements
// about tables that are not there, and writes that find no row. grants is SQL that gives the account the least it needs; empty
// when the target was not reached.
func Doctor(ctx context.Context, c checkup.Checkup) (findings []preflight.Finding, grants string, err error) {
	where := c.Where()
	my, err := configOf(c.Config)
	if err != nil {
		return nil, "", err
	}
	d := doctor{checkup: c, report: checkup.Report{Group: where}, Committer: &Committer{
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
		d.report.Fail("look", "", translate(ctx, err, d.at), nil)
	}
	return d.report.Findings, d.grants(ctx), nil
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
		d.report.Fail("version", "", fault.New(fault.SinkTooOld, d.at.Sink, "its version is "+version), nil)
		return nil
	}
	d.report.OK("connect", "account %s, version %s", d.login, version)
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
	d.report.OK("sql_mode", "sessions of the sink set their own, a strict one")
	if err := d.s.checkFormat(ctx, d.at); err != nil {
		if fault.CodeOf(err) != fault.SinkSetting {
			return err
		}
		d.report.Fail("binlog_format", "", err, d.set("binlog_format", "'ROW'"))
	} else {
		d.report.OK("binlog_format", "it takes rows of READ COMMITTED")
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
		d.report.Warn(name, "it is "+value,
			"the loss of the server's machine can undo epochs that the job believes committed; it then stops (JOB_LEDGER_DIVERGED) rather than go on without them",
			d.set(name, "1"))
	}
	if durable {
		d.report.OK("durability", "a commit is on the disk when it is answered")
	}
	if d.s.packet < packetLeast {
		d.report.Warn("max_allowed_packet", fmt.Sprintf("it is %d bytes", d.s.packet), "a row that does not fit into one statement cannot be written (SINK_ROW)",
			d.set("max_allowed_packet", fmt.Sprint(packetAdvised)))
	} else {
		d.report.OK("max_allowed_packet", "%d MiB", d.s.packet>>20)
	}
	return nil
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
	var sql []string
	for _, table := range []string{ledgerTable, logTable, ownTable} {
		sql = append(sql, "DELETE FROM "+d.ledger.name(table)+d.ledger.mine()+";")
	}
	d.report.Owner(&d.checkup, row, ledgerTable+" in database "+d.ledger.database, preflight.Remedy{SQL: sql})
	return nil
}
