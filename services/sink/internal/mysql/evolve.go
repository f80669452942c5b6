package mysql

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/core"
)

// evolution brings a target table from the columns that the sink last left it with to those of a schema version, as far
// as the sink's schema_change lets it. It works on what the table has, so that a change which somebody has made by hand,
// or an attempt that died behind it, is taken as made.
type evolution struct {
	t      *target
	found  *relation   // kept up with what is altered
	known  *core.Known // becomes what the new version leaves
	types  []string    // of the schema's columns, if they were made now
	made   bool        // by Weir: only then its types are its business
	maria  bool
	first  bool // the sink meets the table for the first time, so that nothing has changed yet
	policy spec.SchemaChange
	drop   bool // columns may be dropped under lenient too
	at     place
	exec   func(sql string) error
	// save remembers known. DDL cannot be part of a transaction with it, so it is called after each change whose repetition
	// could not be told from the first time.
	save func() error
}

// evolve makes the table fit the schema, by the sink's schema_change, and remembers what it has left. A version older than
// the newest that the table fits changes nothing: an attempt that died had made the table ready for more.
func (c *Committer) evolve(ctx context.Context, s *session, t *target, found *relation, types []string, made bool, at place) (*core.Known, error) {
	last, err := c.ledger.readKnown(ctx, s, t.schema.Table())
	if err != nil {
		return nil, err
	}
	if last != nil && last.Version > t.schema.Version() {
		return last, nil
	}
	e := &evolution{
		t: t, found: found, known: &core.Known{}, types: types, made: made, maria: s.maria, first: last == nil,
		policy: cmp.Or(c.cfg.Sink.SchemaChange, spec.Lenient), drop: c.my.Allows(spec.AllowDropColumn), at: at,
	}
	e.exec = func(sql string) error {
		_, err := s.exec(ctx, "ALTER TABLE "+t.name+" "+sql)
		return err
	}
	e.save = func() error { return c.ledger.writeKnown(ctx, s, t.schema.Table(), e.known) }
	if last != nil {
		e.known.Version, e.known.Columns = last.Version, slices.Clone(last.Columns)
	}
	if err := e.run(); err != nil {
		return nil, err
	}
	e.known.Version = t.schema.Version()
	if last != nil && last.Version == e.known.Version && slices.Equal(last.Columns, e.known.Columns) {
		return e.known, nil
	}
	return e.known, e.save()
}

// run makes the changes: what is gone first, then what has moved, so that names are free for what is new.
func (e *evolution) run() error {
	if err := e.known.Retire(e.t.schema.Columns(), e.gone); err != nil {
		return err
	}
	if err := e.renames(); err != nil {
		return err
	}
	for i, c := range e.t.schema.Columns() {
		if err := e.column(i, c); err != nil {
			return err
		}
	}
	if e.t.mode != spec.Changelog {
		return nil
	}
	for _, c := range changeColumns {
		if _, ok := e.found.columns[c.name]; ok {
			continue
		}
		if err := e.exec("ADD COLUMN " + quote(c.name) + " " + c.sqlType + " NULL"); err != nil {
			return err
		}
	}
	return nil
}

// gone follows a column that the source dropped. kept is whether the target still has it.
func (e *evolution) gone(i int) (kept bool, err error) {
	k := &e.known.Columns[i]
	if _, there := e.found.columns[k.Target]; !there {
		return false, nil // not written, or dropped here by hand
	}
	what := "column " + k.Name + " was dropped at the source"
	switch {
	case e.policy == spec.Exception:
		return true, e.refuse(what, "ignore or lenient")
	case e.policy == spec.Evolve || e.policy == spec.TryEvolve || (e.policy == spec.Lenient && e.drop):
		err = e.exec("DROP COLUMN " + quote(k.Target))
		if e.policy == spec.TryEvolve && refused(err) {
			e.note(what + "; the target refuses to drop it, it stays")
			k.Gone = true
			return true, nil
		}
	default:
		e.note(what + "; it stays at the target, with null in rows written from now on")
		k.Gone = true
		return true, nil
	}
	if err != nil {
		return true, err
	}
	e.note(what + ", and here")
	delete(e.found.columns, k.Target)
	return false, nil
}

