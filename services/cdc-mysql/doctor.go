package cdcmysql

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"

	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/preflight"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/cdc-mysql/internal/catalog"
	"weir.dev/weir/services/cdc-mysql/internal/core"
	"weir.dev/weir/services/cdc-mysql/internal/doctor"
)

// Checkup asks [Doctor] about one source.
type Checkup struct {
	Job    string
	Source spec.Source
	// Resolve turns a reference of the spec into its value.
	Resolve func(ref string) (string, error)
	// Modes are those of the sinks that take the rows of the source.
	Modes []spec.Mode
}

// Diagnosis is what Doctor found.
type Diagnosis struct {
	// Findings have one entry for each check, and one for each table that is not as it should be.
	Findings []preflight.Finding
	// Schemas are the rows that the captured tables would have.
	Schemas []*rows.Schema
	// Grants is SQL that gives the account the least it needs, and can be run again; empty when the server was not reached.
	Grants string
}

// Doctor looks at the server and the tables of a source as its start would, and changes nothing. It judges with the functions of
// the start, so that both agree. Findings never hold a password or the value of a row. The error is that of ctx, or a defect; what
// is wrong with the server is a finding.
func Doctor(ctx context.Context, c Checkup) (Diagnosis, error) {
	where := "sources." + c.Source.Name
	o, err := openDoctor(c.Job, c.Source, c.Resolve)
	if err != nil {
		return Diagnosis{Findings: []preflight.Finding{preflight.Failed(where, "references", err, nil)}}, nil
	}
	session, err := o.target.Open(ctx)
	if err != nil {
		return Diagnosis{Findings: []preflight.Finding{preflight.Failed(where, "connect", err, nil)}}, context.Cause(ctx)
	}
	defer session.Close()
	x := examination{setup: &setup{opened: o, session: session}, checkup: c}
	err = x.run(ctx)
	if err != nil && ctx.Err() == nil {
		x.found(preflight.Failed(where, "look", o.target.Fault(err), nil))
		err = nil
	}
	return x.Diagnosis, err
}

// openDoctor opens a source under a name that belongs to no life.
func openDoctor(job string, s spec.Source, resolve func(string) (string, error)) (*opened, error) {
	return open(source.Config{
		Identity: source.Identity{Job: job, Life: "doctor"}, Source: s, Resolve: resolve, Logger: slog.New(slog.DiscardHandler),
	})
}

// examination is one run of Doctor on an open session.
type examination struct {
	*setup
	Diagnosis

	checkup Checkup
	known   *doctor.Facts
}

func (x *examination) found(f ...preflight.Finding) { x.Findings = append(x.Findings, f...) }

func (x *examination) run(ctx context.Context) (err error) {
	if x.facts, err = x.session.Facts(ctx); err != nil {
		return err
	}
	if x.known, err = doctor.Look(ctx, x.session, x.facts); err != nil {
		return err
	}
	x.found(x.known.Judge(x.where, x.checkCommits(ctx))...)
	if x.facts.CheckLog(x.where) == nil {
		r := doctor.Rights{Dump: x.dump(ctx)}
		_, r.Status = x.session.Status(ctx, x.facts)
		x.found(x.known.Replication(x.where, r)...)
	}
	return x.tables(ctx)
}

// dump asks for the log, as a reader does, and leaves with the first event.
func (x *examination) dump(ctx context.Context) error {
	at, err := x.head(ctx)
	if err != nil {
		return err
	}
	s, err := x.target.Dump(ctx, x.chosenID("doctor", 0), &at)
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = s.Next()
	return err
}

func (x *examination) tables(ctx context.Context) error {
	all, err := catalog.List(ctx, x.session)
	if err != nil {
		return err
	}
	var can, cannot []*catalog.Table
	for _, t := range all {
		switch {
		case !x.captures(t.Name):
		case t.Obstacle != "":
			cannot = append(cannot, t)
		default:
			can = append(can, t)
		}
	}
	x.found(x.known.Skipped(x.where, cannot)...)
	databases, everywhere, err := x.databases(ctx, can)
	if err != nil {
		return err
	}
	x.Grants = x.known.Grants(x.where, databases, everywhere)
	if len(can) == 0 {
		err := fault.New(fault.MYNoTables, x.where+".tables", fmt.Sprintf("none of the %d tables that account %s can see matches", len(all), x.known.Login))
		x.found(preflight.Failed(x.where, "tables", err, nil))
		return nil
	}
	tables, err := x.describe(ctx, can)
	if err != nil {
		return err
	}
	x.found(x.known.Captured(doctor.Plan{
		Where: x.where, Copies: x.source.Snapshot.Mode != spec.SnapshotNever, Modes: x.checkup.Modes, WholeLimit: halves.SpoolBytes,
	}, tables)...)
	return nil
}

