package copies

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/rows"
)

// Gone stands among the values of a row for its end.
const Gone int64 = -1

// maxFindings bounds what an audit says of one table.
const maxFindings = 5

// Audit holds a table's changelog in a schema of the target against what happened at the source. Each row has to come
// exactly once, as read or as change: the changelog of a row begins with a read or an insert and goes on with every change
// that followed, each once; a row without a changelog is one that was gone before it was read. It returns how many rows
// were read and how many changes came.
func Audit(ctx context.Context, source, target *pgx.Conn, schema string, t Table) (read, changes int, err error) {
	wrote, err := history(ctx, source, t)
	if err != nil {
		return 0, 0, err
	}
	return wrote.Audit(ctx, target, pgx.Identifier{schema, t.Name}, t.name(""))
}

// History is every value that each row was given, in order, by the row's name; [Gone] where the row ended. It may have been
// written down at any source.
type History map[string][]int64

// Audit is [Audit] of one changelog, with the columns val and those of which name, an expression, makes a row's name.
func (wrote History) Audit(ctx context.Context, target *pgx.Conn, log pgx.Identifier, name string) (read, changes int, err error) {
	var findings []string
	fail := func(name, what string, got []change) {
		if len(findings) < maxFindings {
			findings = append(findings, fmt.Sprintf("row %s: %s: came %v, written %v", name, what, got, wrote[name]))
		}
	}
	got, err := changelog(ctx, target, log, name)
	if err != nil {
		return 0, 0, err
	}
	for name, came := range got {
		if came[0].op == rows.OpRead {
			read++
			changes--
		}
		changes += len(came)
		if what := judge(came, wrote[name]); what != "" {
			fail(name, what, came)
		}
	}
	for name, values := range wrote {
		if len(got[name]) == 0 && values[len(values)-1] != Gone {
			fail(name, "never came", nil)
		}
	}
	if len(findings) > 0 {
		return read, changes, fmt.Errorf("changelog %s: %q", log.Sanitize(), findings)
	}
	return read, changes, nil
}

// judge says what is wrong with the changelog of a row; empty when nothing is.
func judge(came []change, wrote []int64) string {
	live := false
	values := make([]int64, len(came))
	for i, c := range came {
		values[i] = c.val
		switch c.op {
		case rows.OpRead:
			if i > 0 {
				return "read although it had come"
			}
			live = true
		case rows.OpInsert:
			if live {
				return "inserted although it was there"
			}
			live = true
		case rows.OpUpdateAfter:
			if !live {
				return "changed although it was not there"
			}
		case rows.OpDelete:
			if !live {
				return "deleted although it was not there"
			}
			live = false
			values[i] = Gone
		case rows.OpUpdateBefore, rows.OpTruncate:
			return "an operation that no writer made"
		}
	}
	from := len(wrote) - len(values)
	switch {
	case from < 0:
		return "came more often than it was written"
	case !slices.Equal(wrote[from:], values):
		return "not the last that was written"
	case came[0].op == rows.OpInsert && from > 0 && wrote[from-1] != Gone:
		return "inserted although only changed"
	}
	return ""
}

type change struct {
	op  rows.Op
	val int64
}

func history(ctx context.Context, source *pgx.Conn, t Table) (History, error) {
	found, err := source.Query(ctx, "SELECT name, coalesce(val, $2) FROM truth.history WHERE place = $1 ORDER BY at", t.Name, Gone)
	if err != nil {
		return nil, fmt.Errorf("read what happened to %s: %w", t.sql(), err)
	}
	wrote := make(History)
	var name string
	var val int64
	_, err = pgx.ForEachRow(found, []any{&name, &val}, func() error {
		wrote[name] = append(wrote[name], val)
		return nil
	})
	return wrote, err
}

// changelog is what came of each row, in order. The rows before an update are left out: they are no changes.
func changelog(ctx context.Context, target *pgx.Conn, log pgx.Identifier, row string) (map[string][]change, error) {
	found, err := target.Query(ctx, fmt.Sprintf("SELECT %s, _op::int4, coalesce(val, $1) FROM %s WHERE _op <> $2 ORDER BY _epoch, _seq",
		row, log.Sanitize()), Gone, int32(rows.OpUpdateBefore))
	if err != nil {
		return nil, fmt.Errorf("read the changelog %s: %w", log.Sanitize(), err)
	}
	got := make(map[string][]change)
	var name string
	var op int32
	var val int64
	_, err = pgx.ForEachRow(found, []any{&name, &op, &val}, func() error {
		got[name] = append(got[name], change{rows.Op(op), val})
		return nil
	})
	return got, err
}
