package doctor

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/preflight"
	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

// Narrowed is a table of which a publication sends a part only.
type Narrowed struct {
	Name          pgrepl.TableName
	Rows, Columns bool
}

// Narrowings asks which tables a publication has with a row filter or a column list, which there are from 15 on.
func Narrowings(ctx context.Context, conn *pgx.Conn, publication string) ([]Narrowed, error) {
	rows, err := conn.Query(ctx, `
SELECT n.nspname::text, c.relname::text, to_jsonb(r) ->> 'prqual' IS NOT NULL, to_jsonb(r) ->> 'prattrs' IS NOT NULL
FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid
     JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE p.pubname = $1 AND (to_jsonb(r) ->> 'prqual' IS NOT NULL OR to_jsonb(r) ->> 'prattrs' IS NOT NULL)
ORDER BY 1, 2`, publication)
	if err == nil {
		var found []Narrowed
		found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (n Narrowed, err error) {
			return n, row.Scan(&n.Name.Schema, &n.Name.Name, &n.Rows, &n.Columns)
		})
		if err == nil {
			return found, nil
		}
	}
	return nil, fmt.Errorf("look at publication %s: %w", publication, err)
}

// Publication judges the publication that was given, as a whole.
func (f *Facts) Publication(p Plan, narrowed []Narrowed, tables []*Table) []preflight.Finding {
	c := checker{group: p.Where}
	if p.Given == nil {
		err := fault.New(fault.PGPublicationMissing, p.Where+".publication", fmt.Sprintf("there is no publication %q", p.Publication))
		c.fail("publication", p.Publication, err, "without a publication the log sends nothing",
			preflight.Remedy{SQL: []string{createPublication(p.Publication, tables)}, Database: f.Database})
		return c.findings
	}
	if !p.Given.Insert || !p.Given.Update || !p.Given.Delete || !p.Given.Truncate {
		err := fault.New(fault.PGPublicationMissing, p.Where+".publication", "it leaves out some operations")
		c.fail("publication", p.Publication, err, "changes of the operations it leaves out would be missing without a word", preflight.Remedy{
			SQL:      []string{"ALTER PUBLICATION " + identifier(p.Publication) + " SET (publish = 'insert, update, delete, truncate');"},
			Database: f.Database,
		})
	} else {
		c.ok("publication", "%s sends all operations", p.Publication)
	}
	for _, n := range narrowed {
		i := slices.IndexFunc(tables, func(t *Table) bool { return t.Name == n.Name })
		if i < 0 || (tables[i].Sent != nil && !n.Rows) {
			continue // a list of columns is wanted; what it must have, the rows say
		}
		what := "rows by a filter"
		if n.Columns {
			what = "columns by a list"
		}
		id, table := identifier(p.Publication), n.Name.Sanitize()
		c.warn("publication_filter", n.Name.String(), "the publication leaves out "+what, "what it leaves out is missing at the target",
			preflight.Remedy{
				SQL:      []string{"ALTER PUBLICATION " + id + " DROP TABLE " + table + ";", "ALTER PUBLICATION " + id + " ADD TABLE " + table + ";"},
				Database: f.Database, Advice: "Or leave it, when that is what is wanted.",
			})
	}
	return c.findings
}

// GivenSlot judges the slot that was given. there is false when the server has none of the name; err is why it cannot be
// used.
func (f *Facts) GivenSlot(where, name string, there bool, err error) []preflight.Finding {
	c := checker{group: where}
	create := "SELECT pg_create_logical_replication_slot(" + literal(name) + ", 'pgoutput');"
	switch {
	case !there:
		missing := fault.New(fault.PGSlotMissing, where+".slot", fmt.Sprintf("there is no slot %q", name))
		c.fail("slot", name, missing, "", preflight.Remedy{
			SQL: []string{create}, Database: f.Database, Advice: "Make it behind the publication. Or leave out slot:, then Weir makes its own.",
		})
	case err != nil:
		c.fail("slot", name, err, "", preflight.Remedy{
			SQL:      []string{"SELECT pg_drop_replication_slot(" + literal(name) + ");", create},
			Database: f.Database, Advice: "Or leave out slot:, then Weir makes its own.",
		})
	default:
		c.ok("slot", "%s can be used", name)
	}
	return c.findings
}
