package iceberg

import (
	"cmp"
	"slices"

	"github.com/apache/iceberg-go"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/core"
)

// evolution brings the columns of a table from those that the sink last left it with to those of a schema version, as far as the
// sink's schema_change lets it. It is pure: what it leaves is put into the table by one commit. Columns are told apart by field
// ids, so files that are there, or staged, need no rewriting.
type evolution struct {
	schema *rows.Schema
	role   role
	policy spec.SchemaChange
	drop   bool // columns may be dropped under lenient too
	where  string
	job    string

	fields []iceberg.NestedField // become those of the new version
	known  core.Known            // becomes what the new version leaves
	last   int                   // the highest field id given so far
	first  bool                  // the table is new
	notes  []string
}

// run makes the changes: what is gone first, then what has moved, so that names are free for what is new.
func (e *evolution) run() error {
	e.fields, e.known.Columns = slices.Clone(e.fields), slices.Clone(e.known.Columns)
	if err := e.known.Retire(e.schema.Columns(), e.gone); err != nil {
		return err
	}
	if err := e.renames(); err != nil {
		return err
	}
	for _, c := range e.schema.Columns() {
		if err := e.column(c); err != nil {
			return err
		}
	}
	e.known.Version = e.schema.Version()
	return nil
}

func (e *evolution) field(name string) int {
	return slices.IndexFunc(e.fields, func(f iceberg.NestedField) bool { return f.Name == name })
}

// gone follows a column that the source dropped. kept is whether the table still has it.
func (e *evolution) gone(i int) (kept bool, err error) {
	k := &e.known.Columns[i]
	at := e.field(k.Target)
	if at < 0 {
		return false, nil // not written, or dropped here by hand
	}
	what := "column " + k.Name + " was dropped at the source"
	switch {
	case e.policy == spec.Exception:
		return true, e.refuse(what, "ignore or lenient")
	case e.policy == spec.Evolve, e.policy == spec.TryEvolve, e.policy == spec.Lenient && e.drop:
		e.fields = slices.Delete(e.fields, at, at+1)
		e.note(what + ", and here")
		return false, nil
	}
	k.Gone = true
	e.note(what + "; it stays, with null in rows written from now on")
	return true, nil
}

// renames follows columns that have another name at the source. Names in a ring change at once: a schema is replaced as a whole.
func (e *evolution) renames() error {
	type rename struct{ known, field int }
	var all []rename
	for _, c := range e.schema.Columns() {
		i := e.known.Of(c)
		if i < 0 || e.known.Columns[i].Name == c.Name {
			continue
		}
		k := &e.known.Columns[i]
		was := k.Name
		k.Name = c.Name
		what := "column " + was + " was renamed to " + c.Name + " at the source"
		at := e.field(k.Target)
		switch {
		case k.Target == "" || k.Target == c.Name || at < 0:
		case e.policy == spec.Exception:
			return e.refuse(what, "ignore or evolve")
		case e.policy == spec.Ignore:
			e.note(what + "; the table's column keeps the name " + k.Target + " and goes on taking its values")
		case e.policy == spec.Lenient:
			e.known.Columns = append(e.known.Columns, core.KnownColumn{ID: k.ID, Name: was, Target: k.Target, Type: k.Type, Gone: true})
			e.known.Drop(i)
			e.note(what + "; the table gets a new column, null in rows written so far, and keeps " + was + " with what it has")
		default:
			all = append(all, rename{i, at})
			e.note(what + ", and here")
		}
	}
	for _, r := range all {
		e.fields[r.field].Name = e.known.Columns[r.known].Name
		e.known.Columns[r.known].Target = e.known.Columns[r.known].Name
	}
	return nil
}

// column finds out where a column of the schema goes, and makes or alters what it goes to.
func (e *evolution) column(c rows.Column) error {
	at := e.known.Of(c)
	if at < 0 {
		e.known.Columns = append(e.known.Columns, core.KnownColumn{Name: c.Name})
		at = len(e.known.Columns) - 1
	}
	k := &e.known.Columns[at]
	k.ID, k.Name, k.Type = c.ID, c.Name, textOfKind(c.Type)
	if k.Target == "" {
		return e.place(at, c)
	}
	i := e.field(k.Target)
	if i < 0 {
		return fault.New(fault.SinkSchemaChange, e.where, "column "+k.Target+" is gone at the target", e.names("ignore")...)
	}
	return e.retype(i, c)
}

