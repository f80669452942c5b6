package cdcmysql

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/mycodec"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/services/cdc-mysql/internal/catalog"
	"weir.dev/weir/services/cdc-mysql/internal/core"
)

// firstVersion is the schema version of the rows of a table's first copy.
const firstVersion = 1

// capturedTable is a table as it was when the source was set up.
type capturedTable struct {
	core.Name

	// ID numbers the table in the copy.
	ID cdc.TableID `json:"id"`
	// Signature is that of the columns that are read. A copy that would find others is not made: the change is somewhere in the
	// log.
	Signature string `json:"signature"`
	// Fingerprint is that of the table's rows in the schema version in which they are copied, and Number its number.
	Fingerprint string `json:"fingerprint"`
	Number      uint32 `json:"number"`
	// Columns are those of that version.
	Columns json.RawMessage `json:"columns"`
	// Words are the source types of columns of which something else is shown.
	Words map[string]string `json:"words,omitempty"`
	// Whole says that the table is copied as one chunk: it has no key, or one that no range can be made of.
	Whole bool `json:"whole,omitempty"`
	// Collated says that only the server knows the order of the keys.
	Collated bool  `json:"collated,omitempty"`
	RowBytes int64 `json:"row_bytes,omitempty"`
}

// task is the table as the copy sees it.
func (t *capturedTable) task() cdc.Table {
	return cdc.Table{ID: t.ID, Name: t.String(), Keyless: t.Whole, RowBytes: t.RowBytes}
}

// sourceTypes are the columns' types in the server's words, by name.
func (t *capturedTable) sourceTypes() map[string]string {
	var columns []rows.Column
	if json.Unmarshal(t.Columns, &columns) != nil {
		return nil // unseen reports it
	}
	words := make(map[string]string, len(columns))
	for _, c := range columns {
		words[c.Name] = c.Source
	}
	maps.Copy(words, t.Words)
	return words
}

func byID(tables []capturedTable) map[cdc.TableID]*capturedTable {
	m := make(map[cdc.TableID]*capturedTable, len(tables))
	for i := range tables {
		m[tables[i].ID] = &tables[i]
	}
	return m
}

func byName(tables []capturedTable) map[core.Name]*capturedTable {
	m := make(map[core.Name]*capturedTable, len(tables))
	for i := range tables {
		m[tables[i].Name] = &tables[i]
	}
	return m
}

// capture describes a table that is to be captured.
func (o *opened) capture(t *catalog.Table, id cdc.TableID, last schemaVersion) (capturedTable, error) {
	d := o.ofCatalog(t)
	if d.err != nil {
		return capturedTable{}, d.err
	}
	number := max(last.Version, firstVersion)
	bound, err := o.bind(d, number, nil)
	if err != nil {
		return capturedTable{}, err
	}
	fingerprint := bound.Schema().Fingerprint().String()
	if last.Fingerprint != "" && last.Fingerprint != fingerprint {
		number++
	}
	c := capturedTable{
		Name: t.Name, ID: id, Signature: t.Signature(), Fingerprint: fingerprint, Number: number, RowBytes: t.RowBytes,
		Columns: mustMarshal(d.columns), Words: d.words(), Whole: len(d.key) == 0 || t.Prefixed,
	}
	for _, i := range d.key {
		name := d.columns[i].Name
		bytewise := t.Columns[slices.IndexFunc(t.Columns, func(c catalog.Column) bool { return c.Name == name })].Bytewise
		switch d.codecs[i].KeyOrder(bytewise) {
		case mycodec.Unordered:
			c.Whole = true
		case mycodec.ByCollation:
			c.Collated = true
		case mycodec.ByBytes:
		}
	}
	return c, nil
}

// scanPlan is how a table is read by SQL.
type scanPlan struct {
	*table

	captured   *capturedTable
	covers     []cover // by column, nil where nothing is masked; the copier's
	definition string  // of the table when it was last found to have the plan's columns; the copier's
}

// cover masks the cells of a row. It comes before everything that keeps them: segments lie on the bus.
func (p *scanPlan) cover(cells [][]byte) error {
	for i, cover := range p.covers {
		if cover == nil || cells[i] == nil {
			continue
		}
		var err error
		if cells[i], err = cover(cells[i]); err != nil {
			return fmt.Errorf("table %s, column %q: %w", p.name, p.columns[i].Name, err)
		}
	}
	return nil
}

