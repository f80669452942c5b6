package core

import (
	"cmp"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
)

// Evolution brings a target table from the columns that the sink last left it with to those of a schema version, as far as the
// sink's schema_change lets it. It works on what the table has, so that a change which somebody has made by hand, or an attempt
// that died behind it, is taken as made.
type Evolution struct {
	Schema *rows.Schema
	Mode   spec.Mode
	Policy spec.SchemaChange
	// DropColumn lets columns be dropped under lenient too.
	DropColumn bool
	// Made says that Weir has made the table: only then its types are its business.
	Made bool
	// First says that the sink meets the table for the first time, so that nothing has changed yet.
	First bool
	// Known becomes what the new version leaves.
	Known *Known
	// Types are those of the schema's columns, if they were made now.
	Types []string
	Table Table
	// Where is the place of a fault; Name and Job are what its remedy calls the table and the job.
	Where, Name, Job string
	// Notes say what was changed or left, for people.
	Notes []string
}

// Table is a table at a target while its columns are changed. Names are those of columns, not quoted. What a change leaves,
// Column shows at once. With try a change that the target refuses leaves everything as it was.
type Table interface {
	Column(name string) (c TableColumn, there bool)
	Drop(name string, try bool) error
	Rename(from, to string, try bool) error
	// Renamed is called when what is known of the columns has followed a rename.
	Renamed() error
	// Add makes a column of the schema. With filled, rows that are there get the value that the source has given its rows.
	Add(i int, filled, try bool) error
	// Retype gives a column the type want, that of a column of the schema. With convert values may be cast to it.
	Retype(name string, i int, want string, convert, try bool) error
	// Refused reports whether the target says that a change cannot be made: not that it cannot be made now.
	Refused(err error) bool

	// Want is the type that a column of the schema should have where it has the type have.
	Want(i int, have string) string
	// Wider reports whether a holds every value of b, and more.
	Wider(a, b string) bool
	// Rounds reports whether values would be rounded without a word on the way.
	Rounds(to, from string) bool
	// Between is what a column may be called while another takes its name; empty where a crash there could not be told.
	Between() string
}

// TableColumn is a column that a target has.
type TableColumn struct {
	Type      string
	Generated bool
}

// Run makes the changes: what is gone first, then what has moved, so that names are free for what is new.
func (e *Evolution) Run() error {
	e.Policy = cmp.Or(e.Policy, spec.Lenient)
	if err := e.Known.Retire(e.Schema.Columns(), e.gone); err != nil {
		return err
	}
	if err := e.renames(); err != nil {
		return err
	}
	for i, c := range e.Schema.Columns() {
		if err := e.column(i, c); err != nil {
			return err
		}
	}
	return nil
}

// tries reports whether a change may be refused by the target.
func (e *Evolution) tries() bool { return e.Policy == spec.TryEvolve }

// evolves reports whether the target follows the source in everything.
func (e *Evolution) evolves() bool { return e.Policy == spec.Evolve || e.Policy == spec.TryEvolve }

// gone follows a column that the source dropped. kept is whether the target still has it.
func (e *Evolution) gone(i int) (kept bool, err error) {
	k := &e.Known.Columns[i]
	if _, there := e.Table.Column(k.Target); !there {
		return false, nil // not written, or dropped here by hand
	}
	what := "column " + k.Name + " was dropped at the source"
	switch {
	case e.Policy == spec.Exception:
		return true, e.refuse(what, "ignore or lenient")
	case !e.evolves() && (e.Policy != spec.Lenient || !e.DropColumn):
		e.note(what + "; it stays at the target, with null in rows written from now on")
		k.Gone = true
		return true, nil
	}
	err = e.Table.Drop(k.Target, e.tries())
	if e.tries() && e.Table.Refused(err) {
		e.note(what + "; the target refuses to drop it, it stays")
		k.Gone = true
		return true, nil
	}
	if err != nil {
		return true, err
	}
	e.note(what + ", and here")
	return false, nil
}

// renames follows columns that have another name at the source.
func (e *Evolution) renames() error {
	var waiting []int
	for _, c := range e.Schema.Columns() {
		i := e.Known.Of(c)
		if i < 0 || e.Known.Columns[i].Name == c.Name {
			continue
		}
		k := &e.Known.Columns[i]
		was := k.Name
		k.Name = c.Name
		_, there := e.Table.Column(k.Target)
		_, done := e.Table.Column(c.Name)
		what := "column " + was + " was renamed to " + c.Name + " at the source"
		switch {
		case k.Target == "" || k.Target == c.Name:
		case !there && done && e.Known.Holds(c.Name) < 0:
			k.Target = c.Name // renamed here by hand, or by an attempt that died
		case e.Policy == spec.Exception:
			return e.refuse(what, "ignore or evolve")
		case e.Policy == spec.Ignore:
			e.note(what + "; the target's column keeps the name " + k.Target + " and goes on taking its values")
		case e.Policy == spec.Lenient:
			// What the target's column has is not moved: it stays as that of a column that is gone.
			e.Known.Columns = append(e.Known.Columns, KnownColumn{ID: k.ID, Name: was, Target: k.Target, Type: k.Type, Gone: true})
			e.Known.Drop(i)
			e.note(what + "; the target gets a new column, null in rows written so far, and keeps " + was + " with what it has")
		default:
			waiting = append(waiting, i)
		}
	}
	return e.follow(waiting)
}

