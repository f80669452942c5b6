package spec

import (
	"errors"
	"slices"
	"strings"

	"weir.dev/weir/pkg/config"
)

// Columns says which values never leave the source. A column that several patterns match is treated by the one that shows
// least: left out, then null, redact, hash.
type Columns struct {
	Exclude []ColumnPattern `yaml:"exclude" doc:"Patterns schema.table.column of columns that are left out. With a publication of its own, PostgreSQL 15 and newer does not send them."`
	Mask    Masks           `yaml:"mask" doc:"What takes the place of values, by pattern: null, redact (the word [redacted]) or hash (HMAC-SHA-256 with the salt, in hex)."`
	Salt    config.Secret   `yaml:"salt" doc:"The key of hash, by reference: ${SALT} or ${file:/run/secrets/salt}. With the same salt equal values have equal hashes in every table and job."`
}

// Mask is what takes the place of a column's values. NULL stays NULL under every mask.
type Mask string

// The masks.
const (
	NoMask     Mask = ""
	MaskHash   Mask = "hash"   // HMAC-SHA-256 of the value's text, 64 hex digits; the column is a text
	MaskRedact Mask = "redact" // the word [redacted]; the column is a text
	MaskNull   Mask = "null"   // NULL; the column keeps its type
)

// masks are the words, those that show least first.
func masks() []string { return []string{string(MaskNull), string(MaskRedact), string(MaskHash)} }

// ColumnPattern selects columns by schema, table and name: schema.table.column, in the notation of [TablePattern] without
// an exclamation mark.
type ColumnPattern struct {
	text                  string
	schema, table, column glob
}

var (
	errColumnParts = errors.New("a column is schema.table.column: public.customers.email or public.*.email; put a name with a dot into double quotes")
	errColumnSign  = errors.New("a column pattern has no exclamation mark")
)

// ParseColumnPattern reads one pattern.
func ParseColumnPattern(s string) (ColumnPattern, error) {
	if strings.HasPrefix(s, "!") {
		return ColumnPattern{}, errColumnSign
	}
	parts, err := parseParts(s)
	switch {
	case err != nil:
		return ColumnPattern{}, err
	case len(parts) != 3:
		return ColumnPattern{}, errColumnParts
	}
	return ColumnPattern{text: s, schema: parts[0], table: parts[1], column: parts[2]}, nil
}

// String returns the pattern as written.
func (p ColumnPattern) String() string { return p.text }

// Match reports whether the pattern means the column.
func (p ColumnPattern) Match(schema, table, column string) bool {
	return p.schema.match(schema) && p.table.match(table) && p.column.match(column)
}

func (p *ColumnPattern) read(d *config.Decoder, n *config.Node, text string) {
	parsed, err := ParseColumnPattern(text)
	if err != nil {
		d.Problem(n, "%s", err)
		return
	}
	*p = parsed
}

// DecodeNode reads one pattern.
func (p *ColumnPattern) DecodeNode(d *config.Decoder, n *config.Node) {
	if n.Kind != config.String {
		d.Problem(n, "this is %s; a text is expected", n.Kind)
		return
	}
	p.read(d, n, n.Text)
}

// EncodeNode writes the pattern as it was written.
func (p ColumnPattern) EncodeNode(config.Secrets) *config.Node { return config.Word(p.text) }

const columnNotation = `^("([^"]|"")+"|[^!".][^".]*)(\.("([^"]|"")+"|[^".]+)){2}$`

// SchemaNode describes the notation.
func (ColumnPattern) SchemaNode() map[string]any {
	return map[string]any{"type": "string", "pattern": columnNotation}
}

// MaskedColumns is one entry of a mask.
type MaskedColumns struct {
	Columns ColumnPattern
	Mask    Mask
}

// Masks are the entries in the order of the text.
type Masks []MaskedColumns

// DecodeNode reads a mapping of patterns to words.
func (m *Masks) DecodeNode(d *config.Decoder, n *config.Node) {
	if n.Kind != config.Map {
		d.Problem(n, "this is %s; a mapping of columns to masks is expected", n.Kind)
		return
	}
	for _, e := range n.Entries {
		var c MaskedColumns
		c.Columns.read(d, e.Key, e.Key.Text)
		switch {
		case e.Value == nil: // reported by the parser
			continue
		case e.Value.Kind == config.Null: // the bare word null
			c.Mask = MaskNull
		case e.Value.Kind == config.String && slices.Contains(masks(), e.Value.Text):
			c.Mask = Mask(e.Value.Text)
		case e.Value.Kind == config.String:
			d.Word(e.Value, "mask", masks())
			continue
		default:
			d.Problem(e.Value, "this is %s; one of null, redact and hash is expected", e.Value.Kind)
			continue
		}
		*m = append(*m, c)
	}
}

// EncodeNode writes the mapping in its order.
func (m Masks) EncodeNode(config.Secrets) *config.Node {
	if len(m) == 0 {
		return nil
	}
	out := &config.Node{Kind: config.Map}
	for _, c := range m {
		out.Put(c.Columns.text, config.Word(string(c.Mask)))
	}
	return out
}

// SchemaNode describes the mapping.
func (Masks) SchemaNode() map[string]any {
	return map[string]any{
		"type":                 "object",
		"propertyNames":        map[string]any{"pattern": columnNotation},
		"additionalProperties": map[string]any{"enum": []any{string(MaskNull), string(MaskRedact), string(MaskHash), nil}},
	}
}

// IsZero reports whether every column is read as it is.
func (c *Columns) IsZero() bool { return len(c.Exclude) == 0 && len(c.Mask) == 0 }

// Excludes reports whether a column is left out.
func (c *Columns) Excludes(schema, table, column string) bool {
	return slices.ContainsFunc(c.Exclude, func(p ColumnPattern) bool { return p.Match(schema, table, column) })
}

// MaskOf returns the mask of a column that is not left out.
func (c *Columns) MaskOf(schema, table, column string) Mask {
	least := NoMask
	for _, m := range c.Mask {
		if m.Columns.Match(schema, table, column) && (least == NoMask || slices.Index(masks(), string(m.Mask)) < slices.Index(masks(), string(least))) {
			least = m.Mask
		}
	}
	return least
}

// Patterns lists every pattern, those of exclude first.
func (c *Columns) Patterns() []ColumnPattern {
	all := slices.Clone(c.Exclude)
	for _, m := range c.Mask {
		all = append(all, m.Columns)
	}
	return all
}

func (c *Columns) check(d *config.Decoder, n *config.Node) {
	if n == nil {
		return
	}
	hashes := slices.ContainsFunc(c.Mask, func(m MaskedColumns) bool { return m.Mask == MaskHash })
	switch salt := n.Get("salt"); {
	case hashes && salt == nil:
		d.Problem(n, "hash needs a salt, by reference: salt: ${SALT}; without one, whoever can guess a value can find it")
	case salt != nil && !c.Salt.IsZero() && !strings.Contains(c.Salt.Literals(), reference):
		d.Problem(salt, "the salt must be a reference: ${SALT} or ${file:/run/secrets/salt}; the spec is stored where others can read it")
	}
}
