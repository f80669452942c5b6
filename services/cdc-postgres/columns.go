package cdcpostgres

import (
	"slices"

	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/pgcodec"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/cdc-postgres/internal/catalog"
	"weir.dev/weir/services/cdc-postgres/internal/core"
	"weir.dev/weir/services/cdc-postgres/internal/pgoutput"
	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

// veil is what the columns of a source are hidden by; nil lets everything through.
type veil struct{ *halves.Veil }

func newVeil(cfg source.Config, pg *spec.PostgresSource, where string) (*veil, error) {
	v, err := halves.NewVeil(&pg.Columns, cfg.Resolve, where)
	if v == nil {
		return nil, err
	}
	return &veil{v}, nil
}

func (v *veil) excludes(t pgrepl.TableName, column string) bool {
	return v != nil && v.Excludes(t.Schema, t.Name, column)
}

func (v *veil) mask(t pgrepl.TableName, column string) spec.Mask {
	if v == nil {
		return spec.NoMask
	}
	return v.Mask(t.Schema, t.Name, column)
}

// masked is a column with something in place of its values.
type masked struct {
	column int // among those that are kept
	mask   spec.Mask
	veil   *veil
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
		m := masked{column: i, mask: v.mask(name, c.Name), veil: v}
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

// cover is what the mask makes of a cell that is not null, see [halves.Veil.Cover].
func (m masked) cover() func(cell []byte) []byte { return m.veil.Cover(m.mask) }

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

// kept takes the cells of a row of the log that are kept, in place where none is added. A row of another width is left as it is.
func (d *described) kept(cells []pgoutput.Cell) []pgoutput.Cell {
	if d.keep == nil || len(cells) != d.width {
		return cells
	}
	if d.added != nil {
		whole := slices.Clone(d.added)
		for to, from := range d.keep {
			if from != core.Added {
				whole[to] = cells[from]
			}
		}
		return whole
	}
	for to, from := range d.keep {
		cells[to] = cells[from]
	}
	return cells[:len(d.keep)]
}

// spareKey refuses what would hide a key.
func (v *veil) spareKey(name pgrepl.TableName, r *pgoutput.Relation, now *catalog.Table) error {
	if now == nil {
		now = &catalog.Table{}
	}
	for _, i := range core.KeyOf(r, now.PrimaryKey, now.IdentityKey) {
		if err := v.SpareKey(name.Schema, name.Name, r.Columns[i].Name); err != nil {
			return err
		}
	}
	return nil
}

// used refuses a pattern that means no column of the tables.
func (v *veil) used(tables []*catalog.Table) error {
	if v == nil {
		return nil
	}
	return v.Used(func(p spec.ColumnPattern) bool {
		return slices.ContainsFunc(tables, func(t *catalog.Table) bool {
			return slices.ContainsFunc(t.Columns, func(c catalog.Column) bool { return p.Match(t.Name.Schema, t.Name.Name, c.Name) })
		})
	})
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