// bindScan describes a table as it is today, which has to be as it was captured.
func (o *opened) bindScan(ctx context.Context, s *sql, t *capturedTable) (*scanPlan, error) {
	now := &catalog.Table{Name: t.Name}
	session, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	if err := catalog.Describe(ctx, session, []*catalog.Table{now}); err != nil {
		return nil, err
	}
	if now.Signature() != t.Signature {
		return nil, columnsChanged(o.where, t)
	}
	d := o.ofCatalog(now)
	if d.err != nil {
		return nil, d.err
	}
	bound, err := o.bind(d, t.Number, nil)
	if err != nil {
		return nil, err
	}
	p := &scanPlan{table: bound, captured: t}
	if len(d.masks) > 0 {
		p.covers = make([]cover, len(d.columns))
	}
	for _, m := range d.masks {
		if p.covers[m.column], err = m.cover(o.veil, mycodec.Text); err != nil {
			return nil, d.undecodable(err, o.where, d.columns[m.column].Name)
		}
	}
	return p, nil
}

// columnsChanged is the fault of a table that is no longer what the copy was set up for.
func columnsChanged(where string, t *capturedTable) error {
	return fault.New(fault.MYSchemaChanged, where, fmt.Sprintf(
		"the columns of table %s changed while the table was copied; its rows from before and behind the change do not fit together", t), "table", t.String())
}

// list is the SELECT list of the table's columns.
func (p *scanPlan) list() string {
	exprs := make([]string, len(p.columns))
	for i, c := range p.columns {
		exprs[i] = p.read(i).Expr(core.Quote(c.Name))
	}
	return strings.Join(exprs, ", ")
}

// keyColumns are the names of the key's columns.
func (p *scanPlan) keyColumns() []string {
	names := make([]string, len(p.key))
	for i, at := range p.key {
		names[i] = core.Quote(p.columns[at].Name)
	}
	return names
}

// literals are the SQL for a key.
func (p *scanPlan) literals(key cdc.Key) ([]string, error) {
	if len(key) != len(p.key) {
		return nil, fmt.Errorf("a bound of %d cells for the %d key columns of table %s: %w", len(key), len(p.key), p.name, fault.Bug)
	}
	texts := make([]string, len(key))
	for i, at := range p.key {
		b, err := p.codecs[at].Literal(nil, key[i])
		if err != nil {
			return nil, fmt.Errorf("bound of table %s: %w", p.name, err)
		}
		texts[i] = string(b)
	}
	return texts, nil
}

// compare writes a comparison of the key with a bound, column by column, and one of the first column that an index can be
// searched by: the servers do not search by tuples. op is < or >=.
func (p *scanPlan) compare(op string, key cdc.Key) (string, error) {
	values, err := p.literals(key)
	if err != nil {
		return "", err
	}
	names := p.keyColumns()
	if len(names) == 1 {
		return names[0] + " " + op + " " + values[0], nil
	}
	strict := op[:1]
	var ways []string
	equal := ""
	for i, name := range names {
		last := strict
		if i == len(names)-1 {
			last = op
		}
		ways = append(ways, "("+equal+name+" "+last+" "+values[i]+")")
		equal += name + " = " + values[i] + " AND "
	}
	return names[0] + " " + strict + "= " + values[0] + " AND (" + strings.Join(ways, " OR ") + ")", nil
}

// within is the WHERE clause of a range of keys; empty for all.
func (p *scanPlan) within(low, high cdc.Key) (string, error) {
	var parts []string
	for _, b := range []struct {
		key cdc.Key
		op  string
	}{{low, ">="}, {high, "<"}} {
		if b.key == nil {
			continue
		}
		c, err := p.compare(b.op, b.key)
		if err != nil {
			return "", err
		}
		parts = append(parts, "("+c+")")
	}
	if len(parts) == 0 {
		return "", nil
	}
	return " WHERE " + strings.Join(parts, " AND "), nil
}

// unseen binds a captured table of which the log has told nothing yet.
func (r *reader) unseen(c *capturedTable) (*table, error) {
	var d described
	if err := json.Unmarshal(c.Columns, &d.columns); err != nil {
		return nil, r.undecodable(err)
	}
	schema, err := rows.NewSchema(rows.TableID(c.String()), c.Number, mycodec.Origin, d.columns)
	if err != nil {
		return nil, r.undecodable(err)
	}
	d.name, d.captured = c.Name, c
	return &table{described: &d, Gathering: halves.NewGathering(schema)}, nil
}
