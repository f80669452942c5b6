package cdcmysql

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"

	"github.com/go-mysql-org/go-mysql/replication"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/mycodec"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/services/cdc-mysql/internal/catalog"
	"weir.dev/weir/services/cdc-mysql/internal/core"
)

// described is a table as the log, or the catalog, describes it. For the same table both give the same columns.
type described struct {
	name     core.Name
	captured *capturedTable // nil for a table that is none of ours
	columns  []rows.Column
	codecs   []mycodec.Codec
	widths   []int // of the columns of a row in the log
	place    []int // where each is among the columns, -1 for none; nil when they begin with the columns as they are
	masks    []masked
	key      []int // in the order of the key
	err      error
	raw      []byte // the table map, without the number that changes
}

func (d *described) id() rows.TableID { return rows.TableID(d.name.String()) }

// add puts the next column behind the others.
func (d *described) add(name string, nullable bool, c mycodec.Codec) {
	d.columns = append(d.columns, rows.Column{Name: name, Type: c.Type(), Source: c.SourceType(), Nullable: nullable})
	d.codecs, d.widths = append(d.codecs, c), append(d.widths, c.Width())
}

func (d *described) setKey(key []int) {
	d.key = key
	for at, i := range key {
		d.columns[i].KeyPos, d.columns[i].Nullable = at+1, false
	}
}

// ofCatalog describes a table of the catalog.
func (o *opened) ofCatalog(t *catalog.Table) *described {
	d := &described{name: t.Name}
	for _, c := range t.Columns {
		err := c.Err
		if err == nil {
			err = d.column(o.veil, c.Name, c.Nullable, c.Codec)
		}
		if err != nil {
			d.err = d.undecodable(err, o.where, c.Name)
			return d
		}
	}
	d.keyed(o.veil, t.Key)
	return d
}

// keyed gives the table its key, of columns that it shows.
func (d *described) keyed(v *halves.Veil, names []string) {
	if d.err = d.spareKey(v, names); d.err != nil {
		return
	}
	key := make([]int, len(names))
	for i, name := range names {
		key[i] = slices.IndexFunc(d.columns, func(c rows.Column) bool { return c.Name == name })
	}
	d.setKey(key)
}

// hidden matches the columns that MariaDB makes behind the others for unique keys of long values. Nobody sees them but who
// reads the log.
var hidden = regexp.MustCompile(`^DB_ROW_HASH_[0-9]+$`)

// ofLog describes a table of a table map. known are the source types of the table's columns when it was captured.
func (o *opened) ofLog(e *replication.TableMapEvent, charsets map[uint64]string, known map[string]string) *described {
	d := &described{name: core.Name{Schema: string(e.Schema), Table: string(e.Table)}}
	n := int(e.ColumnCount)
	if len(e.ColumnName) != n {
		d.err = fault.New(fault.MYSetting, o.where, fmt.Sprintf("the log does not say how the columns of table %s are called", d.name),
			"setting", "binlog_row_metadata", "value", "'FULL'")
		return d
	}
	unsigned, collated, labelled := e.UnsignedMap(), collations(e), e.EnumSetCollationMap()
	enums, sets := 0, 0
	visible := n
	for visible > 0 && hidden.Match(e.ColumnName[visible-1]) && known[string(e.ColumnName[visible-1])] == "" {
		visible--
	}
	for i := range n {
		c := mycodec.LogColumn{
			Type: e.ColumnType[i], Meta: e.ColumnMeta[i], Unsigned: unsigned[i], Charset: charsets[collated[i]], Known: known[string(e.ColumnName[i])],
		}
		switch {
		case e.IsEnumColumn(i):
			c.Charset = charsets[labelled[i]]
			if enums < len(e.EnumStrValue) {
				c.Labels = e.EnumStrValue[enums]
			}
			enums++
		case e.IsSetColumn(i):
			c.Charset = charsets[labelled[i]]
			if sets < len(e.SetStrValue) {
				c.Labels = e.SetStrValue[sets]
			}
			sets++
		}
		codec, err := mycodec.OfLog(c)
		if err != nil {
			d.err = d.undecodable(err, o.where, string(e.ColumnName[i]))
			return d
		}
		if i >= visible {
			d.widths = append(d.widths, codec.Width())
			continue
		}
		_, nullable := e.Nullable(i)
		if err := d.column(o.veil, string(e.ColumnName[i]), nullable, codec); err != nil {
			d.err = d.undecodable(err, o.where, string(e.ColumnName[i]))
			return d
		}
	}
	key := make([]string, len(e.PrimaryKey))
	for i, at := range e.PrimaryKey {
		key[i] = string(e.ColumnName[at])
	}
	d.keyed(o.veil, key)
	return d
}

