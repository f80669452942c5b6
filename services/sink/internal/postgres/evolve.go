package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/pgcodec"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/core"
)

// evolution brings a target table from the columns that the sink last left it with to those of a schema version, as far
// as the sink's schema_change lets it. It works on what the table has, so that a change which somebody has made by hand
// is taken as made.
type evolution struct {
	t      *target
	found  *relation   // kept up with what is altered
	known  *core.Known // becomes what the new version leaves
	types  []string    // of the schema's columns, if they were made now
	made   bool        // by Weir: only then its types are its business
	policy spec.SchemaChange
	drop   bool // columns may be dropped under lenient too
	at     place
	exec   func(sql string) error
	try    func(sql string) error // like exec, but a refusal leaves the transaction as it was
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
	case e.policy == spec.Evolve || (e.policy == spec.Lenient && e.drop):
		err = e.exec("DROP COLUMN " + quote(k.Target))
	case e.policy == spec.TryEvolve:
		err = e.try("DROP COLUMN " + quote(k.Target))
		if refused(err) {
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

// renames follows columns that have another name at the source. A name that another column still has is waited for; names
// in a ring are freed by a name in between.
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
			k.Target = c.Name // renamed here by hand
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
	return e.rename(waiting)
}

func (e *evolution) rename(waiting []int) error {
	for len(waiting) > 0 {
		var later []int
		for _, i := range waiting {
			k := &e.known.Columns[i]
			if e.known.Holds(k.Name) >= 0 {
				later = append(later, i)
				continue
			}
			if err := e.renameTo(i, k.Name, "column "+k.Target+" is renamed to "+k.Name+" as at the source"); err != nil {
				return err
			}
		}
		if len(later) == len(waiting) {
			if err := e.renameTo(later[0], between, ""); err != nil {
				return err
			}
			if e.known.Columns[later[0]].Target != between {
				return nil // refused; those that wait keep their names too
			}
		}
		waiting = later
	}
	return nil
}

// between is what a column is called while another takes its name.
const between = "weir renames"

func (e *evolution) renameTo(i int, name, note string) error {
	k := &e.known.Columns[i]
	sql := "RENAME COLUMN " + quote(k.Target) + " TO " + quote(name)
	do := e.exec
	if e.policy == spec.TryEvolve {
		do = e.try
	}
	err := do(sql)
	if e.policy == spec.TryEvolve && refused(err) {
		e.note("the target refuses to rename column " + k.Target + " to " + name + "; it goes on taking the values under the name it has")
		return nil
	}
	if err != nil {
		return err
	}
	c := e.found.columns[k.Target]
	delete(e.found.columns, k.Target)
	c.Name = name
	for _, unique := range e.found.unique {
		if at := slices.Index(unique, quote(k.Target)); at >= 0 {
			unique[at] = quote(name)
			slices.Sort(unique)
		}
	}
	e.found.columns[name], k.Target = c, name
	if note != "" {
		e.note(note)
	}
	return nil
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
	return e.retype(i, c, was, have, k.Target)
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
		return e.refuse("column "+c.Name+" is new at the source, and the target's column of this name holds the values of another", "evolve, or allow: [drop_column],")
	case e.policy == spec.Exception && !e.first():
		return e.refuse("column "+c.Name+" is new at the source", "ignore or lenient")
	}
	add := "ADD COLUMN " + quote(c.Name) + " " + e.types[i]
	// Rows written so far are images of rows that have the value by now, except in tables that keep every image.
	filled := c.Filled && e.t.mode == spec.Upsert && !e.first()
	if filled {
		add += " DEFAULT " + quoteText(c.Fill) + "::" + e.types[i]
	}
	do := e.exec
	if e.policy == spec.TryEvolve && c.KeyPos == 0 {
		do = e.try
	}
	err := do(add)
	if e.policy == spec.TryEvolve && c.KeyPos == 0 && refused(err) {
		e.note("the target refuses the new column " + c.Name + "; its values are not written")
		return nil
	}
	if err != nil {
		return err
	}
	k.Target = c.Name
	e.found.columns[c.Name] = column{Name: c.Name, SQLType: e.types[i], Kind: "b", Default: filled}
	if !e.first() {
		e.note("column " + c.Name + " is added as at the source")
	}
	return nil
}

// first reports whether the sink meets the table for the first time, so that nothing has changed yet.
func (e *evolution) first() bool { return e.t.first }

