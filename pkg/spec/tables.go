package spec

import (
	"errors"
	"strings"

	"weir.dev/weir/pkg/config"
)

// TablePattern selects tables by schema and name. Its notation is schema.table; * stands for any letters within one
// part, a leading ! excludes, and a part in double quotes is taken as it is ("" for a quote). Letter case counts and the
// underscore is an ordinary letter (S4).
type TablePattern struct {
	text          string
	exclude       bool
	schema, table glob
}

// glob is the literal stretches between stars. One stretch is an exact name.
type glob []string

func (g glob) match(s string) bool {
	if len(g) == 1 {
		return g[0] == s
	}
	first, last := g[0], g[len(g)-1]
	if len(s) < len(first)+len(last) || !strings.HasPrefix(s, first) || !strings.HasSuffix(s, last) {
		return false
	}
	s = s[len(first) : len(s)-len(last)]
	for _, part := range g[1 : len(g)-1] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return true
}

var (
	errNoDot    = errors.New("a pattern is schema.table; write public.orders or public.*")
	errParts    = errors.New("a pattern has two parts, schema.table; put a name with a dot into double quotes")
	errEmpty    = errors.New("a part of the pattern is empty")
	errUnquoted = errors.New("a double quote in the pattern is not closed or not at the edge of a part")
)

// ParseTablePattern reads one pattern.
func ParseTablePattern(s string) (TablePattern, error) {
	p := TablePattern{text: s}
	rest := s
	if r, ok := strings.CutPrefix(s, "!"); ok {
		p.exclude, rest = true, r
	}
	parts, err := parseParts(rest)
	if err != nil {
		return TablePattern{}, err
	}
	switch {
	case len(parts) == 1:
		return TablePattern{}, errNoDot
	case len(parts) > 2:
		return TablePattern{}, errParts
	}
	p.schema, p.table = parts[0], parts[1]
	return p, nil
}

// parseParts reads the parts of a dotted pattern.
func parseParts(s string) ([]glob, error) {
	var parts []glob
	for {
		g, rest, err := parsePart(s)
		if err != nil {
			return nil, err
		}
		parts = append(parts, g)
		if rest == "" {
			return parts, nil
		}
		s = rest[1:] // the dot
	}
}

// parsePart reads one part and returns what follows it: nothing, or a text that begins with a dot.
func parsePart(s string) (glob, string, error) {
	if !strings.HasPrefix(s, `"`) {
		end := strings.IndexByte(s, '.')
		if end < 0 {
			end = len(s)
		}
		switch {
		case end == 0:
			return nil, "", errEmpty
		case strings.Contains(s[:end], `"`):
			return nil, "", errUnquoted
		}
		return strings.Split(s[:end], "*"), s[end:], nil
	}
	var name strings.Builder
	for s = s[1:]; ; {
		i := strings.IndexByte(s, '"')
		if i < 0 {
			return nil, "", errUnquoted
		}
		name.WriteString(s[:i])
		s = s[i+1:]
		if !strings.HasPrefix(s, `"`) {
			break
		}
		name.WriteByte('"')
		s = s[1:]
	}
	switch {
	case name.Len() == 0:
		return nil, "", errEmpty
	case s != "" && s[0] != '.':
		return nil, "", errUnquoted
	}
	return glob{name.String()}, s, nil
}

// String returns the pattern as written.
func (p TablePattern) String() string { return p.text }

// Excludes reports whether the pattern takes tables away.
func (p TablePattern) Excludes() bool { return p.exclude }

// Match reports whether schema and table have the form of the pattern, whatever its sign.
func (p TablePattern) Match(schema, table string) bool {
	return p.schema.match(schema) && p.table.match(table)
}

// Exact returns the one table that the pattern can match, if it is a pattern without stars.
func (p TablePattern) Exact() (schema, table string, ok bool) {
	if len(p.schema) != 1 || len(p.table) != 1 {
		return "", "", false
	}
	return p.schema[0], p.table[0], true
}

// Schema returns the one schema whose tables the pattern can match, if its first part is without stars.
func (p TablePattern) Schema() (schema string, ok bool) {
	if len(p.schema) != 1 {
		return "", false
	}
	return p.schema[0], true
}

// DecodeNode reads one pattern.
func (p *TablePattern) DecodeNode(d *config.Decoder, n *config.Node) {
	if n.Kind != config.String {
		d.Problem(n, "this is %s; a text is expected", n.Kind)
		return
	}
	parsed, err := ParseTablePattern(n.Text)
	if err != nil {
		d.Problem(n, "%s", err)
		return
	}
	*p = parsed
}

// EncodeNode writes the pattern as it was written.
func (p TablePattern) EncodeNode(config.Secrets) *config.Node { return config.Word(p.text) }

// SchemaNode describes the notation.
func (TablePattern) SchemaNode() map[string]any {
	return map[string]any{"type": "string", "pattern": `^!?("([^"]|"")+"|[^".]+)\.("([^"]|"")+"|[^".]+)$`}
}

// Tables selects tables: those which at least one pattern includes and none excludes. The order does not matter.
type Tables []TablePattern

// Match reports whether the table is selected.
func (t Tables) Match(schema, table string) bool {
	in := false
	for _, p := range t {
		if !p.Match(schema, table) {
			continue
		}
		if p.exclude {
			return false
		}
		in = true
	}
	return in
}

func (t Tables) check(d *config.Decoder, n *config.Node) {
	seen := make(map[string]bool)
	in := len(t) == 0
	for i, p := range t {
		if p.text == "" {
			in = true // what it was meant to be is not known
			continue
		}
		if seen[p.text] {
			d.Problem(n.Items[i], "the pattern is there twice")
		}
		seen[p.text] = true
		in = in || !p.exclude
	}
	if !in {
		d.Problem(n, "every pattern excludes; at least one must include: public.*")
	}
}
