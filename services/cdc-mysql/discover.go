package cdcmysql

import (
	"context"
	"strconv"
	"strings"

	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/cdc-mysql/internal/catalog"
	"weir.dev/weir/services/cdc-mysql/internal/core"
)

// Listed is a table as [Discover] lists it.
type Listed struct {
	Schema string
	Name   string
	// Kind is table, view, or what else the server calls it, in lower case.
	Kind string
	// Key are the columns of the primary key.
	Key []string
	// Rows is the server's estimate, nil when it has none; Bytes is the space of rows and indexes.
	Rows  *int64
	Bytes int64
	// Captured says that the patterns of the source take the table; Why says why not.
	Captured bool
	Why      string
}

// Discover lists what the account of a source can see, by name: every table and view with its key and size. It reads the catalog
// only. A source without patterns captures everything that can be captured.
func Discover(ctx context.Context, s spec.Source, resolve func(ref string) (string, error)) ([]Listed, error) {
	o, err := openDoctor("discover", s, resolve)
	if err != nil {
		return nil, err
	}
	session, err := o.target.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	all, err := catalog.List(ctx, session)
	if err == nil {
		err = catalog.Describe(ctx, session, all)
	}
	if err != nil {
		return nil, err
	}
	tables := make(map[core.Name]*catalog.Table, len(all))
	for _, t := range all {
		tables[t.Name] = t
	}
	var listed []Listed
	err = session.Query(ctx, "SELECT table_schema, table_name, lower(table_type), table_rows, coalesce(data_length, 0) + coalesce(index_length, 0) "+
		"FROM information_schema.tables WHERE table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema') "+
		"ORDER BY table_schema, table_name", func(c [][]byte) error {
		name := core.Name{Schema: string(c[0]), Table: string(c[1])}
		l := Listed{Schema: name.Schema, Name: name.Table, Kind: string(c[2])}
		if l.Kind == "base table" {
			l.Kind = "table"
		}
		if n, err := strconv.ParseInt(string(c[3]), 10, 64); err == nil {
			l.Rows = &n
		}
		l.Bytes, _ = strconv.ParseInt(string(c[4]), 10, 64)
		t := tables[name]
		if t != nil {
			l.Key = t.Key
		}
		l.Why = o.whyNot(name, l.Kind, t)
		l.Captured = l.Why == ""
		listed = append(listed, l)
		return nil
	})
	return listed, err
}

// whyNot says in words why a table is not captured; empty when it is.
func (o *opened) whyNot(name core.Name, kind string, t *catalog.Table) string {
	switch {
	case strings.HasPrefix(name.Table, "weir_"):
		return "a table of Weir's own"
	case t == nil:
		return "a " + kind + " is not in the log"
	case len(o.source.Tables) > 0 && !o.captures(name):
		for _, p := range o.source.Tables {
			if p.Excludes() && p.Match(name.Schema, name.Table) {
				return "excluded by " + p.String()
			}
		}
		return "no pattern matches"
	case t.Obstacle != "":
		return strings.TrimSuffix(t.Obstacle, ",") + " cannot be copied exactly"
	}
	for _, c := range t.Columns {
		if c.Err != nil {
			return "column " + c.Name + " cannot be read: " + c.Err.Error()
		}
	}
	return ""
}
