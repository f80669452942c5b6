package cdcmysql

import (
	"fmt"
	"slices"

	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/mycodec"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/cdc-mysql/internal/catalog"
)

// masked is a column with something in place of its values.
type masked struct {
	column int
	mask   spec.Mask
	codec  mycodec.Codec // of the values
}

// column puts the next column of a table behind the others, with what the veil leaves of it.
func (d *described) column(v *halves.Veil, name string, nullable bool, c mycodec.Codec) error {
	if v.Excludes(d.name.Schema, d.name.Table, name) {
		d.widths, d.place = append(d.widths, c.Width()), append(d.place, -1)
		return nil
	}
	d.place = append(d.place, len(d.columns))
	shown := c
	m := masked{column: len(d.columns), mask: v.Mask(d.name.Schema, d.name.Table, name), codec: c}
	switch m.mask {
	case spec.NoMask:
		d.add(name, nullable, c)
		return nil
	case spec.MaskNull:
		nullable = true
	case spec.MaskRedact, spec.MaskHash:
		var err error
		if shown, err = mycodec.OfCatalog(mycodec.CatalogColumn{DataType: "text", ColumnType: "text", OctetLength: 1<<16 - 1, Charset: "utf8mb4"}); err != nil {
			return err
		}
	}
	d.masks = append(d.masks, m)
	d.add(name, nullable, shown)
	d.widths[len(d.widths)-1] = c.Width()
	return nil
}

// spareKey places the columns of the key among those that are kept.
func (d *described) spareKey(v *halves.Veil, names []string) error {
	for _, name := range names {
		if err := v.SpareKey(d.name.Schema, d.name.Table, name); err != nil {
			return err
		}
	}
	if !slices.Contains(d.place, -1) {
		d.place = nil
	}
	return nil
}

// read is the codec by which a column is read, whatever is shown of it.
func (d *described) read(column int) mycodec.Codec {
	for _, m := range d.masks {
		if m.column == column {
			return m.codec
		}
	}
	return d.codecs[column]
}

// cover is what a mask makes of a cell that is not null; nil is null. The cell that it returns is valid until the next call.
type cover func(cell []byte) ([]byte, error)

// cover makes what covers the column's cells in a format. Hashed is the text of a value, which is the same in the log and in a
// copy.
func (m masked) cover(v *halves.Veil, f mycodec.Format) (cover, error) {
	veil := v.Cover(m.mask)
	if m.mask != spec.MaskHash {
		return func(cell []byte) ([]byte, error) { return veil(cell), nil }, nil
	}
	schema, err := rows.NewSchema("masked.value", 1, mycodec.Origin, []rows.Column{{Name: "value", Type: m.codec.Type(), Source: m.codec.SourceType(), Nullable: true}})
	if err != nil {
		return nil, err
	}
	one := rows.NewBuilder(schema)
	decode, err := m.codec.Decoder(one, 0, f)
	if err != nil {
		return nil, err
	}
	var text []byte
	return func(cell []byte) ([]byte, error) {
		if err := decode(cell); err != nil {
			return nil, err
		}
		one.EndRow(rows.Meta{Op: rows.OpRead, Ts: rows.NoTs})
		batch, err := one.Flush()
		if err != nil {
			return nil, err
		}
		text, _ = batch.AppendText(text[:0], 0, 0)
		if special, ok := batch.SpecialText(0, 0); ok {
			text = append(text[:0], special...)
		}
		return veil(text), nil
	}, nil
}

// decoder puts the mask before a column's decoder of the log.
func (m masked) decoder(v *halves.Veil, b *rows.Builder, next mycodec.Decoder) (mycodec.Decoder, error) {
	cover, err := m.cover(v, mycodec.Log)
	if err != nil {
		return nil, err
	}
	return func(cell []byte) error {
		covered, err := cover(cell)
		if err != nil {
			return err
		}
		if covered == nil {
			b.Null(m.column)
			return nil
		}
		return next(covered)
	}, nil
}

// words are the source types of masked columns, which what is shown of them does not tell.
func (d *described) words() map[string]string {
	var words map[string]string
	for _, m := range d.masks {
		if words == nil {
			words = make(map[string]string)
		}
		words[d.columns[m.column].Name] = m.codec.SourceType()
	}
	return words
}

// used refuses a pattern that means no column of the tables.
func (o *opened) used(tables []*catalog.Table) error {
	return o.veil.Used(func(p spec.ColumnPattern) bool {
		return slices.ContainsFunc(tables, func(t *catalog.Table) bool {
			return slices.ContainsFunc(t.Columns, func(c catalog.Column) bool { return p.Match(t.Schema, t.Table, c.Name) })
		})
	})
}

// undecodable is the fault of a column that cannot be read.
func (d *described) undecodable(err error, where, column string) error {
	return fault.Wrap(err, fault.MYTypeUndecodable, where, fmt.Sprintf("table %s, column %q: %v", d.name, column, err), "table", d.name.String())
}