// retype makes a column's type fit.
func (e *evolution) retype(i int, c rows.Column, was string, have column, name string) error {
	want := e.types[i]
	if text := pgcodec.SQLType(c, e.t.schema.Origin()); have.SQLType == text {
		want = text // the target has got a user's type later than the column
	}
	if have.SQLType == want || !e.made {
		return nil
	}
	what := "column " + name + " is " + have.SQLType + " at the target and " + want + " at the source"
	holds, widens, changed := pgcodec.Wider(have.SQLType, want), pgcodec.Wider(want, have.SQLType), was != "" && was != e.types[i]
	alter := "ALTER COLUMN " + quote(name) + " TYPE " + want
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
		if err := e.exec(alter + " USING " + quote(name) + "::" + want); err != nil {
			return err
		}
	case spec.TryEvolve:
		err := e.try(alter + " USING " + quote(name) + "::" + want)
		if refused(err) {
			if pgcodec.Rounds(have.SQLType, want) {
				return e.refuse(what+", which would round values, and the target refuses to change it", "evolve")
			}
			e.note(what + ", and the target refuses to change it; a value that does not fit will stop the job")
			return nil
		}
		if err != nil {
			return err
		}
	case spec.Ignore:
		if pgcodec.Rounds(have.SQLType, want) {
			return e.refuse(what+", which would round values without a word", "lenient or evolve")
		}
		if changed {
			e.note(what + "; a value that does not fit will stop the job")
		}
		return nil
	}
	have.SQLType = want
	e.found.columns[name] = have
	e.note("column " + name + " is " + want + " as at the source")
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
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	switch pg.Code[:2] {
	case "0A", "22", "23", "2B", "42", "54": // not supported, data, constraint, dependent objects, syntax or right, limits
		return true
	}
	return false
}

// quoteText writes a text as SQL.
func quoteText(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// evolve makes the table fit the schema, by the sink's schema_change, and remembers what it has left.
func (c *Committer) evolve(ctx context.Context, s *session, t *target, found *relation, types []string, made bool, at place) error {
	last, err := c.ledger.readKnown(ctx, s, t.schema.Table())
	if err != nil {
		return err
	}
	e := t.evolution(ctx, s, found, types, made, at)
	t.first, e.policy, e.drop = last == nil, cmp.Or(c.cfg.Sink.SchemaChange, spec.Lenient), c.pg.Allows(spec.AllowDropColumn)
	if last != nil {
		e.known.Columns = slices.Clone(last.Columns)
	}
	if err := e.fit(); err != nil {
		return err
	}
	if last != nil && slices.Equal(last.Columns, e.known.Columns) {
		return nil
	}
	return c.ledger.writeKnown(ctx, s, t.schema.Table(), e.known)
}

func (t *target) evolution(ctx context.Context, s *session, found *relation, types []string, made bool, at place) *evolution {
	e := &evolution{t: t, found: found, known: &core.Known{}, types: types, made: made, at: at}
	e.exec = func(sql string) error {
		_, err := s.Exec(ctx, "ALTER TABLE "+t.name+" "+sql)
		return err
	}
	e.try = func(sql string) error { return tried(ctx, s, func() error { return e.exec(sql) }) }
	return e
}

// fit makes the changes and resolves how each column is written.
func (e *evolution) fit() error {
	if err := e.run(); err != nil {
		return err
	}
	if err := e.t.resolve(e, e.at); err != nil || e.t.mode != spec.Changelog {
		return err
	}
	for _, c := range changeColumns {
		if _, ok := e.found.columns[c.name]; ok {
			continue
		}
		if err := e.exec("ADD COLUMN " + c.name + " " + c.sqlType); err != nil {
			return err
		}
	}
	return nil
}

// tried runs do under a savepoint of its own.
func tried(ctx context.Context, s *session, do func() error) error {
	if _, err := s.Exec(ctx, "SAVEPOINT weir_change"); err != nil {
		return err
	}
	err := do()
	if err == nil {
		_, err = s.Exec(ctx, "RELEASE SAVEPOINT weir_change")
		return err
	}
	if s.IsClosed() || ctx.Err() != nil {
		return err
	}
	if _, undo := s.Exec(ctx, "ROLLBACK TO SAVEPOINT weir_change; RELEASE SAVEPOINT weir_change"); undo != nil {
		return undo
	}
	return err
}

// resolve says how each column of the schema is written. Columns of the target that the source does not have are left, as
// long as they may be null; those that the source once had are null in rows that are written now.
func (t *target) resolve(e *evolution, at place) error {
	t.direct = true
	for _, c := range t.schema.Columns() {
		k := e.known.Columns[e.known.Of(c)]
		tc := targetColumn{key: c.KeyPos > 0, stage: pgcodec.StageType(c)}
		if k.Target == "" {
			t.columns = append(t.columns, tc)
			continue
		}
		var direct bool
		tc.name = quote(k.Target)
		tc.cast, direct = conversion(tc.stage, e.found.columns[k.Target])
		t.direct = t.direct && direct
		t.columns = append(t.columns, tc)
		if slices.ContainsFunc(changeColumns[:], func(own struct{ name, sqlType string }) bool { return own.name == k.Target }) && t.mode == spec.Changelog {
			return fault.New(fault.SinkNameClash, at.String(), "column "+k.Target+" of the source has the name of a changelog column")
		}
	}
	for i := 0; i < len(e.known.Columns); i++ {
		k := e.known.Columns[i]
		if !k.Gone {
			continue
		}
		have, there := e.found.columns[k.Target]
		if !there {
			e.known.Drop(i)
			i--
			continue
		}
		t.retained = append(t.retained, quote(k.Target))
		t.direct = t.direct && !have.Default
	}
	for name, c := range e.found.columns {
		if e.known.Holds(name) >= 0 || !c.Required || e.made {
			continue
		}
		return fault.New(fault.SinkConstraint, at.String(), fmt.Sprintf("column %s is NOT NULL and the source does not have it", name),
			"table", t.plain, "constraint", "NOT NULL of "+name)
	}
	return nil
}