// cells cuts the next row of an image: a nil cell is NULL. It returns what follows the row.
func (d *described) cells(image []byte, row [][]byte) (rest []byte, ok bool) {
	nulls := (len(d.widths) + 7) / 8
	if len(image) < nulls {
		return nil, false
	}
	bits, data := image[:nulls], image[nulls:]
	for i, w := range d.widths {
		to := i
		switch {
		case i < len(d.place):
			to = d.place[i]
		case d.place != nil || i >= len(row):
			to = -1
		}
		if bits[i>>3]&(1<<(i&7)) != 0 {
			if to >= 0 {
				row[to] = nil
			}
			continue
		}
		n := w
		if w < 0 {
			if len(data) < -w {
				return nil, false
			}
			n = 0
			for j := -w - 1; j >= 0; j-- {
				n = n<<8 | int(data[j])
			}
			data = data[-w:]
		}
		if n < 0 || n > len(data) {
			return nil, false
		}
		if to >= 0 {
			row[to] = data[:n:n]
		}
		data = data[n:]
	}
	return data, true
}

// keyOf makes the key of a row's cells.
func (d *described) keyOf(key cdc.Key, cells [][]byte, f mycodec.Format) (cdc.Key, error) {
	if len(key) != len(d.key) {
		key = make(cdc.Key, len(d.key))
	}
	for i, at := range d.key {
		if cells[at] == nil {
			return nil, fmt.Errorf("table %s, column %q: a key that is null", d.name, d.columns[at].Name)
		}
		var err error
		if key[i], err = d.codecs[at].Key(key[i][:0], cells[at], f); err != nil {
			return nil, fmt.Errorf("table %s, column %q: %w", d.name, d.columns[at].Name, err)
		}
	}
	return key, nil
}

// keyChanged reports whether two rows have different keys.
func (d *described) keyChanged(old, now [][]byte) bool {
	for _, i := range d.key {
		if !bytes.Equal(old[i], now[i]) {
			return true
		}
	}
	return false
}

// table is a described table bound to a builder: the rows of one schema version on their way into a batch.
type table struct {
	*described
	*halves.Gathering

	log, text []mycodec.Decoder // text is of cells that are covered already
	// While the log catches up with the copy: what of the table's changes counts.
	filter   *cdc.TableFilter[core.Txn, *core.Point]
	row, old [][]byte
}

// bind makes the builder of a schema version and the decoders into it. filled is what rows from before the version have in columns that
// were added.
func (o *opened) bind(d *described, version uint32, filled map[string]string) (*table, error) {
	columns := d.columns
	if len(filled) > 0 {
		columns = slices.Clone(columns)
		for i := range columns {
			columns[i].Fill, columns[i].Filled = filled[columns[i].Name]
		}
	}
	schema, err := rows.NewSchema(d.id(), version, mycodec.Origin, columns)
	if err != nil {
		return nil, fault.Wrap(err, fault.MYSchemaChanged, o.where, err.Error(), "table", d.name.String())
	}
	t := &table{
		described: d, Gathering: halves.NewGathering(schema), row: make([][]byte, len(d.columns)), old: make([][]byte, len(d.columns)),
	}
	for i, c := range d.codecs {
		log, err := c.Decoder(t.Builder, i, mycodec.Log)
		if err != nil {
			return nil, fault.Wrap(err, fault.MYTypeUndecodable, o.where, err.Error(), "table", d.name.String())
		}
		text, err := c.Decoder(t.Builder, i, mycodec.Text)
		if err != nil {
			return nil, fault.Wrap(err, fault.MYTypeUndecodable, o.where, err.Error(), "table", d.name.String())
		}
		t.log, t.text = append(t.log, log), append(t.text, text)
	}
	for _, m := range d.masks {
		if t.log[m.column], err = m.decoder(o.veil, t.Builder, t.log[m.column]); err != nil {
			return nil, d.undecodable(err, o.where, d.columns[m.column].Name)
		}
	}
	return t, nil
}

// put sets every column of the builder's current row.
func (t *table) put(cells [][]byte, decoders []mycodec.Decoder) error {
	for i, c := range cells {
		if c == nil {
			t.Null(i)
			continue
		}
		if err := decoders[i](c); err != nil {
			return fmt.Errorf("table %s, column %q: %w", t.name, t.columns[i].Name, err)
		}
	}
	return nil
}
