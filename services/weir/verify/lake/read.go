package lake

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/array"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/services/weir/verify/audit"
)

// open loads a table as it was at the pinned moment.
func (p Pin) open(ctx context.Context, name string) (*table.Table, error) {
	at := p.at[name]
	if at == "" {
		return nil, fmt.Errorf("the catalog has no table %s", name)
	}
	local := func(context.Context) (iceio.IO, error) { return iceio.LocalFS{}, nil }
	t, err := table.NewFromLocation(ctx, table.Identifier{name}, at, local, nil)
	if err != nil {
		return nil, fmt.Errorf("load table %s: %w", name, err)
	}
	return t, nil
}

// Count is how many rows the data files of a table hold, as its manifests say, and which epoch of which sink the table is at; for
// tables without deletes.
func (p Pin) Count(ctx context.Context, name, sink string) (n int64, at string, err error) {
	t, err := p.open(ctx, name)
	if err != nil {
		return 0, "", err
	}
	tasks, err := t.Scan().PlanFiles(ctx)
	if err != nil {
		return 0, "", fmt.Errorf("plan a scan of %s: %w", name, err)
	}
	for _, task := range tasks {
		n += task.File.Count()
	}
	return n, t.Properties()["weir."+sink+".epoch"], nil
}

// each scans a table and hands over its rows, all columns as text; fields, if given, are the only columns.
func (p Pin) each(ctx context.Context, name string, take func(audit.Cells) error, fields ...string) error {
	t, err := p.open(ctx, name)
	if err != nil {
		return err
	}
	var options []table.ScanOption
	if len(fields) > 0 {
		options = append(options, table.WithSelectedFields(fields...))
	}
	all, err := t.Scan(options...).ToArrowTable(ctx)
	if err != nil {
		return fmt.Errorf("scan %s: %w", name, err)
	}
	defer all.Release()
	for r := array.NewTableReader(all, 1<<16); r.Next(); {
		record := r.RecordBatch()
		for i := range int(record.NumRows()) {
			row := make(audit.Cells)
			for c, f := range record.Schema().Fields() {
				if row[f.Name], err = text(record.Column(c), i); err != nil {
					return fmt.Errorf("table %s, column %s: %w", name, f.Name, err)
				}
			}
			if err := take(row); err != nil {
				return fmt.Errorf("table %s: %w", name, err)
			}
		}
	}
	return nil
}

// Content reads current tables; fields, if given, are the only columns.
func (p Pin) Content(ctx context.Context, tables []audit.Table, fields ...string) (map[string]audit.Content, error) {
	all := make(map[string]audit.Content)
	for _, t := range tables {
		c := make(audit.Content)
		if err := p.each(ctx, t.Name, func(row audit.Cells) error { return c.Add(t.Key, row) }, fields...); err != nil {
			return nil, err
		}
		all[t.Name] = c
	}
	return all, nil
}

// placed is a change with its place among those of its epoch.
type placed struct {
	audit.Change
	seq int64
}

// Changes reads changelogs, whose names end with suffix, in the order in which they became visible. Tables keep the name of their
// source schema, which is given.
func (p Pin) Changes(ctx context.Context, tables []audit.Table, suffix, sourceSchema string) ([]audit.Change, error) {
	var all []placed
	for _, t := range tables {
		err := p.each(ctx, t.Name+suffix, func(row audit.Cells) error {
			c, err := change(row, t)
			c.Table = sourceSchema + "." + t.Name
			all = append(all, c)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b placed) int { return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.seq, b.seq)) })
	changes := make([]audit.Change, len(all))
	for i, c := range all {
		changes[i] = c.Change
	}
	return changes, nil
}

// change takes a row of a changelog apart: the source's columns, and those that begin with an underscore.
func change(row audit.Cells, t audit.Table) (c placed, err error) {
	number := func(column string) (n int64) {
		if v := row[column]; err == nil && v != nil {
			n, err = strconv.ParseInt(*v, 10, 64)
		}
		return n
	}
	c.seq, c.Op = number("_seq"), rows.Op(number("_op"))
	c.Txn, c.Ord, c.Epoch = uint64(number("_txn")), uint32(number("_ord")), epoch.ID(number("_epoch"))
	if err != nil {
		return c, err
	}
	c.Cells = make(audit.Cells)
	for name, v := range row {
		if !strings.HasPrefix(name, "_") {
			c.Cells[name] = v
		}
	}
	if absent := row["_absent"]; absent != nil {
		for name := range strings.SplitSeq(strings.Trim(*absent, "{}"), ",") { // names of columns need no quotes here
			delete(c.Cells, name)
		}
	}
	c.Key, err = audit.KeyOf(c.Cells, t.Key)
	return c, err
}
