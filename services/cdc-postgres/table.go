package cdcpostgres

import (
	"fmt"
	"slices"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/pgcodec"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/services/cdc-postgres/internal/catalog"
	"weir.dev/weir/services/cdc-postgres/internal/core"
	"weir.dev/weir/services/cdc-postgres/internal/pgoutput"
)

// originPostgres is the word for the kind of database in row schemas.
const originPostgres = "postgres"

// described is a table as a Relation message and the catalog describe it together. err, if set, is why its rows cannot
// be read; it matters only once a row comes that has to be emitted.
type described struct {
	relation pgoutput.Relation
	captured bool
	columns  []rows.Column
	codecs   []pgcodec.Codec
	key      []int
	err      error
	// Of the columns in the log: how many there are, which are kept (nil: all), and what takes the place of values; see veil.
	// added, where it is not nil, has the values of those that are not in the log yet, which keep has as [core.Added].
	width int
	keep  []int
	added []pgoutput.Cell
	masks []masked
	// live is the table in the catalog, which may have moved on.
	live *core.Live
}

// describe combines a table of the log with the catalog of today. now is nil when the catalog has no such table any
// more; types must hold every type of the relation that still exists.
func describe(r pgoutput.Relation, now *catalog.Table, types map[uint32]catalog.Type, where string) *described {
	d := &described{relation: r, captured: true, width: len(r.Columns)}
	if now == nil {
		now = &catalog.Table{}
	}
	d.live = liveOf(now)
	d.key = core.KeyOf(&r, now.PrimaryKey, now.IdentityKey)
	place := make(map[int]int, len(d.key))
	for at, i := range d.key {
		place[i] = at + 1
	}
	today := make(map[string]catalog.Column, len(now.Columns))
	for _, c := range now.Columns {
		today[c.Name] = c
	}
	for i, c := range r.Columns {
		codec, ok := catalog.CodecOf(types, c.TypeOID, c.Modifier, today[c.Name].Dimensions)
		if !ok {
			d.err = fault.New(fault.PGSchemaChanged, where, fmt.Sprintf(
				"table %s.%s: the type of column %q (oid %d) no longer exists in the catalog", r.Schema, r.Name, c.Name, c.TypeOID))
			return d
		}
		d.codecs = append(d.codecs, codec)
		d.columns = append(d.columns, rows.Column{
			Name: c.Name, Type: codec.Type(), Source: codec.SourceType(),
			Nullable: !today[c.Name].NotNull && place[i] == 0, KeyPos: place[i], ID: i + 1,
		})
	}
	return d
}

// binary reports whether every column has a binary form we know.
func (d *described) binary() bool {
	for _, c := range d.codecs {
		if !c.HasBinary() {
			return false
		}
	}
	return true
}

// same reports whether both describe the same schema in the same columns, so that a bound table can stay in use. The
// server repeats a Relation message whenever it has looked at its catalog again.
func (d *described) same(o *described) bool {
	return d.id() == o.id() && d.captured == o.captured && d.err == nil && o.err == nil &&
		d.relation.Identity == o.relation.Identity && slices.Equal(d.relation.Columns, o.relation.Columns) &&
		slices.Equal(d.columns, o.columns) && slices.Equal(d.key, o.key) &&
		d.width == o.width && slices.Equal(d.keep, o.keep)
}

func (d *described) id() rows.TableID {
	return rows.TableID(d.relation.Schema + "." + d.relation.Name)
}

// table is a described table bound to a builder: the rows of one schema version on their way into a batch.
type table struct {
	*described
	builder *halves.Gathering // nil until a row has to be emitted
	text    []pgcodec.Decoder
	binary  []pgcodec.Decoder // nil where the format is text

	// While the log catches up with the copy: what of the table's changes counts, and how keys are written.
	filter *cdc.TableFilter[uint32, position.LSN]
	forms  []core.KeyForm
}

// bind makes the builder of a schema version and the decoders into it.
func bind(d *described, version uint32, where string) (*table, error) {
	schema, err := rows.NewSchema(d.id(), version, originPostgres, d.columns)
	if err != nil {
		return nil, fault.Wrap(err, fault.PGSchemaChanged, where, err.Error())
	}
	t := &table{
		described: d, builder: halves.NewGathering(schema),
		text: make([]pgcodec.Decoder, len(d.codecs)), binary: make([]pgcodec.Decoder, len(d.codecs)),
	}
	for i, c := range d.codecs {
		if t.text[i], err = c.Decoder(t.builder.Builder, i, pgcodec.Text); err != nil {
			return nil, fault.Wrap(err, fault.PGTypeUndecodable, where, err.Error())
		}
		if !c.HasBinary() {
			continue
		}
		if t.binary[i], err = c.Decoder(t.builder.Builder, i, pgcodec.Binary); err != nil {
			return nil, fault.Wrap(err, fault.PGTypeUndecodable, where, err.Error())
		}
	}
	for _, m := range d.masks {
		t.text[m.column], t.binary[m.column] = m.decoder(t.builder.Builder, t.text[m.column]), m.decoder(t.builder.Builder, t.binary[m.column])
	}
	return t, nil
}

// put sets every column of the builder's current row. With only set, the cells of other columns were not sent by the
// log, whatever the message holds in their place.
func (t *table) put(cells []pgoutput.Cell, only []int) error {
	for i := range cells {
		c := &cells[i]
		var err error
		switch {
		case c.Kind == pgoutput.CellUnchanged, only != nil && !slices.Contains(only, i):
			t.builder.Absent(i)
		case c.Kind == pgoutput.CellText:
			err = t.text[i](c.Data)
		case c.Kind == pgoutput.CellBinary && t.binary[i] != nil:
			err = t.binary[i](c.Data)
		case c.Kind == pgoutput.CellNull:
			t.builder.Null(i)
		default:
			err = fmt.Errorf("cell of kind %q", c.Kind)
		}
		if err != nil {
			return fmt.Errorf("table %s, column %q: %w", t.id(), t.columns[i].Name, err)
		}
	}
	return nil
}
