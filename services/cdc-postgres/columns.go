package cdcpostgres

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/pgcodec"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/cdc-postgres/internal/catalog"
	"weir.dev/weir/services/cdc-postgres/internal/core"
	"weir.dev/weir/services/cdc-postgres/internal/pgoutput"
	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

// redacted takes the place of a value under the mask redact.
const redacted = "[redacted]"

// veil says which values do not leave the source. Rows of the log and of the copy pass it on their way into a builder, so
// that nothing behind it has ever seen them. A nil veil lets everything through.
type veil struct {
	columns *spec.Columns
	salt    []byte
	where   string
}

// newVeil resolves the salt; the value stays in the veil.
func newVeil(cfg source.Config, pg *spec.PostgresSource, where string) (*veil, error) {
	if pg.Columns.IsZero() {
		return nil, nil
	}
	v := &veil{columns: &pg.Columns, where: where}
	if pg.Columns.Salt.IsZero() {
		return v, nil
	}
	salt, err := cfg.Resolve(pg.Columns.Salt.Raw())
	if err != nil {
		return nil, fmt.Errorf("%s.columns.salt: %w", where, err)
	}
	if salt == "" && slices.ContainsFunc(pg.Columns.Mask, func(m spec.MaskedColumns) bool { return m.Mask == spec.MaskHash }) {
		return nil, fault.New(fault.SrcColumns, where+".columns.salt", "the salt is empty; without one, whoever can guess a value can find it",
			"where", where, "pattern", "the salt")
	}
	v.salt = []byte(salt)
	return v, nil
}

func (v *veil) excludes(t pgrepl.TableName, column string) bool {
	return v != nil && v.columns.Excludes(t.Schema, t.Name, column)
}

func (v *veil) mask(t pgrepl.TableName, column string) spec.Mask {
	if v == nil {
		return spec.NoMask
	}
	return v.columns.MaskOf(t.Schema, t.Name, column)
}

// masked is a column with something in place of its values.
type masked struct {
	column int // among those that are kept
	mask   spec.Mask
	salt   []byte
}

// describe is the function describe for what the veil lets through, and without the columns that no row of a copy has.
func (v *veil) describe(r pgoutput.Relation, now *catalog.Table, types map[uint32]catalog.Type, where string) *described {
	if v == nil && !slices.ContainsFunc(r.Columns, func(c pgoutput.RelationColumn) bool { return generated(r, c, now) }) {
		return describe(r, now, types, where)
	}
	name := pgrepl.TableName{Schema: r.Schema, Name: r.Name}
	if v != nil {
		if err := v.spareKey(name, &r, now); err != nil {
			return &described{relation: r, captured: true, err: err}
		}
	}
	shown, keep := r, make([]int, 0, len(r.Columns))
	shown.Columns = make([]pgoutput.RelationColumn, 0, len(r.Columns))
	for i, c := range r.Columns {
		if !v.excludes(name, c.Name) && !generated(r, c, now) {
			shown.Columns, keep = append(shown.Columns, c), append(keep, i)
		}
	}
	d := describe(shown, v.hide(now), types, where)
	d.width = len(r.Columns)
	if len(keep) < len(r.Columns) {
		d.keep = keep
	}
	if d.err != nil || v == nil {
		return d
	}
	for i := range d.columns {
		c := &d.columns[i]
		m := masked{column: i, mask: v.mask(name, c.Name), salt: v.salt}
		switch m.mask {
		case spec.NoMask:
			continue
		case spec.MaskNull:
			c.Nullable = true
		case spec.MaskRedact:
			d.codecs[i] = pgcodec.Verbatim("text")
		case spec.MaskHash:
			d.codecs[i] = hashed(d.codecs[i])
		}
		c.Type, c.Source = d.codecs[i].Type(), sourceOf(m.mask, c.Source)
		d.masks = append(d.masks, m)
	}
	return d
}

// generated reports whether a column of the log is one that the server computes: a publication may send those since
// PostgreSQL 18, but the copy has none of them.
func generated(r pgoutput.Relation, c pgoutput.RelationColumn, now *catalog.Table) bool {
	key := c.Key && r.Identity != 'f' // under FULL every column is marked
	return now != nil && !key && slices.ContainsFunc(now.Columns, func(l catalog.Column) bool { return l.Generated && l.Name == c.Name })
}

// hide is a table of the catalog without the columns that are left out.
func (v *veil) hide(now *catalog.Table) *catalog.Table {
	if now == nil {
		return nil
	}
	shown := *now
	shown.Columns = slices.DeleteFunc(slices.Clone(now.Columns), func(c catalog.Column) bool { return v.excludes(now.Name, c.Name) })
	return &shown
}

