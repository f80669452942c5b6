package mysql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/preflight"
	"weir.dev/weir/pkg/spec"
)

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
		d.report.Fail("rights", "", fault.New(fault.SinkMissingRight, d.at.Sink, rights+" on database "+d.ledger.database,
			"right", rights, "where", d.ledger.database, "role", d.login, "job", d.cfg.Job),
			&preflight.Remedy{SQL: []string{"GRANT " + rights + " ON " + on + " TO " + d.account + ";"}})
		return false, false, nil
	}
	d.report.OK("rights", "account %s has what it needs on database %s", d.login, d.ledger.database)
	if err := d.use(ctx, d.s); err != nil {
		if hasNumber(err, mysql.ER_BAD_DB_ERROR) {
			d.report.OK("database", "it will be made")
			return false, true, nil
		}
		return false, false, err
	}
	found, err := d.s.query(ctx, "SELECT count(*) FROM information_schema.tables WHERE table_schema = "+text(d.ledger.database)+
		" AND table_name IN ("+text(ledgerTable)+", "+text(ownTable)+")")
	return err == nil && found[0].number(0) == 2, true, err
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