// databases are those that the patterns name, or everywhere when one names none. What of them the account is not shown is found.
func (x *examination) databases(ctx context.Context, seen []*catalog.Table) (names []string, everywhere bool, err error) {
	var hidden []string
	var missing []core.Name
	for _, p := range x.source.Tables {
		schema, one := p.Schema()
		if p.Excludes() {
			continue
		}
		if !one {
			everywhere = true
			continue
		}
		if !slices.Contains(names, schema) {
			names = append(names, schema)
		}
		if _, table, exact := p.Exact(); exact {
			if name := (core.Name{Schema: schema, Table: table}); x.captures(name) && !slices.ContainsFunc(seen, func(t *catalog.Table) bool { return t.Name == name }) {
				missing = append(missing, name)
			}
			continue
		}
		may, err := x.readsAll(ctx, schema)
		if err != nil {
			return nil, false, err
		}
		if !may && !slices.Contains(hidden, schema) {
			hidden = append(hidden, schema)
		}
	}
	x.found(x.known.Unseen(x.where, hidden, missing)...)
	return names, everywhere, nil
}

// readsAll reports whether the account may read every table of a database: only then is it told that one is not there.
func (x *examination) readsAll(ctx context.Context, database string) (bool, error) {
	err := x.session.Exec(ctx, "SELECT 1 FROM "+core.Name{Schema: database, Table: "weir_doctor"}.Quoted()+" LIMIT 0")
	switch fault.CodeOf(err) {
	case fault.MYNoRight, fault.MYAccess:
		return false, nil
	case fault.MYSchemaChanged: // there is no such table
		return true, nil
	default:
		return err == nil, err
	}
}

// describe judges each table alone with the functions that the start uses on all.
func (x *examination) describe(ctx context.Context, list []*catalog.Table) ([]*doctor.Table, error) {
	if err := catalog.Describe(ctx, x.session, list); err != nil {
		return nil, err
	}
	tables := make([]*doctor.Table, len(list))
	for i, t := range list {
		d := &doctor.Table{Table: t, Bytes: t.Rows * t.RowBytes}
		tables[i] = d
		err := x.session.Exec(ctx, "SELECT * FROM "+t.Quoted()+" LIMIT 0")
		if code := fault.CodeOf(err); code == fault.MYNoRight || code == fault.MYAccess {
			d.NoSelect = err
			continue // columns without a right on them are not seen
		}
		if err != nil {
			return nil, err
		}
		create, err := x.session.One(ctx, "SHOW CREATE TABLE "+t.Quoted())
		if err != nil {
			return nil, err
		}
		if len(create) != 2 {
			continue // something else by now
		}
		d.Keys = doctor.ForeignKeys(t.Name, create[1])
		if err := x.read(d, create[1]); err != nil {
			return nil, err
		}
	}
	return tables, doctor.Tables(ctx, x.session, tables)
}

// read finds out how the rows of a table are read, or why they cannot be. create is the statement that makes the table.
func (x *examination) read(d *doctor.Table, create string) error {
	captured, err := x.capture(d.Table, 1, schemaVersion{})
	if err == nil {
		d.Whole = captured.Whole
		bound, err := x.bind(x.ofCatalog(d.Table), firstVersion, nil)
		if err == nil {
			x.Schemas = append(x.Schemas, bound.Schema())
		}
		return err
	}
	d.Unreadable = err
	if i := slices.IndexFunc(d.Columns, func(c catalog.Column) bool { return c.Err != nil }); i >= 0 {
		d.Definition = readable(create, d.Columns[i])
	}
	return nil
}

var (
	charset    = regexp.MustCompile(` (CHARACTER SET|COLLATE) \w+`)
	compressed = regexp.MustCompile(` ?/\*M?![0-9]* ?COMPRESSED[^*]*\*/`)
)

// readable is the definition of a column, as its table's statement has it, in a form that can be decoded: not compressed, in a
// character set that is known. It is empty when the line is not found, or when neither is the reason.
func readable(create string, c catalog.Column) string {
	for line := range strings.Lines(create) {
		line = strings.TrimSuffix(strings.TrimSpace(line), ",")
		rest, ok := strings.CutPrefix(line, core.Quote(c.Name)+" ")
		if !ok {
			continue
		}
		fixed := charset.ReplaceAllString(compressed.ReplaceAllString(rest, ""), "")
		if words := compressed.ReplaceAllString(c.Words, ""); c.Collation != "" && strings.HasPrefix(fixed, words) {
			fixed = words + " CHARACTER SET utf8mb4" + fixed[len(words):]
		}
		if fixed == rest {
			return ""
		}
		return core.Quote(c.Name) + " " + fixed
	}
	return ""
}
