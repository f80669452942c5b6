package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// Grants is an SQL script that gives the role the least it needs to read the tables: nothing it has is taken away, and
// running it again changes nothing. The publication is made by whoever runs the script, so that the role needs neither
// the tables nor the database. needsLine says that the job spec then has to name that publication.
func (f *Facts) Grants(p Plan, tables []*Table) (script string, needsLine bool) {
	role, db := identifier(f.Role), identifier(f.Database)
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("-- %s: role %s reads database %s. Run it as a superuser, connected to %s; it can be run again.", p.Where, f.Role, f.Database, f.Database)
	line("%s", f.mayReplicate())
	line("GRANT CONNECT ON DATABASE %s TO %s;", db, role)
	if p.Copies {
		for _, schema := range schemas(tables) {
			line("GRANT USAGE ON SCHEMA %s TO %s;", identifier(schema), role)
		}
		for _, t := range tables {
			line("%s", grantSelect(t.Name, role))
		}
		if slices.ContainsFunc(tables, func(t *Table) bool { return t.Hidden }) {
			line("ALTER ROLE %s BYPASSRLS; -- row security would hide rows", role)
		}
	}
	name := p.Publication
	switch {
	case name == "" && f.ownsAll(tables):
		line("GRANT CREATE ON DATABASE %s TO %s; -- it owns the tables, so it makes the publication itself", db, role)
		return b.String(), false
	case name == "":
		name, needsLine = p.Proposed, true
		line("-- The job spec then needs this line: %s.publication: %s", p.Where, name)
	}
	if len(tables) == 0 {
		return b.String(), needsLine
	}
	line("DO $weir$ BEGIN")
	line("  IF NOT EXISTS (SELECT FROM pg_publication WHERE pubname = %s) THEN", literal(name))
	line("    %s", createPublication(name, tables))
	line("  END IF;")
	line("  ALTER PUBLICATION %s SET (publish = 'insert, update, delete, truncate', publish_via_partition_root = true);", identifier(name))
	for _, t := range tables {
		line("  IF NOT EXISTS (SELECT FROM pg_publication_tables WHERE pubname = %s AND schemaname = %s AND tablename = %s) THEN",
			literal(name), literal(t.Name.Schema), literal(t.Name.Name))
		line("    ALTER PUBLICATION %s ADD TABLE %s;", identifier(name), t.clause())
		line("  END IF;")
	}
	line("END $weir$;")
	return b.String(), needsLine
}

func (f *Facts) ownsAll(tables []*Table) bool {
	return !slices.ContainsFunc(tables, func(t *Table) bool { return !t.Owned })
}

func schemas(tables []*Table) []string {
	var names []string
	for _, t := range tables {
		names = append(names, t.Name.Schema)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
