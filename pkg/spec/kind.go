package spec

import (
	"regexp"
	"slices"

	"weir.dev/weir/pkg/config"
)

// SourceConfig is the part of a source that belongs to its type; the concrete type says which: *PostgresSource,
// *MySQLSource, *GeneratorSource.
type SourceConfig interface {
	// Parallelism is the number of readers, at least 1.
	Parallelism() int
	// check reports what the tags cannot say. n is the source's mapping. Fields that were wrong in themselves are zero
	// and already reported.
	check(d *config.Decoder, n *config.Node)
	secrets() []config.Secret
}

// SinkConfig is the part of a sink that belongs to its type: *PostgresSink, *MySQLSink, *FilesSink, *IcebergSink,
// *NATSSink, *BlackholeSink.
type SinkConfig interface {
	check(d *config.Decoder, n *config.Node)
	secrets() []config.Secret
}

// TableSink is a sink whose target tables are there for others to see, and that keeps its ledger beside them: *PostgresSink and
// *MySQLSink.
type TableSink interface {
	SinkConfig
	// Allows reports whether the sink may follow a destructive change.
	Allows(a Allowance) bool
}

var (
	_ TableSink = (*PostgresSink)(nil)
	_ TableSink = (*MySQLSink)(nil)
)

// sourceKind is one known word of a source's type; make is nil when it is not in this build.
type sourceKind struct {
	word string
	make func() SourceConfig
}

func sourceKinds() []sourceKind {
	return []sourceKind{
		{"postgres", func() SourceConfig { return &PostgresSource{} }},
		{"generator", func() SourceConfig { return &GeneratorSource{} }},
		{"mysql", func() SourceConfig { return &MySQLSource{} }},
		{"edge", nil},
	}
}

// sinkKind is one known word of a sink's type; make is nil when it is not in this build. The first mode is the default.
type sinkKind struct {
	word  string
	modes []Mode
	make  func() SinkConfig
}

func sinkKinds() []sinkKind {
	return []sinkKind{
		{"postgres", []Mode{Upsert, Changelog, Append}, func() SinkConfig { return &PostgresSink{} }},
		{"files", []Mode{Changelog, Append}, func() SinkConfig { return &FilesSink{} }},
		{"blackhole", []Mode{Append, Changelog, Upsert}, func() SinkConfig { return &BlackholeSink{} }},
		{"mysql", []Mode{Upsert, Changelog, Append}, func() SinkConfig { return &MySQLSink{} }},
		{"iceberg", []Mode{Upsert, Changelog}, func() SinkConfig { return &IcebergSink{} }},
		{"nats", []Mode{Changelog}, func() SinkConfig { return &NATSSink{} }},
	}
}

// shape returns the keys of a source of this kind, without the type itself.
func (k sourceKind) shape() config.Shape { return config.ShapeOf(k.make()) }

// shape returns the keys of a sink of this kind, without the type itself.
func (k sinkKind) shape() config.Shape {
	return config.ShapeOf(Sink{}, k.make()).With("mode", func(f *config.Field) {
		f.Enum = nil
		for _, m := range k.modes {
			f.Enum = append(f.Enum, string(m))
		}
		f.Default = f.Enum[0]
	})
}

// vertexName is the form of the names of sources, transforms and sinks; they are tokens of subjects and table names.
var vertexName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

const vertexHint = "lower-case letters, digits and dashes, at most 32, a letter first"

// each calls f for every well-named member of a mapping of vertices.
func each(d *config.Decoder, n *config.Node, f func(name string, n *config.Node)) {
	if n.Kind != config.Map {
		d.Problem(n, "this is %s; a mapping of names is expected", n.Kind)
		return
	}
	if len(n.Entries) == 0 {
		d.Problem(n, "the mapping is empty")
	}
	for _, e := range n.Entries {
		switch {
		case !vertexName.MatchString(e.Key.Text):
			d.Problem(e.Key, "the name is not valid: %s", vertexHint)
		case e.Value == nil: // reported by the parser
		case e.Value.Kind == config.Null:
			d.Problem(e.Key, "the key has no value")
		case e.Value.Kind != config.Map:
			d.Problem(e.Value, "this is %s; a mapping is expected", e.Value.Kind)
		default:
			f(e.Key.Text, e.Value)
		}
	}
}

// kindOf reads the key type of a vertex and returns it with the other keys.
func kindOf(d *config.Decoder, n *config.Node, known, later []string) (word string, rest *config.Node) {
	rest = &config.Node{Kind: config.Map, Line: n.Line, Column: n.Column, Path: n.Path}
	var t *config.Node
	found := false
	for _, e := range n.Entries {
		if e.Key.Text == "type" {
			t, found = e.Value, true
			continue
		}
		rest.Entries = append(rest.Entries, e)
	}
	switch {
	case !found:
		for _, e := range n.Entries {
			if config.Nearest(e.Key.Text, []string{"type"}) != "" {
				d.Word(e.Key, "key", []string{"type"})
				return "", rest
			}
		}
		d.Problem(&config.Node{Line: n.Line, Column: n.Column, Path: n.Path + ".type"}, "the key is required and missing")
	case t == nil: // reported by the parser
	case t.Kind != config.String:
		d.Problem(t, "this is %s; a text is expected", t.Kind)
	default:
		switch {
		case slices.Contains(known, t.Text):
			return t.Text, rest
		case slices.Contains(later, t.Text):
			d.Later(t, "the type", known)
		default:
			d.Word(t, "the type", known)
		}
	}
	return "", rest
}

// DecodeNode reads the sources of a job.
func (s *Sources) DecodeNode(d *config.Decoder, n *config.Node) {
	kinds := sourceKinds()
	known, later := split(kinds, func(k sourceKind) (string, bool) { return k.word, k.make != nil })
	each(d, n, func(name string, n *config.Node) {
		word, rest := kindOf(d, n, known, later)
		for _, k := range kinds {
			if k.word != word || k.make == nil {
				continue
			}
			c := k.make()
			d.Struct(rest, k.shape(), c)
			c.check(d, rest)
			*s = append(*s, Source{Name: name, Type: word, Config: c})
		}
	})
}

// DecodeNode reads the sinks of a job.
func (s *Sinks) DecodeNode(d *config.Decoder, n *config.Node) {
	kinds := sinkKinds()
	known, later := split(kinds, func(k sinkKind) (string, bool) { return k.word, k.make != nil })
	each(d, n, func(name string, n *config.Node) {
		word, rest := kindOf(d, n, known, later)
		for _, k := range kinds {
			if k.word != word || k.make == nil {
				continue
			}
			sink := Sink{Name: name, Type: word, Config: k.make()}
			d.Struct(rest, k.shape(), &sink, sink.Config)
			sink.Config.check(d, rest)
			*s = append(*s, sink)
		}
	})
}

func split[K any](kinds []K, word func(K) (string, bool)) (known, later []string) {
	for _, k := range kinds {
		if w, ok := word(k); ok {
			known = append(known, w)
		} else {
			later = append(later, w)
		}
	}
	return known, later
}