// hashed is the codec of what is hashed: the text of a value, on both paths. It has no binary form unless that is the text.
func hashed(c pgcodec.Codec) pgcodec.Codec {
	if c.Type().Kind == rows.KindText && c.HasBinary() {
		return pgcodec.Verbatim("text")
	}
	return pgcodec.Opaque("text")
}

func sourceOf(m spec.Mask, was string) string {
	if m == spec.MaskNull {
		return was
	}
	return "text"
}

// binary reports whether a column may be read in binary form, being of a codec.
func (v *veil) binary(t pgrepl.TableName, column string, c pgcodec.Codec) bool {
	if v.excludes(t, column) {
		return true
	}
	switch v.mask(t, column) {
	case spec.MaskRedact:
		return true
	case spec.MaskHash:
		return hashed(c).HasBinary()
	case spec.NoMask, spec.MaskNull:
	}
	return c.HasBinary()
}

// cover is what a mask makes of a cell that is not null: nil for null. What it returns is valid until the next call.
func (m masked) cover() func(cell []byte) []byte {
	switch m.mask {
	case spec.MaskNull:
		return func([]byte) []byte { return nil }
	case spec.MaskRedact:
		return func([]byte) []byte { return []byte(redacted) }
	case spec.MaskHash:
		mac := hmac.New(sha256.New, m.salt)
		var sum, text [2 * sha256.Size]byte
		return func(cell []byte) []byte {
			mac.Reset()
			mac.Write(cell)
			hex.Encode(text[:], mac.Sum(sum[:0]))
			return text[:]
		}
	case spec.NoMask:
	}
	return func(cell []byte) []byte { return cell }
}

// decoder puts the mask before a column's decoder; nil stays nil.
func (m masked) decoder(b *rows.Builder, next pgcodec.Decoder) pgcodec.Decoder {
	if next == nil {
		return nil
	}
	cover := m.cover()
	return func(cell []byte) error {
		if cell = cover(cell); cell == nil {
			b.Null(m.column)
			return nil
		}
		return next(cell)
	}
}

// kept takes the cells of a row of the log that are kept, in place. A row of another width is left as it is.
func (d *described) kept(cells []pgoutput.Cell) []pgoutput.Cell {
	if d.keep == nil || len(cells) != d.width {
		return cells
	}
	for to, from := range d.keep {
		cells[to] = cells[from]
	}
	return cells[:len(d.keep)]
}

// spareKey refuses what would hide a key: the bounds of the copy's chunks are values of it and lie on the bus, and rows
// without it cannot be told apart.
func (v *veil) spareKey(name pgrepl.TableName, r *pgoutput.Relation, now *catalog.Table) error {
	if now == nil {
		now = &catalog.Table{}
	}
	for _, i := range core.KeyOf(r, now.PrimaryKey, now.IdentityKey) {
		column := r.Columns[i].Name
		if v.excludes(name, column) || v.mask(name, column) != spec.NoMask {
			return v.fault(fmt.Sprintf("%s.%s", name, column), fmt.Sprintf(
				"column %q is part of the key of table %s, which identifies its rows on the way and at the sinks", column, name))
		}
	}
	return nil
}

// used refuses a pattern that means no column of the tables: what it was to hide would be shown.
func (v *veil) used(tables []*catalog.Table) error {
	if v == nil {
		return nil
	}
	for _, p := range v.columns.Patterns() {
		if !slices.ContainsFunc(tables, func(t *catalog.Table) bool {
			return slices.ContainsFunc(t.Columns, func(c catalog.Column) bool { return p.Match(t.Name.Schema, t.Name.Name, c.Name) })
		}) {
			return v.fault(p.String(), fmt.Sprintf("%s means no column of the captured tables; what it was to hide would be shown", p))
		}
	}
	return nil
}

func (v *veil) fault(pattern, why string) error {
	return fault.New(fault.SrcColumns, v.where+".columns", why, "pattern", pattern, "where", v.where)
}

// listed are the columns of a table that a publication of ours is to send; nil for all. PostgreSQL refuses the updates of a
// table with REPLICA IDENTITY FULL, or with a partition that has another identity, once its publication has such a list:
// there the reader leaves the columns out. The same holds before version 15.
func (v *veil) listed(t *catalog.Table, version int, oneIdentity bool) []string {
	if v == nil || version < 150000 || t.Identity == 'f' || !oneIdentity {
		return nil
	}
	var columns []string
	hidden := false
	for _, c := range t.Columns {
		switch {
		case v.excludes(t.Name, c.Name):
			hidden = true
			if t.Identity == 'i' && slices.Contains(t.IdentityKey, c.Name) {
				return nil
			}
		case !c.Generated:
			columns = append(columns, c.Name)
		}
	}
	if !hidden {
		return nil
	}
	return columns
}
