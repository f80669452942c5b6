package audit

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/verdict"
)

// Table is a table of a changelog and the key that its source has.
type Table struct {
	Name string // of source and target, without schema
	Key  []string
}

// Changelog reads what a postgres sink in changelog mode has written into a schema, in the order in which it became
// visible. Tables keep the name of their source schema, which is given.
func Changelog(ctx context.Context, url, schema, sourceSchema string, tables []Table) ([]Change, error) {
	conn, err := session(ctx, url)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var all []placed
	for _, t := range tables {
		found, err := readTable(ctx, conn, schema, sourceSchema, t)
		if err != nil {
			return nil, fmt.Errorf("read changelog of %s: %w", t.Name, err)
		}
		all = append(all, found...)
	}
	return inOrder(all), nil
}

// inOrder sorts changes by when they became visible.
func inOrder(all []placed) []Change {
	slices.SortFunc(all, func(a, b placed) int { return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.seq, b.seq)) })
	changes := make([]Change, len(all))
	for i, p := range all {
		changes[i] = p.Change
	}
	return changes
}

// placed is a change with its place among those of its epoch.
type placed struct {
	Change
	seq int64
}

func readTable(ctx context.Context, conn *pgx.Conn, schema, sourceSchema string, t Table) ([]placed, error) {
	columns, err := columnsOf(ctx, conn, schema, t.Name)
	if err != nil {
		return nil, err
	}
	found, err := conn.Query(ctx, fmt.Sprintf(
		`SELECT _op::int4, _seq, _txn, _ord, _epoch, coalesce(_absent, '{}'), ARRAY[%s] FROM %s`,
		texts(columns), pgx.Identifier{schema, t.Name}.Sanitize()))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, func(row pgx.CollectableRow) (placed, error) {
		var op int32
		var seq, txn, ord, at int64
		var absent []string
		var cells []*string
		if err := row.Scan(&op, &seq, &txn, &ord, &at, &absent, &cells); err != nil {
			return placed{}, err
		}
		p := placed{seq: seq, Change: Change{
			Change: verdict.Change{
				Table: sourceSchema + "." + t.Name, Op: rows.Op(op), Txn: uint64(txn), Ord: uint32(ord), Epoch: epoch.ID(at),
			},
			Cells: make(map[string]*string),
		}}
		for i, name := range columns {
			if !slices.Contains(absent, name) {
				p.Cells[name] = cells[i]
			}
		}
		var key []*string
		for _, name := range t.Key {
			key = append(key, p.Cells[name])
		}
		var err error
		p.Key, err = keyText(key)
		return p, err
	})
}

// columnsOf lists the columns that are the source's, in their order.
func columnsOf(ctx context.Context, conn *pgx.Conn, schema, table string) ([]string, error) {
	found, err := conn.Query(ctx, `SELECT column_name::text FROM information_schema.columns
		WHERE table_schema = $1 AND table_name = $2 AND NOT starts_with(column_name, '_') ORDER BY ordinal_position`, schema, table)
	if err != nil {
		return nil, err
	}
	columns, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err == nil && len(columns) == 0 {
		err = fmt.Errorf("there is no table %s.%s", schema, table)
	}
	return columns, err
}
