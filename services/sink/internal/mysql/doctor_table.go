package mysql

import (
	"context"
	"slices"
	"strings"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/preflight"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/transact"
)

// table judges the target of one source table, in the order of prepare.
func (d *doctor) table(ctx context.Context, schema *rows.Schema, ledgerThere bool) error {
	t := d.targetOf(d.s, schema)
	at := d.at
	at.Table = t.plain
	var own ownership
	var err error
	if ledgerThere {
		if own, err = d.ownership(ctx, d.s, schema.Table(), t.table, at); err != nil {
			d.report.Fail("table", t.plain, translate(ctx, err, at), nil)
			return nil
		}
	}
	found, err := examine(ctx, d.s, d.ledger.database, t.table)
	if err != nil {
		return err
	}
	switch {
	case found == nil && own.fitted:
		d.report.Fail("table", t.plain, fault.New(fault.SinkMissingTable, at.String(), "it was there before", "table", t.plain), nil)
		return nil
	case found == nil:
		if err := d.s.checkKeyless(ctx, d.cfg.Sink.Mode, at); err != nil {
			if fault.CodeOf(err) != fault.SinkSetting {
				return err
			}
			d.report.Fail("require_primary_key", t.plain, err, d.set(keyless[d.s.maria], "OFF"))
			return nil
		}
		d.report.Made(t.plain)
		return nil
	}
	var changes []string
	if !own.owned {
		if changes, err = d.fits(ctx, t, found, at); err != nil || changes == nil {
			return err
		}
	}
	d.report.Fits(t.plain, changes)
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
			d.report.Fail("table", t.plain, err, d.report.NotEmpty(err))
			return nil, nil
		}
	}
	if found.engine != "InnoDB" {
		err := fault.New(fault.SinkEngine, at.String(), "its engine is "+found.engine, "table", t.plain, "job", d.cfg.Job)
		d.report.Fail("engine", t.plain, err, &preflight.Remedy{SQL: []string{"ALTER TABLE " + t.name + " ENGINE = InnoDB;"}})
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
		d.report.Fail("columns", t.plain, translate(ctx, err, at), d.unfit(t, found, err))
		return nil, nil
	}
	if err := t.checkKey(found, at); err != nil {
		d.report.Fail("key", t.plain, err, d.keyed(t, found))
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
