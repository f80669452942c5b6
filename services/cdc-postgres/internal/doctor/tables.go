package doctor

import (
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/preflight"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/cdc-postgres/internal/catalog"
	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

// Table is a table that matches the patterns of a source.
type Table struct {
	*catalog.Table
	TableFacts
	// Order is who knows the order of the key.
	Order Order
	// Sent are the columns that a publication is to send, all when it is nil.
	Sent []string
	// Missing is the publication's error about the table, NoIdentity and NoBefore are those about its identity; nil when
	// there is none. Unreadable is why its rows cannot be decoded.
	Missing, NoIdentity, NoBefore, Unreadable error
}

// Order is who knows the order of a table's key, by which it is read in parts.
type Order int

// The orders.
const (
	Keyless Order = iota
	ByServer
	ByWeir
)

// Plan is what a job wants of its tables.
type Plan struct {
	Where string
	// Copies says that rows are read with SELECT.
	Copies bool
	// Modes are those of the sinks that take the rows.
	Modes []spec.Mode
	// KeylessLimit is how large a table without a key may be, in bytes.
	KeylessLimit int64
	// Publication is the name of the one that was given, empty when Weir makes its own; Proposed is a name for one. Given
	// is what the server has under the name, nil when it has none.
	Publication, Proposed string
	Given                 *pgrepl.Publication
}

// Captured judges the tables that match and can be read.
func (f *Facts) Captured(p Plan, tables []*Table) []preflight.Finding {
	c := checker{group: p.Where}
	f.reads(&c, p, tables)
	f.publishes(&c, p, tables)
	identities(&c, p, tables)
	keys(&c, p, tables)
	columns(&c, p, tables)
	return c.findings
}

// reads judges the rights of the copy.
func (f *Facts) reads(c *checker, p Plan, tables []*Table) {
	if !p.Copies {
		c.ok("select", "not needed: no rows are copied")
		return
	}
	role, good := identifier(f.Role), 0
	for _, t := range tables {
		schema := "GRANT USAGE ON SCHEMA " + identifier(t.Name.Schema) + " TO " + role + ";"
		var why string
		var sql []string
		switch {
		case !t.Usage:
			why, sql = "no USAGE on its schema", []string{schema}
			if !t.Select {
				sql = append(sql, grantSelect(t.Name, role))
			}
		case !t.Select && t.EachColumn:
			why, sql = "it may read each column, but LOCK TABLE needs SELECT on the table", []string{grantSelect(t.Name, role)}
		case !t.Select:
			why, sql = "no SELECT on it", []string{grantSelect(t.Name, role)}
		default:
			good++
			continue
		}
		err := fault.New(fault.PGNoSelect, p.Where, fmt.Sprintf("role %s: %s", f.Role, why))
		c.fail("select", t.Name.String(), err, "", preflight.Remedy{SQL: sql, Database: f.Database})
	}
	if good == len(tables) {
		c.ok("select", "role %s may read %s", f.Role, count(good))
	}
	visible := true
	for _, t := range tables {
		if !t.Hidden {
			continue
		}
		visible = false
		err := fault.New(fault.PGNoSelect, p.Where, "row security would hide rows from role "+f.Role)
		c.fail("row_security", t.Name.String(), err, "a copy that lacks rows without a word would be worse than none",
			preflight.Remedy{SQL: []string{"ALTER ROLE " + role + " BYPASSRLS;"}})
	}
	if visible {
		c.ok("row_security", "no policy hides rows from role %s", f.Role)
	}
}

func grantSelect(n pgrepl.TableName, role string) string {
	return "GRANT SELECT ON TABLE " + n.Sanitize() + " TO " + role + ";"
}

// publishes judges whether the changes of the tables are or can be published.
func (f *Facts) publishes(c *checker, p Plan, tables []*Table) {
	if p.Publication != "" {
		if p.Given != nil {
			f.published(c, p, tables)
		}
		return
	}
	var foreign []string
	for _, t := range tables {
		if !t.Owned && !f.Superuser {
			foreign = append(foreign, t.Name.String())
		}
	}
	switch {
	case len(foreign) > 0:
		err := fault.New(fault.PGNoCreate, p.Where, fmt.Sprintf("role %s does not own %s, and only owners may publish", f.Role, list(foreign)))
		c.fail("publication", "", err, "without a publication the log sends nothing", preflight.Remedy{
			SQL:      []string{createPublication(p.Proposed, tables)},
			Database: f.Database,
			Spec:     p.Where + ".publication: " + p.Proposed,
			Advice:   "Or make the role a member of the owners and grant it CREATE on the database.",
		})
	case !f.CanCreate:
		err := fault.New(fault.PGNoCreate, p.Where, fmt.Sprintf("role %s has no CREATE right on database %s", f.Role, f.Database))
		c.fail("publication", "", err, "without a publication the log sends nothing", preflight.Remedy{
			SQL: []string{"GRANT CREATE ON DATABASE " + identifier(f.Database) + " TO " + identifier(f.Role) + ";"},
		})
	default:
		c.ok("publication", "role %s may publish %s", f.Role, count(len(tables)))
	}
}

func createPublication(name string, tables []*Table) string {
	clauses := make([]string, len(tables))
	for i, t := range tables {
		clauses[i] = t.clause()
	}
	return "CREATE PUBLICATION " + identifier(name) + " FOR TABLE " + strings.Join(clauses, ", ") + " WITH (publish_via_partition_root = true);"
}

// clause is the table in a publication; columns that are not to leave the server are not sent.
func (t *Table) clause() string {
	if t.Sent == nil {
		return t.Name.Sanitize()
	}
	quoted := make([]string, len(t.Sent))
	for i, c := range t.Sent {
		quoted[i] = identifier(c)
	}
	return t.Name.Sanitize() + " (" + strings.Join(quoted, ", ") + ")"
}

// published judges the tables against the publication that was given.
func (f *Facts) published(c *checker, p Plan, tables []*Table) {
	good := true
	for _, t := range tables {
		if t.Missing == nil {
			continue
		}
		good = false
		sql := "ALTER PUBLICATION " + identifier(p.Publication) + " ADD TABLE " + t.clause() + ";"
		if t.Partitioned && !p.Given.ViaRoot {
			sql = "ALTER PUBLICATION " + identifier(p.Publication) + " SET (publish_via_partition_root = true);"
		}
		c.fail("publication_tables", t.Name.String(), t.Missing, "its changes would be missing without a word",
			preflight.Remedy{SQL: []string{sql}, Database: f.Database})
	}
	if good {
		c.ok("publication_tables", "publication %s has %s", p.Publication, count(len(tables)))
	}
}

// identities judges whether updates and deletes can be sent.
func identities(c *checker, p Plan, tables []*Table) {
	bad := false
	for _, t := range tables {
		full := "ALTER TABLE " + t.Name.Sanitize() + " REPLICA IDENTITY FULL;"
		switch {
		case t.NoIdentity != nil && len(t.PrimaryKey) > 0:
			c.fail("identity", t.Name.String(), t.NoIdentity, "", preflight.Remedy{SQL: []string{"ALTER TABLE " + t.Name.Sanitize() + " REPLICA IDENTITY DEFAULT;"}})
		case t.NoIdentity != nil && t.Index != "":
			c.fail("identity", t.Name.String(), t.NoIdentity, "", preflight.Remedy{
				SQL:    []string{"ALTER TABLE " + t.Name.Sanitize() + " REPLICA IDENTITY USING INDEX " + identifier(t.Index) + ";"},
				Advice: "Or " + exclude(p, t.Name),
			})
		case t.NoIdentity != nil:
			c.fail("identity", t.Name.String(), t.NoIdentity, "", preflight.Remedy{
				SQL:    []string{full},
				Advice: "Better, where there is one: ALTER TABLE .. ADD PRIMARY KEY. Or " + exclude(p, t.Name),
			})
		case t.NoBefore != nil:
			c.fail("identity", t.Name.String(), t.NoBefore, "", preflight.Remedy{SQL: []string{full}})
		default:
			continue
		}
		bad = true
	}
	if !bad {
		c.ok("identity", "updates and deletes of %s can be told apart", count(len(tables)))
	}
}

func exclude(p Plan, n pgrepl.TableName) string {
	return fmt.Sprintf("leave it out: %s.tables: [.., \"!%s\"].", p.Where, n)
}

// keys judges how tables are read in parts.
func keys(c *checker, p Plan, tables []*Table) {
	var ours, servers, without []string
	bad := false
	for _, t := range tables {
		if t.Unreadable != nil {
			continue // its key is not known
		}
		name := t.Name.String()
		switch t.Order {
		case ByWeir:
			ours = append(ours, name)
		case ByServer:
			servers = append(servers, name)
		case Keyless:
			without = append(without, name)
		}
		if t.Order != Keyless {
			continue
		}
		if p.Copies && t.Bytes > p.KeylessLimit {
			bad = true
			err := fault.New(fault.PGKeylessTooBig, p.Where, fmt.Sprintf("about %s, and no key to read it by in parts; the limit is %s",
				size(t.Bytes), size(p.KeylessLimit)))
			c.fail("keyless_size", name, err, "a table without a key is read by one statement and waits on the bus, in segments that every epoch names", t.keyed(p))
		}
		if slices.Contains(p.Modes, spec.Upsert) {
			bad = true
			err := fault.New(fault.SinkNoKey, p.Where, "a sink of mode upsert takes its rows")
			remedy := t.keyed(p)
			if t.Index == "" {
				remedy.Spec = "" // the mode is the sink's
				remedy.Advice += " Or give the sink mode: changelog."
			}
			c.fail("key", name, err, "without a key there is no row of the target to change", remedy)
		}
	}
	if bad || len(ours)+len(servers)+len(without) == 0 {
		return
	}
	var parts []string
	for _, of := range []struct {
		names []string
		what  string
	}{
		{ours, "in an order that Weir knows"},
		{servers, "located by the server"},
		{without, "without a key, by one statement"},
	} {
		if len(of.names) > 0 {
			parts = append(parts, of.what+": "+list(of.names))
		}
	}
	c.ok("key", "%s", strings.Join(parts, "; "))
}

// keyed gives a table a key.
func (t *Table) keyed(p Plan) preflight.Remedy {
	if t.Index != "" {
		return preflight.Remedy{SQL: []string{"ALTER TABLE " + t.Name.Sanitize() + " REPLICA IDENTITY USING INDEX " + identifier(t.Index) + ";"}}
	}
	return preflight.Remedy{Advice: "Give it a key: ALTER TABLE " + t.Name.Sanitize() + " ADD PRIMARY KEY (..). Or " + exclude(p, t.Name)}
}

// columns judges what of a row is not in the log.
func columns(c *checker, p Plan, tables []*Table) {
	images := slices.ContainsFunc(p.Modes, func(m spec.Mode) bool { return m != spec.Upsert })
	readable, whole := true, true
	for _, t := range tables {
		name := t.Name.String()
		if t.Unreadable != nil {
			readable = false
			c.fail("types", name, t.Unreadable, "", preflight.Remedy{Advice: "Change the column's type, or " + exclude(p, t.Name)})
		}
		if len(t.Generated) > 0 {
			c.warn("generated", name, "left out: "+list(t.Generated), "generated columns are not in the log, so they are not copied either",
				preflight.Remedy{Advice: "Where the target needs them, let it generate them in the same way."})
		}
		if images && len(t.Large) > 0 && t.Identity != 'f' {
			whole = false
			c.warn("large_values", name, "may be stored out of line: "+list(t.Large),
				"an update that leaves such a value as it is does not send it; mode append then stops, mode changelog leaves it empty",
				preflight.Remedy{SQL: []string{"ALTER TABLE " + t.Name.Sanitize() + " REPLICA IDENTITY FULL;"}})
		}
	}
	if readable {
		c.ok("types", "every column of %s can be read", count(len(tables)))
	}
	if whole {
		c.ok("large_values", "values that an update does not send are left as they are at the target")
	}
}

// Skipped judges tables that match and are not captured; exact says that a pattern names the table alone.
func (f *Facts) Skipped(where string, tables []*catalog.Table, exact func(pgrepl.TableName) bool) []preflight.Finding {
	c := checker{group: where}
	var others []string
	for _, t := range tables {
		switch {
		case t.Obstacle == catalogUnlogged:
			c.warn("not_captured", t.Name.String(), "it is "+t.Obstacle, "its changes are not in the log",
				preflight.Remedy{SQL: []string{"ALTER TABLE " + t.Name.Sanitize() + " SET LOGGED;"}, Database: f.Database})
		case exact(t.Name):
			c.warn("not_captured", t.Name.String(), "it is "+t.Obstacle, "its changes are not in the log",
				preflight.Remedy{Advice: "Take it out of " + where + ".tables."})
		default:
			others = append(others, t.Name.String()+" ("+t.Obstacle+")")
		}
	}
	if len(others) > 0 {
		c.ok("not_captured", "%s", list(others))
	}
	return c.findings
}

// catalogUnlogged is how the catalog calls the one kind of table that can become another.
const catalogUnlogged = "an unlogged table"

func count(n int) string {
	if n == 1 {
		return "1 table"
	}
	return fmt.Sprintf("%d tables", n)
}

// list names at most a few of many.
func list(names []string) string {
	const most = 8
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
