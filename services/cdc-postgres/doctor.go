package cdcpostgres

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/preflight"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/cdc-postgres/internal/catalog"
	"weir.dev/weir/services/cdc-postgres/internal/core"
	"weir.dev/weir/services/cdc-postgres/internal/doctor"
	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

// Life is a life of a job that still needs its slot and its publication.
type Life = doctor.Life

// Checkup asks [Doctor] about one source.
type Checkup struct {
	Job    string
	Source spec.Source
	// Resolve turns a reference of the spec into its value.
	Resolve func(ref string) (string, error)
	// Modes are those of the sinks that take the rows of the source.
	Modes []spec.Mode
	// Lives are those of all jobs of the mesh that are not over; LivesKnown is false when no mesh could be asked.
	Lives      []Life
	LivesKnown bool
	// Old is from which age on an open transaction is reported.
	Old time.Duration
}

// Diagnosis is what Doctor found.
type Diagnosis struct {
	// Findings have one entry for each check, and one for each table or slot that is not as it should be.
	Findings []preflight.Finding
	// Schemas are the rows that the captured tables would have.
	Schemas []*rows.Schema
	// Grants is SQL that gives the role the least it needs, and can be run again; empty when the server was not reached.
	Grants string
}

// Doctor looks at the server and the tables of a source as its start would, and changes nothing. It judges with the
// functions of the start, so that both agree. Findings never hold a password or the value of a row. The error is that of
// ctx, or a defect; what is wrong with the server is a finding.
func Doctor(ctx context.Context, c Checkup) (Diagnosis, error) {
	o, err := openDoctor(c.Job, c.Source, c.Resolve)
	where := "sources." + c.Source.Name
	if err != nil {
		return Diagnosis{Findings: []preflight.Finding{preflight.Failed(where, "references", err, nil)}}, nil
	}
	conn, err := o.target.SQL(ctx)
	if err != nil {
		return Diagnosis{Findings: []preflight.Finding{connectFinding(where, err)}}, context.Cause(ctx)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	x := examination{setup: &setup{opened: o, conn: conn}, checkup: c}
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

// connectFinding tells a pooler, which refuses what a session of Weir needs, from a server that is not reached.
func connectFinding(where string, err error) preflight.Finding {
	if strings.Contains(fault.Of(err).Why, "unsupported startup parameter") {
		return preflight.Failed(where, "pooler", err, &preflight.Remedy{
			Advice: "A pooler answers and refuses the settings of a session. Put the server's own address and port into " + where + ".url.",
		})
	}
	return preflight.Failed(where, "connect", err, nil)
}

// examination is one run of Doctor on an open session.
type examination struct {
	*setup
	Diagnosis

	checkup Checkup
	facts   doctor.Facts
	plan    doctor.Plan
}

func (x *examination) found(f ...preflight.Finding) { x.Findings = append(x.Findings, f...) }

func (x *examination) run(ctx context.Context) (err error) {
	if x.server, err = x.target.Server(ctx, x.conn); err != nil {
		return err
	}
	if x.facts, err = doctor.Look(ctx, x.conn, x.server, x.checkup.Old); err != nil {
		return err
	}
	x.plan = doctor.Plan{
		Where: x.where, Copies: x.source.Snapshot.Mode != spec.SnapshotNever, Modes: x.checkup.Modes, KeylessLimit: halves.SpoolBytes,
		Publication: x.source.Publication, Proposed: proposed(x.checkup.Job),
	}
	x.found(x.facts.Judge(x.target, x.hasSlot())...)
	if x.facts.Replication && x.facts.SendersUsed < x.facts.Senders {
		x.probe(ctx)
	}
	if err := x.tables(ctx); err != nil {
		return err
	}
	if x.source.Slot != "" {
		s, there, err := x.target.Slot(ctx, x.conn, x.source.Slot)
		if err != nil {
			return err
		}
		x.found(x.facts.GivenSlot(x.where, x.source.Slot, there, x.target.CheckUsable(s))...)
	}
	x.found(x.facts.Leftovers(x.where, x.checkup.Lives, x.checkup.LivesKnown)...)
	return nil
}

// proposed is a name for a publication that somebody else makes. It has not the form of Weir's own names, which Weir
// would drop.
func proposed(job string) string { return strings.ReplaceAll(job, "-", "_") + "_for_weir" }

// hasSlot reports whether the job need not make a slot any more.
func (x *examination) hasSlot() bool {
	if x.source.Slot != "" {
		return true
	}
	for _, l := range x.checkup.Lives {
		for _, s := range x.facts.Slots {
			o := core.Owner{Job: l.Job, Source: x.checkup.Source.Name, Life: l.Life}
			if l.Job == x.checkup.Job && o.Owns(s.Name) {
				return true
			}
		}
	}
	return false
}

func (x *examination) probe(ctx context.Context) {
	p, err := x.target.Probe(ctx)
	if err != nil {
		x.found(preflight.Failed(x.where, "replication_connection", err, nil))
		return
	}
	x.found(doctor.Probe(x.where, p, x.server)...)
}

func (x *examination) tables(ctx context.Context) error {
	all, err := catalog.List(ctx, x.conn)
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
	x.found(x.facts.Skipped(x.where, cannot, x.named)...)
	if len(can) == 0 {
		err := fault.New(fault.PGNoTables, x.where+".tables", fmt.Sprintf("none of the %d tables of database %q matches", len(all), x.target.Database()))
		x.found(preflight.Failed(x.where, "tables", err, nil))
		return nil
	}
	tables, err := x.describe(ctx, can)
	if err != nil {
		return err
	}
	if err := x.given(ctx, tables); err != nil {
		return err
	}
	x.found(x.facts.Captured(x.plan, tables)...)
	x.Grants, _ = x.facts.Grants(x.plan, tables)
	return nil
}

// named reports whether a pattern is for this table alone.
func (x *examination) named(n pgrepl.TableName) bool {
	for _, p := range x.source.Tables {
		if schema, table, ok := p.Exact(); ok && !p.Excludes() && schema == n.Schema && table == n.Name {
			return true
		}
	}
	return false
}

// describe judges each table alone with the functions that the start uses on all.
func (x *examination) describe(ctx context.Context, list []*catalog.Table) ([]*doctor.Table, error) {
	if err := catalog.Describe(ctx, x.conn, list); err != nil {
		return nil, err
	}
	facts, err := doctor.Tables(ctx, x.conn, list)
	if err != nil {
		return nil, err
	}
	types, err := typesOf(ctx, x.conn, list)
	if err != nil {
		return nil, err
	}
	oids := make([]uint32, len(list))
	for i, t := range list {
		oids[i] = t.OID
	}
	copied, err := tableFacts(ctx, x.conn, oids)
	if err != nil {
		return nil, err
	}
	tables := make([]*doctor.Table, 0, len(list))
	for _, t := range list {
		f := facts[t.OID]
		if f == nil {
			continue // dropped since it was listed
		}
		one := []*catalog.Table{t}
		d := &doctor.Table{Table: t, TableFacts: *f, NoIdentity: noIdentity(x.where, one)}
		if x.source.Before {
			d.NoBefore = noBefore(x.where, one)
		}
		d.Unreadable = x.read(d, types, copied[t.OID])
		if err := x.sent(ctx, d); err != nil {
			return nil, err
		}
		tables = append(tables, d)
	}
	if err := x.veil.used(list); err != nil {
		x.found(preflight.Failed(x.where, "columns", err, nil))
	}
	return tables, nil
}

// read finds out how the rows of a table are read, or why they cannot be.
func (x *examination) read(d *doctor.Table, types map[uint32]catalog.Type, f facts) error {
	known := x.veil.describe(relationOf(d.Table), d.Table, types, x.where)
	if known.err != nil {
		return known.err
	}
	bound, err := bind(known, firstVersion, x.where)
	if err != nil {
		return err
	}
	x.Schemas = append(x.Schemas, bound.builder.Schema())
	forms := make([]core.KeyForm, len(known.key))
	for i, k := range known.key {
		column := known.relation.Columns[k]
		forms[i] = core.KeyFormOf(column.TypeOID, slices.Contains(f.bytewise, column.Name))
	}
	switch {
	case len(forms) == 0:
		d.Order = doctor.Keyless
	case core.KeyOrder(forms) == nil:
		d.Order = doctor.ByServer
	default:
		d.Order = doctor.ByWeir
	}
	return nil
}

// sent finds out which columns a publication is to send, when some are not to leave the server.
func (x *examination) sent(ctx context.Context, d *doctor.Table) error {
	if x.veil == nil {
		return nil
	}
	one, err := catalog.OneIdentity(ctx, x.conn, d.Table)
	if err != nil {
		return err
	}
	d.Sent = x.veil.listed(d.Table, x.server.Version, one)
	return nil
}

// given looks at the publication that was given.
func (x *examination) given(ctx context.Context, tables []*doctor.Table) error {
	name := x.source.Publication
	if name == "" {
		return nil
	}
	p, there, err := x.target.Publication(ctx, x.conn, name)
	if err != nil {
		return err
	}
	narrowed, err := doctor.Narrowings(ctx, x.conn, name)
	if err != nil {
		return err
	}
	for _, t := range tables {
		if there && !p.Tables[t.Name] {
			t.Missing = notPublished(x.where+".publication", name, t.Table, p.ViaRoot)
		}
	}
	if there {
		x.plan.Given = &p
	}
	x.found(x.facts.Publication(x.plan, narrowed, tables)...)
	return nil
}
