package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/pgcodec"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/core"
	"weir.dev/weir/services/sink/internal/transact"
)

// alteration is a target table while its columns are changed; of [core.Table].
type alteration struct {
	t     *target
	found *relation // kept up with what is altered
	types []string  // of the schema's columns, if they were made now
	exec  func(sql string) error
	try   func(sql string) error // like exec, but a refusal leaves the transaction as it was
}

func (t *target) alteration(ctx context.Context, s *session, found *relation, types []string) *alteration {
	a := &alteration{t: t, found: found, types: types}
	a.exec = func(sql string) error {
		_, err := s.Exec(ctx, "ALTER TABLE "+t.name+" "+sql)
		return err
	}
	a.try = func(sql string) error { return tried(ctx, s, func() error { return a.exec(sql) }) }
	return a
}

func (a *alteration) alter(sql string, try bool) error {
	if try {
		return a.try(sql)
	}
	return a.exec(sql)
}

func (a *alteration) Column(name string) (core.TableColumn, bool) {
	c, there := a.found.columns[name]
	return core.TableColumn{Type: c.SQLType, Generated: c.Generated}, there
}

func (a *alteration) Drop(name string, try bool) error {
	if err := a.alter("DROP COLUMN "+quote(name), try); err != nil {
		return err
	}
	delete(a.found.columns, name)
	return nil
}

func (a *alteration) Rename(from, to string, try bool) error {
	if err := a.alter("RENAME COLUMN "+quote(from)+" TO "+quote(to), try); err != nil {
		return err
	}
	c := a.found.columns[from]
	delete(a.found.columns, from)
	c.Name = to
	a.found.columns[to] = c
	for _, unique := range a.found.unique {
		if at := slices.Index(unique, quote(from)); at >= 0 {
			unique[at] = quote(to)
			slices.Sort(unique)
		}
	}
	return nil
}

// Renamed has nothing to do: what is known becomes durable with the change.
func (a *alteration) Renamed() error { return nil }

func (a *alteration) Add(i int, filled, try bool) error {
	c := a.t.schema.Column(i)
	sql := "ADD COLUMN " + quote(c.Name) + " " + a.types[i]
	if filled {
		sql += " DEFAULT " + quoteText(c.Fill) + "::" + a.types[i]
	}
	if err := a.alter(sql, try); err != nil {
		return err
	}
	a.found.columns[c.Name] = column{Name: c.Name, SQLType: a.types[i], Kind: "b", Default: filled}
	return nil
}

func (a *alteration) Retype(name string, _ int, want string, convert, try bool) error {
	sql := "ALTER COLUMN " + quote(name) + " TYPE " + want
	if convert {
		sql += " USING " + quote(name) + "::" + want
	}
	if err := a.alter(sql, try); err != nil {
		return err
	}
	c := a.found.columns[name]
	c.SQLType = want
	a.found.columns[name] = c
	return nil
}

func (a *alteration) Refused(err error) bool {
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

func (a *alteration) Want(i int, have string) string {
	if text := pgcodec.SQLType(a.t.schema.Column(i), a.t.schema.Origin()); have == text {
		return text // the target has got a user's type later than the column
	}
	return a.types[i]
}

func (a *alteration) Wider(x, y string) bool { return pgcodec.Wider(x, y) }

func (a *alteration) Rounds(to, from string) bool { return pgcodec.Rounds(to, from) }

func (a *alteration) Between() string { return "weir renames" }

// quoteText writes a text as SQL.
func quoteText(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// evolution is what a schema version asks of a table that the sink meets for the first time.
func (t *target) evolution(a *alteration, cfg *sink.Config, pg *spec.PostgresSink, made bool, at transact.Place) *core.Evolution {
	return &core.Evolution{
		Schema: t.schema, Mode: t.mode, Policy: cfg.Sink.SchemaChange, DropColumn: pg.Allows(spec.AllowDropColumn), Made: made, First: true,
		Known: &core.Known{}, Types: a.types, Table: a, Where: at.String(), Name: t.plain, Job: at.Job,
	}
}

// evolve makes the table fit the schema, by the sink's schema_change, and remembers what it has left.
func (c *Committer) evolve(ctx context.Context, s *session, t *target, found *relation, types []string, made bool, at transact.Place) error {
	last, err := c.ledger.readKnown(ctx, s, t.schema.Table())
	if err != nil {
		return err
	}
	a := t.alteration(ctx, s, found, types)
	e := t.evolution(a, &c.cfg, c.pg, made, at)
	if last != nil {
		e.First, e.Known.Columns = false, slices.Clone(last.Columns)
	}
	if err := t.fit(e, a, at); err != nil {
		return err
	}
	if last != nil && slices.Equal(last.Columns, e.Known.Columns) {
		return nil
	}
	return c.ledger.writeKnown(ctx, s, t.schema.Table(), e.Known)
}

// fit makes the changes and resolves how each column is written.
func (t *target) fit(e *core.Evolution, a *alteration, at transact.Place) error {
	err := e.Run()
	t.notes = e.Notes
	if err != nil {
		return err
	}
	if err := t.resolve(e.Known, a.found, e.Made, at); err != nil || t.mode != spec.Changelog {
		return err
	}
	for _, c := range changeColumns {
		if _, ok := a.found.columns[c.name]; ok {
			continue
		}
		if err := a.exec("ADD COLUMN " + c.name + " " + c.sqlType); err != nil {
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
func (t *target) resolve(known *core.Known, found *relation, made bool, at transact.Place) error {
	t.direct = true
	for _, c := range t.schema.Columns() {
		k := known.Columns[known.Of(c)]
		tc := targetColumn{key: c.KeyPos > 0, stage: pgcodec.StageType(c)}
		if k.Target == "" {
			t.columns = append(t.columns, tc)
			continue
		}
		var direct bool
		tc.name = quote(k.Target)
		tc.cast, direct = conversion(tc.stage, found.columns[k.Target])
		t.direct = t.direct && direct
		t.columns = append(t.columns, tc)
		if slices.ContainsFunc(changeColumns[:], func(own struct{ name, sqlType string }) bool { return own.name == k.Target }) && t.mode == spec.Changelog {
			return fault.New(fault.SinkNameClash, at.String(), "column "+k.Target+" of the source has the name of a changelog column")
		}
	}
	for i := 0; i < len(known.Columns); i++ {
		k := known.Columns[i]
		if !k.Gone {
			continue
		}
		have, there := found.columns[k.Target]
		if !there {
			known.Drop(i)
			i--
			continue
		}
		t.retained = append(t.retained, quote(k.Target))
		t.direct = t.direct && !have.Default
	}
	for name, c := range found.columns {
		if known.Holds(name) >= 0 || !c.Required || made {
			continue
		}
		return fault.New(fault.SinkConstraint, at.String(), fmt.Sprintf("column %s is NOT NULL and the source does not have it", name),
			"table", t.plain, "constraint", "NOT NULL of "+name)
	}
	return nil
}
