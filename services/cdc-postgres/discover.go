package cdcpostgres

import (
	"context"
	"strings"

	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/cdc-postgres/internal/catalog"
	"weir.dev/weir/services/cdc-postgres/internal/doctor"
)

// Listed is a table as [Discover] lists it.
type Listed struct {
	Schema string `json:"schema"`
	Name   string `json:"name"`
	// Kind is table, partitioned table, unlogged table, view, materialized view or foreign table.
	Kind string `json:"kind"`
	// Key are the columns of the primary key.
	Key []string `json:"key,omitempty"`
	// Identity is the replica identity: default, full, nothing or index; empty for what is not a table.
	Identity string `json:"identity,omitempty"`
	// Rows is the server's estimate, absent when it has none; Bytes is the space on disk, partitions included.
	Rows  *int64 `json:"estimatedRows,omitempty"`
	Bytes int64  `json:"bytes"`
	// Captured says that the patterns of the source take the table; Why says why not.
	Captured bool   `json:"captured"`
	Why      string `json:"why,omitempty"`
}

// Discover lists what the database of a source has, by name: every table and view with its key and size. It reads the
// catalog only. A source without patterns captures everything that can be captured.
func Discover(ctx context.Context, s spec.Source, resolve func(ref string) (string, error)) ([]Listed, error) {
	o, err := openDoctor("discover", s, resolve)
	if err != nil {
		return nil, err
	}
	conn, err := o.target.SQL(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	all, err := catalog.List(ctx, conn)
	if err == nil {
		err = catalog.Describe(ctx, conn, all)
	}
	if err != nil {
		return nil, o.target.Fault(err)
	}
	facts, err := doctor.Tables(ctx, conn, all)
	if err != nil {
		return nil, o.target.Fault(err)
	}
	listed := make([]Listed, 0, len(all))
	for _, t := range all {
		l := Listed{Schema: t.Name.Schema, Name: t.Name.Name, Kind: kindOf(t), Key: t.PrimaryKey, Why: o.whyNot(t)}
		l.Captured = l.Why == ""
		if l.Kind == kindTable || l.Kind == kindPartitioned {
			l.Identity = identityOf(t)
		}
		if f := facts[t.OID]; f != nil {
			l.Bytes = f.Bytes
			if f.Rows >= 0 {
				l.Rows = &f.Rows
			}
		}
		listed = append(listed, l)
	}
	return listed, nil
}

const (
	kindTable       = "table"
	kindPartitioned = "partitioned table"
)

func kindOf(t *catalog.Table) string {
	switch {
	case t.Obstacle != "":
		_, kind, _ := strings.Cut(t.Obstacle, " ") // without the article
		return kind
	case t.Partitioned:
		return kindPartitioned
	}
	return kindTable
}

func identityOf(t *catalog.Table) string {
	switch t.Identity {
	case 'd':
		return "default"
	case 'f':
		return "full"
	case 'n':
		return "nothing"
	case 'i':
		return "index"
	}
	return ""
}

// whyNot says in words why a table is not captured; empty when it is.
func (o *opened) whyNot(t *catalog.Table) string {
	switch {
	case strings.HasPrefix(t.Name.Name, "weir_"):
		return "a table of Weir's own"
	case t.Obstacle != "":
		return t.Obstacle + " is not in the log"
	case len(o.source.Tables) > 0 && !o.captures(t.Name):
		for _, p := range o.source.Tables {
			if p.Excludes() && p.Match(t.Name.Schema, t.Name.Name) {
				return "excluded by " + p.String()
			}
		}
		return "no pattern matches"
	case !t.Identified():
		return "no replica identity: updates and deletes would be refused"
	}
	return ""
}
