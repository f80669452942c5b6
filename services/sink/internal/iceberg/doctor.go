package iceberg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/preflight"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
)

// Checkup asks [Doctor] about one sink.
type Checkup struct {
	// Config is that of the committer; the life is that of the job, empty when the job has none yet.
	Config sink.Config
	// LivesKnown says that an empty life is known to be none; else nobody could be asked.
	LivesKnown bool
	// Tables are the rows that will come, as far as they are known.
	Tables []*rows.Schema
}

// doctor looks at a sink's place through its catalog.
type doctor struct {
	place
	checkup  Checkup
	tables   *tables
	findings []preflight.Finding
}

// Doctor looks at what the start of a committer needs: catalog, ledger, the names of the tables, and warehouse. It makes nothing at
// the catalog; an object store gets a small file, which is removed.
func Doctor(ctx context.Context, c Checkup) ([]preflight.Finding, error) {
	d := doctor{checkup: c}
	var err error
	if d.place, err = placeOf(ctx, c.Config); err != nil {
		if f := fault.Of(err); f.Code != "" {
			return []preflight.Finding{preflight.Failed("sinks."+c.Config.Sink.Name, "settings", err, nil)}, nil
		}
		return nil, err
	}
	if err := d.run(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		d.fail("look", "", d.translate(err))
	}
	return d.findings, nil
}

func (d *doctor) ok(check, subject, format string, args ...any) {
	d.findings = append(d.findings, preflight.Finding{
		Group: d.where, Check: check, Subject: subject, Status: preflight.OK, Found: fmt.Sprintf(format, args...),
	})
}

func (d *doctor) fail(check, subject string, err error) {
	f := preflight.Failed(d.where, check, err, nil)
	f.Subject = subject
	d.findings = append(d.findings, f)
}

func (d *doctor) run(ctx context.Context) (err error) {
	if path, ok := strings.CutPrefix(d.catalog, sqliteScheme); ok {
		if _, err := os.Stat(path); os.IsNotExist(err) {
			d.ok("catalog", "", "it will be made")
			return d.warehouse()
		}
	}
	if d.tables, err = openTables(ctx, &d.place); err != nil {
		d.fail("catalog", "", d.translate(err))
		return nil
	}
	defer func() { err = errors.Join(err, d.tables.close()) }()
	if err := d.ledger(ctx); err != nil {
		d.fail("catalog", "", d.translate(err))
		return nil
	}
	for _, s := range d.checkup.Tables {
		for _, r := range d.roles() {
			if err := d.table(ctx, r, s); err != nil {
				return err
			}
		}
	}
	return d.warehouse()
}

// ledger asks the catalog for the first thing that a claim looks at.
func (d *doctor) ledger(ctx context.Context) error {
	row, err := d.tables.catalog.row(ctx)
	if missing(err) {
		err = nil // no sink has made the catalog's tables yet
	}
	if err != nil {
		return err
	}
	how := "one transaction of the database changes all tables of an epoch"
	if c, ok := d.tables.catalog.(*restCatalog); ok {
		how = "a REST catalog; the sink changes tables one after the other, level ORDERED"
		if !d.ordered() {
			how = "a REST catalog that commits to several tables at once"
		} else if c.client.transactions {
			how += ", although the catalog could change them at once"
		}
	}
	d.ok("catalog", "", "%s", how)
	switch life := d.checkup.Config.Life; {
	case row.Life == "":
		d.ok("ledger", "", "no life of the job has written here")
	case row.Life == life:
		d.ok("ledger", "", "it holds epoch %s of the job's life %s", row.Ref.Epoch, row.Life)
	case !d.checkup.LivesKnown:
		d.findings = append(d.findings, preflight.Finding{
			Group: d.where, Check: "ledger", Status: preflight.Warning, Found: fmt.Sprintf("it holds epoch %s of life %s", row.Ref.Epoch, row.Life),
			Why:    "a new life of the job would be refused, and which life the job has cannot be known: no mesh was asked",
			Remedy: &preflight.Remedy{Advice: "Ask again with --nats or NATS_URL."},
		})
	default:
		d.fail("ledger", "", fault.New(fault.JobLedgerForeign, d.where, "the ledger in the catalog has life "+row.Life, "job", d.checkup.Config.Job))
	}
	return nil
}

// table looks at the table that a source table goes to.
func (d *doctor) table(ctx context.Context, r role, s *rows.Schema) error {
	st, err := d.tables.load(ctx, r, s.Table(), nil)
	if err != nil {
		return err
	}
	name := st.namespace + "." + st.name
	if st.meta == nil {
		d.ok("table", name, "it will be made")
		return nil
	}
	if err := d.owned(st, s.Table()); err != nil {
		d.fail("table", name, err)
		return nil
	}
	if e, err := d.evolution(r, s, st.meta); err != nil {
		return err
	} else if err := e.run(); err != nil {
		d.fail("table", name, err)
		return nil
	}
	d.ok("table", name, "it is this sink's, and the columns fit or can be changed")
	return nil
}

func (d *doctor) warehouse() error {
	if !spec.Remote(d.root) {
		switch info, err := os.Stat(pathOf(d.root)); {
		case os.IsNotExist(err):
			d.ok("warehouse", "", "the directory will be made")
		case err != nil:
			d.fail("warehouse", "", d.translate(err))
		case !info.IsDir():
			d.fail("warehouse", "", fault.New(fault.SinkPathUnusable, d.where, "it is not a directory", "path", d.root))
		default:
			d.ok("warehouse", "", "the directory is there")
		}
		return nil
	}
	if err := d.probe("doctor"); err != nil {
		d.fail("warehouse", "", d.translate(err))
		return nil
	}
	d.ok("warehouse", "", "it takes files and gives them up")
	return nil
}
