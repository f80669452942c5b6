package cdcpostgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/pgcodec"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/services/cdc-postgres/internal/scan"
)

// statement selects the rows of a chunk in the order of the key.
func statement(t *capturedTable, plan *scan.Plan, chunk cdc.Chunk) (string, error) {
	var b strings.Builder
	b.WriteString("SELECT " + plan.List() + " FROM " + t.from()) // a table without columns has rows all the same
	joint := " WHERE "
	for _, bound := range []struct {
		key cdc.Key
		op  string
	}{{chunk.Low, ">="}, {chunk.High, "<"}} {
		if bound.key == nil {
			continue
		}
		condition, err := within(t, bound.op, bound.key)
		if err != nil {
			return "", err
		}
		b.WriteString(joint + condition)
		joint = " AND "
	}
	if len(t.Key) > 0 {
		b.WriteString(" ORDER BY " + keyList(t))
	}
	return b.String(), nil
}

// within is a comparison of the key with a tuple, which the server does under the columns' own types and collations.
func within(t *capturedTable, op string, key cdc.Key) (string, error) {
	if len(key) != len(t.Key) {
		return "", fmt.Errorf("a bound of %d cells for the %d key columns of table %s: %w", len(key), len(t.Key), t, fault.Bug)
	}
	values := make([]string, len(key))
	for i, cell := range key {
		text, err := t.Key[i].Form.Text(cell)
		if err != nil {
			return "", fmt.Errorf("bound of table %s: %w", t, err)
		}
		values[i] = literal(text)
	}
	return fmt.Sprintf("(%s) %s (%s)", keyList(t), op, strings.Join(values, ", ")), nil
}

// literal is a constant of a type that the server finds out. COPY has no parameters.
func literal(text []byte) string {
	return `E'` + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(string(text)) + `'`
}

func keyList(t *capturedTable) string {
	names := make([]string, len(t.Key))
	for i, k := range t.Key {
		names[i] = quoted(k.Name)
	}
	return strings.Join(names, ", ")
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

// keyOf makes a key of the server's texts.
func keyOf(t *capturedTable, texts [][]byte) (cdc.Key, error) {
	key := make(cdc.Key, len(t.Key))
	for i, k := range t.Key {
		cell, err := k.Form.Cell([]byte{}, texts[i])
		if err != nil {
			return nil, fmt.Errorf("table %s, column %q: %w", t, k.Name, err)
		}
		key[i] = cell
	}
	return key, nil
}

// keyCells copies the cells of a tuple's key, in the form in which the scan asks for them.
func (p *copyPlan) keyCells(tuple []byte) ([][]byte, error) {
	cells, err := scan.Cells(nil, tuple)
	if err != nil {
		return nil, err
	}
	key := make([][]byte, len(p.keyAt))
	for i, at := range p.keyAt {
		key[i] = slices.Clone(cells[at])
	}
	return key, nil
}

// keyOf is the key that keyCells returned. The server writes it as text: of every row it would cost more than this does of
// the few at which a chunk has to end early.
func (p *copyPlan) keyOf(ctx context.Context, conn *pgx.Conn, t *capturedTable, cells [][]byte) (cdc.Key, error) {
	texts, types, formats := make([]string, len(cells)), make([]uint32, len(cells)), make([]int16, len(cells))
	for i, at := range p.keyAt {
		texts[i], types[i] = fmt.Sprintf("$%d::text", i+1), p.relation.Columns[at].TypeOID
		if p.scan.Form(at) == pgcodec.Binary {
			formats[i] = pgx.BinaryFormatCode
		}
	}
	result := conn.PgConn().ExecParams(ctx, "SELECT "+strings.Join(texts, ", "), cells, types, formats, nil).Read()
	if result.Err != nil {
		return nil, result.Err
	}
	return keyOf(t, result.Rows[0])
}

// keyColumnsOf finds the columns of a table's key among those that are read.
func keyColumnsOf(t *capturedTable, columns []rows.Column) ([]int, error) {
	at := make([]int, len(t.Key))
	for i, k := range t.Key {
		if at[i] = slices.IndexFunc(columns, func(c rows.Column) bool { return c.Name == k.Name }); at[i] < 0 {
			return nil, fmt.Errorf("table %s: key column %q is not read: %w", t, k.Name, fault.Bug)
		}
	}
	return at, nil
}