// renames follows columns that have another name at the source. A name that another column still has is waited for.
func (e *evolution) renames() error {
	var waiting []int
	for _, c := range e.t.schema.Columns() {
		i := e.known.Of(c)
		if i < 0 || e.known.Columns[i].Name == c.Name {
			continue
		}
		k := &e.known.Columns[i]
		was := k.Name
		k.Name = c.Name
		_, there := e.found.columns[k.Target]
		_, done := e.found.columns[c.Name]
		what := "column " + was + " was renamed to " + c.Name + " at the source"
		switch {
		case k.Target == "" || k.Target == c.Name:
		case !there && done && e.known.Holds(c.Name) < 0:
			k.Target = c.Name // renamed here by hand, or by an attempt that died
		case e.policy == spec.Exception:
			return e.refuse(what, "ignore or evolve")
		case e.policy == spec.Ignore:
			e.note(what + "; the target's column keeps the name " + k.Target + " and goes on taking its values")
		case e.policy == spec.Lenient:
			// What the target's column has is not moved: it stays as that of a column that is gone.
			e.known.Columns = append(e.known.Columns, core.KnownColumn{ID: k.ID, Name: was, Target: k.Target, Type: k.Type, Gone: true})
			e.known.Drop(i)
			e.note(what + "; the target gets a new column, null in rows written so far, and keeps " + was + " with what it has")
		default:
			waiting = append(waiting, i)
		}
	}
	for len(waiting) > 0 {
		var later []int
		for _, i := range waiting {
			if e.known.Holds(e.known.Columns[i].Name) >= 0 {
				later = append(later, i)
			} else if err := e.rename(i); err != nil {
				return err
			}
		}
		if len(later) == len(waiting) {
			// A ring would take a step that leaves a column under a name of nobody's, and a crash there could not be told.
			return e.refuse("columns have changed their names among each other at the source", "ignore")
		}
		waiting = later
	}
	return nil
}

func (e *evolution) rename(i int) error {
	k := &e.known.Columns[i]
	err := e.exec("RENAME COLUMN " + quote(k.Target) + " TO " + quote(k.Name))
	if e.policy == spec.TryEvolve && refused(err) {
		e.note("the target refuses to rename column " + k.Target + " to " + k.Name + "; it goes on taking the values under the name it has")
		return nil
	}
	if err != nil {
		return err
	}
	c := e.found.columns[k.Target]
	delete(e.found.columns, k.Target)
	c.Name = k.Name
	for _, unique := range e.found.unique {
		if at := slices.Index(unique, k.Target); at >= 0 {
			unique[at] = k.Name
			slices.Sort(unique)
		}
	}
	e.found.columns[k.Name] = c
	e.note("column " + k.Target + " is renamed to " + k.Name + " as at the source")
	k.Target = k.Name
	return e.save()
}

// column finds out where a column of the schema goes, and makes or alters what it goes to.
func (e *evolution) column(i int, c rows.Column) error {
	at := e.known.Of(c)
	if at < 0 {
		e.known.Columns = append(e.known.Columns, core.KnownColumn{Name: c.Name})
		at = len(e.known.Columns) - 1
	}
	k := &e.known.Columns[at]
	was := k.Type
	k.ID, k.Name, k.Type = c.ID, c.Name, e.types[i]
	if k.Target == "" {
		if err := e.place(at, i, c); err != nil || k.Target == "" {
			return err
		}
	}
	have, there := e.found.columns[k.Target]
	switch {
	case !there:
		return fault.New(fault.SinkSchemaChange, e.at.String(), "column "+k.Target+" is gone at the target", e.names("ignore")...)
	case have.Generated:
		return fault.New(fault.SinkSchemaChange, e.at.String(), "column "+c.Name+" is generated at the target", e.names("ignore")...)
	}
	return e.retype(i, c, was, have)
}

