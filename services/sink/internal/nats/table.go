package nats

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
)

// table is what the events of one schema version of a table have in common.
type table struct {
	schema  *rows.Schema
	subject string
	source  string // name in the job spec
	kind    string // type in the job spec
	// namespace and name are the table's own: with MySQL the namespace is its database.
	namespace, name string
	columns         [][]byte // names as JSON, with a colon
	meta            []byte   // the key of what a flat event says about itself, likewise
}

// table describes a batch's table.
func (p *publication) table(s *rows.Schema) (*table, error) {
	if t := p.tables[s.Table()]; t != nil && t.schema.Same(s) {
		return t, nil
	}
	t := &table{schema: s}
	var ok bool
	if t.namespace, t.name, ok = strings.Cut(string(s.Table()), "."); !ok {
		t.namespace, t.name = "", string(s.Table())
	}
	var err error
	if t.source, t.kind, err = p.c.sourceOf(s.Origin(), t.namespace, t.name); err != nil {
		return nil, err
	}
	t.subject = strings.Join([]string{
		p.c.target.Prefix, bus.EscapeToken(t.source), bus.EscapeToken(t.namespace), bus.EscapeToken(t.name),
	}, ".")
	for _, c := range s.Columns() {
		t.columns = append(t.columns, keyOf(c.Name))
	}
	meta := "_weir"
	for _, taken := s.Lookup(meta); taken; _, taken = s.Lookup(meta) {
		meta = "_" + meta
	}
	t.meta = keyOf(meta)
	p.tables[s.Table()] = t
	return t, nil
}

// keyOf writes the name of a member with its colon.
func keyOf(name string) []byte { return append(quoted(nil, name), ':') }

// quoted appends a text as JSON.
func quoted(dst []byte, s string) []byte {
	text, _ := json.Marshal(s) // of a text: it cannot fail
	return append(dst, text...)
}

// sourceOf finds the source of a table among those that the sink takes rows from.
func (c *committer) sourceOf(origin, namespace, name string) (source, kind string, err error) {
	var found []spec.Source
	for _, s := range c.cfg.Sources {
		if slices.Contains(c.cfg.Sink.From, s.Name) && captures(s, origin, namespace, name) {
			found = append(found, s)
		}
	}
	switch {
	case len(found) == 1:
		return found[0].Name, found[0].Type, nil
	case len(found) > 1:
		return "", "", fault.New(fault.SinkNameClash, c.where, fmt.Sprintf("sources %s and %s both have a table %s.%s; their events cannot be told apart",
			found[0].Name, found[1].Name, namespace, name))
	case len(c.cfg.Sink.From) > 0:
		return c.cfg.Sink.From[0], origin, nil
	}
	return c.cfg.Job, origin, nil
}

// captures reports whether a source can have sent rows of a table.
func captures(s spec.Source, origin, namespace, name string) bool {
	switch cfg := s.Config.(type) {
	case *spec.PostgresSource:
		return origin == s.Type && cfg.Tables.Match(namespace, name)
	case *spec.MySQLSource:
		return origin == s.Type && cfg.Tables.Match(namespace, name)
	}
	return origin == "" || origin == s.Type
}