// place gives a column of the source a column of the table.
func (e *evolution) place(at int, c rows.Column) error {
	switch there := e.field(c.Name) >= 0; {
	case there && e.first:
		return fault.New(fault.SinkNameClash, e.where, "column "+c.Name+" of the source has the name of a changelog column")
	case there:
		return e.refuse("column "+c.Name+" is new at the source, and the table's column of this name holds the values of another", "evolve, or allow: [drop_column],")
	case e.policy == spec.Ignore && !e.first && c.KeyPos == 0:
		e.note("column " + c.Name + " is new at the source; its values are not written")
		return nil
	case e.policy == spec.Exception && !e.first:
		return e.refuse("column "+c.Name+" is new at the source", "ignore or lenient")
	case c.KeyPos > 0 && !e.first && e.role == current:
		return fault.New(fault.SinkWrongKey, e.where, "column "+c.Name+" of the key is new at the source", "table", string(e.schema.Table()))
	case c.Filled && e.role == current && !e.first:
		// Format version 2 has no value for rows that were written before a column was there.
		return fault.New(fault.SinkSchemaChange, e.where, "column "+c.Name+" is new at the source with a value in the rows that were there, which tables of format version 2 cannot have",
			e.names("ignore, or copy the table anew (weir job resnapshot) under")...)
	}
	e.last++
	f := iceberg.NestedField{ID: e.last, Name: c.Name, Required: c.KeyPos > 0 && e.role == current}
	f.Type = typeOf(c.Type, func() int { e.last++; return e.last })
	if f.Required && (textOf(f.Type) == "float" || textOf(f.Type) == "double" || c.Type.Kind == rows.KindList) {
		return fault.New(fault.SinkUnsupportedType, e.where, "column "+c.Name+" of the key is a "+c.Type.String()+", which equality deletes cannot compare",
			"column", c.Name, "type", c.Type.String(), "table", string(e.schema.Table()))
	}
	e.fields = append(e.fields, f)
	e.known.Columns[at].Target = c.Name
	if !e.first {
		e.note("column " + c.Name + " is added as at the source")
	}
	return nil
}

// retype makes a column's type fit.
func (e *evolution) retype(i int, c rows.Column) error {
	f := &e.fields[i]
	want := typeOf(c.Type, func() int { return 0 })
	if textOf(f.Type) == textOf(want) {
		return nil
	}
	what := "column " + f.Name + " is " + textOf(f.Type) + " at the target and " + textOf(want) + " at the source"
	switch {
	case holds(f.Type, want):
		if e.policy == spec.Exception {
			return e.refuse(what, "ignore or lenient")
		}
		return nil // values are converted
	case e.policy == spec.Exception:
		return e.refuse(what, "ignore or lenient")
	case e.policy == spec.Ignore:
		if textOf(want) == "double" || textOf(want) == "float" || rounds(f.Type, want) {
			return e.refuse(what+", which would round values without a word", "lenient or evolve")
		}
		e.note(what + "; a value that does not fit will stop the job")
		return nil
	case promotes(f.Type, want):
		f.Type = want
		e.note("column " + f.Name + " is " + textOf(want) + " as at the source")
		return nil
	case e.policy == spec.TryEvolve && !rounds(f.Type, want):
		e.note(what + ", and Iceberg cannot change it; a value that does not fit will stop the job")
		return nil
	}
	return e.refuse(what+", and Iceberg cannot change it", "ignore")
}

// rounds reports whether a value could lose digits on its way into a column without an error.
func rounds(have, want iceberg.Type) bool {
	h, ok := have.(iceberg.DecimalType)
	w, other := want.(iceberg.DecimalType)
	return ok && other && w.Scale() > h.Scale()
}

func (e *evolution) refuse(what, choice string) error {
	return fault.New(fault.SinkSchemaChange, e.where, what, e.names(choice)...)
}

func (e *evolution) names(choice string) []string {
	return []string{"table", string(e.schema.Table()), "choice", choice, "job", cmp.Or(e.job, "<job>")}
}

func (e *evolution) note(text string) { e.notes = append(e.notes, text) }
