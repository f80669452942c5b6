package mysql

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/core"
	"weir.dev/weir/services/sink/internal/transact"
)

// alteration is a target table while its columns are changed; of [core.Table]. Here a change that is refused leaves nothing to
// be undone.
type alteration struct {
	t     *target
	found *relation // kept up with what is altered
	types []string  // of the schema's columns, if they were made now
	maria bool
	exec  func(sql string) error
	// save remembers what is known. DDL cannot be part of a transaction with it, so it is called after each change whose repetition
	// could not be told from the first time.
	save func() error
}

func (a *alteration) Column(name string) (core.TableColumn, bool) {
	c, there := a.found.columns[name]
	return core.TableColumn{Type: c.SQLType, Generated: c.Generated}, there
}

func (a *alteration) Drop(name string, _ bool) error {
	if err := a.exec("DROP COLUMN " + quote(name)); err != nil {
		return err
	}
	delete(a.found.columns, name)
	return nil
}

func (a *alteration) Rename(from, to string, _ bool) error {
	if err := a.exec("RENAME COLUMN " + quote(from) + " TO " + quote(to)); err != nil {
		return err
	}
	c := a.found.columns[from]
	delete(a.found.columns, from)
	c.Name = to
	a.found.columns[to] = c
	for _, unique := range a.found.unique {
		if at := slices.Index(unique, from); at >= 0 {
			unique[at] = to
			slices.Sort(unique)
		}
	}
	return nil
}

func (a *alteration) Renamed() error { return a.save() }

func (a *alteration) Add(i int, filled, _ bool) error {
	c := a.t.schema.Column(i)
	sql := "ADD COLUMN " + quote(c.Name) + " " + a.types[i] + " NULL"
	if filled {
		sql += " DEFAULT " + a.fill(c, a.types[i])
	}
	if err := a.exec(sql); err != nil {
		return err
	}
	a.found.columns[c.Name] = column{Name: c.Name, SQLType: plainType(a.types[i], a.maria), Declared: a.types[i]}
	return nil
}

// fill is the value of a new column in rows that are there, as SQL. It comes in the source's text.
func (a *alteration) fill(c rows.Column, sqlType string) string {
	value := text(c.Fill)
	switch c.Type.Kind {
	case rows.KindBool:
		value = "0"
		if c.Fill == "t" || c.Fill == "true" || c.Fill == "1" {
			value = "1"
		}
	case rows.KindBytes:
		if digits, ok := strings.CutPrefix(c.Fill, `\x`); ok {
			if _, err := hex.DecodeString(digits); err == nil {
				value = "x'" + digits + "'"
			}
		}
	case rows.KindTimestampTZ:
		value = text(strings.TrimSuffix(c.Fill, "+00"))
	default:
	}
	if family, _ := familyOf(sqlType); !a.maria && (family == familyText || family == familyBytes || sqlType == "json") {
		return "(" + value + ")" // the only form that TEXT, BLOB and JSON take
	}
	return value
}

func (a *alteration) Retype(name string, i int, want string, _, _ bool) error {
	null := " NULL"
	if a.t.schema.Column(i).KeyPos > 0 && a.t.mode == spec.Upsert {
		null = " NOT NULL"
	}
	if err := a.exec("MODIFY COLUMN " + quote(name) + " " + a.types[i] + null); err != nil {
		return err
	}
	c := a.found.columns[name]
	c.SQLType, c.Declared = want, a.types[i]
	a.found.columns[name] = c
	return nil
}

func (a *alteration) Refused(err error) bool {
	my, ok := errors.AsType[*mysql.MyError](err)
	return ok && fault.ClassOf(translateServer(my, transact.Place{})) != fault.Transient
}

func (a *alteration) Want(i int, _ string) string { return plainType(a.types[i], a.maria) }

func (a *alteration) Wider(x, y string) bool { return wider(x, y) }

func (a *alteration) Rounds(to, from string) bool { return rounds(to, from) }

// Between is no name: each step of a ring is made for good, and a crash behind it would leave a column that is nobody's.
func (a *alteration) Between() string { return "" }

// changeLog adds the columns of a changelog to a table that lacks them.
func (a *alteration) changeLog() error {
	for _, c := range changeColumns {
		if _, ok := a.found.columns[c.name]; ok {
			continue
		}
		if err := a.exec("ADD COLUMN " + quote(c.name) + " " + c.sqlType + " NULL"); err != nil {
			return err
		}
	}
	return nil
}

// evolution is what a schema version asks of a table that the sink meets for the first time.
func (t *target) evolution(a *alteration, cfg *sink.Config, my *spec.MySQLSink, made bool, at transact.Place) *core.Evolution {
	return &core.Evolution{
		Schema: t.schema, Mode: t.mode, Policy: cfg.Sink.SchemaChange, DropColumn: my.Allows(spec.AllowDropColumn), Made: made, First: true,
		Known: &core.Known{}, Types: a.types, Table: a, Where: at.String(), Name: t.plain, Job: at.Job,
	}
}

// fit makes the changes.
func (t *target) fit(e *core.Evolution, a *alteration) error {
	err := e.Run()
	t.notes = e.Notes
	if err != nil || t.mode != spec.Changelog {
		return err
	}
	return a.changeLog()
}

// evolve makes the table fit the schema, by the sink's schema_change, and remembers what it has left. A version older than
// the newest that the table fits changes nothing: an attempt that died had made the table ready for more.
func (c *Committer) evolve(ctx context.Context, s *session, t *target, found *relation, types []string, made bool, at transact.Place) (*core.Known, error) {
	last, err := c.ledger.readKnown(ctx, s, t.schema.Table())
	if err != nil {
		return nil, err
	}
	if last != nil && last.Version > t.schema.Version() {
		return last, nil
	}
	a := &alteration{t: t, found: found, types: types, maria: s.maria}
	e := t.evolution(a, &c.cfg, c.my, made, at)
	if last != nil {
		e.First, e.Known.Version, e.Known.Columns = false, last.Version, slices.Clone(last.Columns)
	}
	a.exec = func(sql string) error {
		_, err := s.exec(ctx, "ALTER TABLE "+t.name+" "+sql)
		return err
	}
	a.save = func() error { return c.ledger.writeKnown(ctx, s, t.schema.Table(), e.Known) }
	if err := t.fit(e, a); err != nil {
		return nil, err
	}
	e.Known.Version = t.schema.Version()
	if last != nil && last.Version == e.Known.Version && slices.Equal(last.Columns, e.Known.Columns) {
		return e.Known, nil
	}
	return e.Known, a.save()
}