// place gives a column of the source that has no column at the target one: the one of its name, or a new one.
func (e *evolution) place(at, i int, c rows.Column) error {
	k := &e.known.Columns[at]
	_, there := e.found.columns[c.Name]
	held := e.known.Holds(c.Name) >= 0
	switch {
	case there && !held:
		k.Target = c.Name
		return nil
	case e.policy == spec.Ignore && c.KeyPos == 0:
		e.note("column " + c.Name + " is new at the source; its values are not written")
		return nil
	case there:
		return e.refuse("column "+c.Name+" is new at the source, and the target's column of this name holds the values of another",
			"evolve, or allow: [drop_column],")
	case e.policy == spec.Exception && !e.first:
		return e.refuse("column "+c.Name+" is new at the source", "ignore or lenient")
	}
	add := "ADD COLUMN " + quote(c.Name) + " " + e.types[i] + " NULL"
	// Rows written so far are images of rows that have the value by now, except in tables that keep every image.
	if c.Filled && e.t.mode == spec.Upsert && !e.first {
		add += " DEFAULT " + e.fill(c, e.types[i])
	}
	err := e.exec(add)
	if e.policy == spec.TryEvolve && c.KeyPos == 0 && refused(err) {
		e.note("the target refuses the new column " + c.Name + "; its values are not written")
		return nil
	}
	if err != nil {
		return err
	}
	k.Target = c.Name
	e.found.columns[c.Name] = column{Name: c.Name, SQLType: plainType(e.types[i], e.maria), Declared: e.types[i]}
	if !e.first {
		e.note("column " + c.Name + " is added as at the source")
	}
	return nil
}

// fill is the value of a new column in rows that are there, as SQL. It comes in the source's text.
func (e *evolution) fill(c rows.Column, sqlType string) string {
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
	if family, _ := familyOf(sqlType); !e.maria && (family == familyText || family == familyBytes || sqlType == "json") {
		return "(" + value + ")" // the only form that TEXT, BLOB and JSON take
	}
	return value
}

// retype makes a column's type fit.
func (e *evolution) retype(i int, c rows.Column, was string, have column) error {
	want := plainType(e.types[i], e.maria)
	if have.SQLType == want || !e.made {
		return nil
	}
	what := "column " + have.Name + " is " + have.SQLType + " at the target and " + want + " at the source"
	holds, widens, changed := wider(have.SQLType, want), wider(want, have.SQLType), was != "" && was != e.types[i]
	alter := "MODIFY COLUMN " + quote(have.Name) + " " + e.types[i] + " NULL"
	if c.KeyPos > 0 && e.t.mode == spec.Upsert {
		alter = "MODIFY COLUMN " + quote(have.Name) + " " + e.types[i] + " NOT NULL"
	}
	switch e.policy {
	case spec.Exception:
		if changed || !holds {
			return e.refuse(what, "ignore or lenient")
		}
		return nil
	case spec.Lenient:
		if holds {
			return nil
		}
		if !widens {
			return e.refuse(what, "evolve or ignore")
		}
		if err := e.exec(alter); err != nil {
			return err
		}
	case spec.Evolve:
		if err := e.exec(alter); err != nil {
			return err
		}
	case spec.TryEvolve:
		err := e.exec(alter)
		if refused(err) {
			if rounds(have.SQLType, want) {
				return e.refuse(what+", which would round values, and the target refuses to change it", "evolve")
			}
			e.note(what + ", and the target refuses to change it; a value that does not fit will stop the job")
			return nil
		}
		if err != nil {
			return err
		}
	case spec.Ignore:
		if rounds(have.SQLType, want) {
			return e.refuse(what+", which would round values without a word", "lenient or evolve")
		}
		if changed {
			e.note(what + "; a value that does not fit will stop the job")
		}
		return nil
	}
	have.SQLType, have.Declared = want, e.types[i]
	e.found.columns[have.Name] = have
	e.note("column " + have.Name + " is " + want + " as at the source")
	return nil
}

// refuse stops the job at a change, with what can be chosen.
func (e *evolution) refuse(what, choice string) error {
	return fault.New(fault.SinkSchemaChange, e.at.String(), what, e.names(choice)...)
}

func (e *evolution) names(choice string) []string {
	return []string{"table", e.t.plain, "choice", choice, "job", orElse(e.at.job, "<job>")}
}

func (e *evolution) note(text string) { e.t.notes = append(e.t.notes, text) }

// refused reports whether the target says that a change of a table cannot be made: not that it cannot be made now.
func refused(err error) bool {
	my, ok := errors.AsType[*mysql.MyError](err)
	return ok && fault.ClassOf(translateServer(my, place{})) != fault.Transient
}
