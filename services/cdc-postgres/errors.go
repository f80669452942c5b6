package cdcpostgres

import (
	"fmt"
	"strings"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/services/cdc-postgres/internal/catalog"
)

// noIdentity reports tables of which PostgreSQL would refuse updates and deletes once they are published.
func noIdentity(where string, tables []*catalog.Table) error {
	var bad []string
	for _, t := range tables {
		if t.Identity == 'f' && !t.Identified() {
			e := fault.New(fault.PGNoIdentity, where, fmt.Sprintf("table %s has REPLICA IDENTITY FULL and a virtual generated column: "+
				"PostgreSQL refuses its updates and deletes once it is published", t.Name), "table", t.Name.String())
			e.Remedy = fmt.Sprintf("Give the table a primary key and ALTER TABLE %s REPLICA IDENTITY DEFAULT; or drop the column.", t.Name.Sanitize())
			return e
		}
		if !t.Identified() {
			bad = append(bad, t.Name.String())
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return fault.New(fault.PGNoIdentity, where, "without a replica identity PostgreSQL itself refuses updates and deletes of a published table: "+
		strings.Join(bad, ", "), "table", bad[0])
}

// notPublished reports a table whose changes the publication does not send.
func notPublished(where, publication string, t *catalog.Table, viaRoot bool) error {
	e := fault.New(fault.PGPublicationTable, where, fmt.Sprintf("publication %q does not have table %s", publication, t.Name),
		"publication", publication, "table", t.Name.Sanitize())
	if t.Partitioned && !viaRoot {
		e.Why = fmt.Sprintf("publication %q sends the partitions of %s under their own names", publication, t.Name)
		e.Remedy = fmt.Sprintf("ALTER PUBLICATION %s SET (publish_via_partition_root = true);", publication)
	}
	return e
}

// noBefore reports tables whose log does not carry the row before a change.
func noBefore(where string, tables []*catalog.Table) error {
	for _, t := range tables {
		if t.Identity != 'f' {
			return fault.New(fault.PGNoIdentity, where, fmt.Sprintf("before: true needs REPLICA IDENTITY FULL, table %s has another", t.Name), "table", t.Name.String())
		}
	}
	return nil
}

// remedyCopy is the remedy when the log that a job needs is gone.
func remedyCopy(job string) string {
	return "Have every table copied anew through a new slot: `weir job resnapshot " + job + "`"
}