// follow renames columns of the target. A name that another column still has is waited for; names in a ring are freed by a name
// in between.
func (e *Evolution) follow(waiting []int) error {
	for len(waiting) > 0 {
		var later []int
		for _, i := range waiting {
			k := &e.Known.Columns[i]
			if e.Known.Holds(k.Name) >= 0 {
				later = append(later, i)
				continue
			}
			if err := e.rename(i, k.Name, "column "+k.Target+" is renamed to "+k.Name+" as at the source"); err != nil {
				return err
			}
		}
		if len(later) == len(waiting) {
			between := e.Table.Between()
			if between == "" {
				return e.refuse("columns have changed their names among each other at the source", "ignore")
			}
			if err := e.rename(later[0], between, ""); err != nil {
				return err
			}
			if e.Known.Columns[later[0]].Target != between {
				return nil // refused; those that wait keep their names too
			}
		}
		waiting = later
	}
	return nil
}

func (e *Evolution) rename(i int, name, note string) error {
	k := &e.Known.Columns[i]
	err := e.Table.Rename(k.Target, name, e.tries())
	if e.tries() && e.Table.Refused(err) {
		e.note("the target refuses to rename column " + k.Target + " to " + name + "; it goes on taking the values under the name it has")
		return nil
	}
	if err != nil {
		return err
	}
	k.Target = name
	if note != "" {
		e.note(note)
	}
	return e.Table.Renamed()
}

// column finds out where a column of the schema goes, and makes or alters what it goes to.
func (e *Evolution) column(i int, c rows.Column) error {
	at := e.Known.Of(c)
	if at < 0 {
		e.Known.Columns = append(e.Known.Columns, KnownColumn{Name: c.Name})
		at = len(e.Known.Columns) - 1
	}
	k := &e.Known.Columns[at]
	was := k.Type
	k.ID, k.Name, k.Type = c.ID, c.Name, e.Types[i]
	if k.Target == "" {
		if err := e.place(k, i, c); err != nil || k.Target == "" {
			return err
		}
	}
	have, there := e.Table.Column(k.Target)
	switch {
	case !there:
		return e.refuse("column "+k.Target+" is gone at the target", "ignore")
	case have.Generated:
		return e.refuse("column "+c.Name+" is generated at the target", "ignore")
	}
	return e.retype(i, k.Target, was, have.Type)
}

// place gives a column of the source that has no column at the target one: the one of its name, or a new one.
func (e *Evolution) place(k *KnownColumn, i int, c rows.Column) error {
	_, there := e.Table.Column(c.Name)
	held := e.Known.Holds(c.Name) >= 0
	switch {
	case there && !held:
		k.Target = c.Name
		return nil
	case e.Policy == spec.Ignore && c.KeyPos == 0:
		e.note("column " + c.Name + " is new at the source; its values are not written")
		return nil
	case there:
		return e.refuse("column "+c.Name+" is new at the source, and the target's column of this name holds the values of another",
			"evolve, or allow: [drop_column],")
	case e.Policy == spec.Exception && !e.First:
		return e.refuse("column "+c.Name+" is new at the source", "ignore or lenient")
	}
	// Rows written so far are images of rows that have the value by now, except in tables that keep every image.
	filled := c.Filled && e.Mode == spec.Upsert && !e.First
	try := e.tries() && c.KeyPos == 0
	err := e.Table.Add(i, filled, try)
	if try && e.Table.Refused(err) {
		e.note("the target refuses the new column " + c.Name + "; its values are not written")
		return nil
	}
	if err != nil {
		return err
	}
	k.Target = c.Name
	if !e.First {
		e.note("column " + c.Name + " is added as at the source")
	}
	return nil
}

// retype makes a column's type fit. was is what it would have been made as for the version before.
func (e *Evolution) retype(i int, name, was, have string) error {
	want := e.Table.Want(i, have)
	if have == want || !e.Made {
		return nil
	}
	what := "column " + name + " is " + have + " at the target and " + want + " at the source"
	holds, widens, changed := e.Table.Wider(have, want), e.Table.Wider(want, have), was != "" && was != e.Types[i]
	switch e.Policy {
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
	case spec.Evolve, spec.TryEvolve:
	case spec.Ignore:
		if e.Table.Rounds(have, want) {
			return e.refuse(what+", which would round values without a word", "lenient or evolve")
		}
		if changed {
			e.note(what + "; a value that does not fit will stop the job")
		}
		return nil
	}
	err := e.Table.Retype(name, i, want, e.evolves(), e.tries())
	if e.tries() && e.Table.Refused(err) {
		if e.Table.Rounds(have, want) {
			return e.refuse(what+", which would round values, and the target refuses to change it", "evolve")
		}
		e.note(what + ", and the target refuses to change it; a value that does not fit will stop the job")
		return nil
	}
	if err != nil {
		return err
	}
	e.note("column " + name + " is " + want + " as at the source")
	return nil
}

// refuse stops the job at a change, with what can be chosen.
func (e *Evolution) refuse(what, choice string) error {
	return fault.New(fault.SinkSchemaChange, e.Where, what, "table", e.Name, "choice", choice, "job", cmp.Or(e.Job, "<job>"))
}

func (e *Evolution) note(text string) { e.Notes = append(e.Notes, text) }
