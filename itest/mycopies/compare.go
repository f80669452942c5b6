package mycopies

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/copies"
	"weir.dev/weir/itest/harness"
)

// maxFindings bounds what is said of one table.
const maxFindings = 5

// Audit holds a table's changelog in a schema of the target against what happened at the source, see [copies.Audit].
func Audit(ctx context.Context, source *harness.MySQL, target *pgx.Conn, schema string, t Table) (read, changes int, err error) {
	wrote := make(copies.History)
	sql := fmt.Sprintf("SELECT name, concat(coalesce(val, %d)) FROM truth.history WHERE place = '%s' ORDER BY at", copies.Gone, t.Name)
	err = stream(ctx, source, sql, func(cells []string) error {
		var val int64
		if _, err := fmt.Sscan(cells[1], &val); err != nil {
			return err
		}
		wrote[cells[0]] = append(wrote[cells[0]], val)
		return nil
	})
	if err != nil {
		return 0, 0, fmt.Errorf("read what happened to %s: %w", t.sql(), err)
	}
	return wrote.Audit(ctx, target, pgx.Identifier{schema, t.Name}, t.name(""))
}

// Compare holds a table's copy in a schema of PostgreSQL against the table, row by row: every column as the text that its own
// server makes of it, in one notation. It returns how many rows there are.
func Compare(ctx context.Context, source *harness.MySQL, target *pgx.Conn, schema string, t Table) (rows int, err error) {
	// The servers' own texts differ only in times: PostgreSQL leaves out zeros at the end of a fraction.
	columns := append(t.key, "n", "val", "price", "seen", "pad")
	ours, theirs := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		ours[i], theirs[i] = "coalesce(concat("+c+"), '∅')", "coalesce("+c+"::text, '∅')"
		if c == "seen" {
			theirs[i] = "coalesce(to_char(seen, 'YYYY-MM-DD HH24:MI:SS.US'), '∅')"
		}
	}
	left := make(map[string]string)
	err = stream(ctx, source, "SELECT "+t.name("")+", concat_ws('|', "+strings.Join(ours, ", ")+") FROM "+t.sql(), func(cells []string) error {
		if left[cells[0]] != "" {
			return fmt.Errorf("two rows of the source are %q", cells[0])
		}
		left[cells[0]] = cells[1]
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", t.sql(), err)
	}
	rows = len(left)
	found, err := target.Query(ctx, fmt.Sprintf("SELECT %s, concat_ws('|', %s) FROM %s",
		t.name(""), strings.Join(theirs, ", "), pgx.Identifier{schema, t.Name}.Sanitize()))
	if err != nil {
		return rows, fmt.Errorf("read the copy of %s: %w", t.sql(), err)
	}
	var findings []string
	wrong := 0
	fail := func(format string, args ...any) {
		if wrong++; wrong <= maxFindings {
			findings = append(findings, fmt.Sprintf(format, args...))
		}
	}
	var name, row string
	if _, err := pgx.ForEachRow(found, []any{&name, &row}, func() error {
		switch want, there := left[name]; {
		case !there:
			fail("%s is not at the source", row)
		case want != row:
			fail("%s is %s at the source", row, want)
		}
		delete(left, name)
		return nil
	}); err != nil {
		return rows, fmt.Errorf("read the copy of %s: %w", t.sql(), err)
	}
	for _, row := range left {
		fail("%s is missing", row)
	}
	if wrong > 0 {
		return rows, fmt.Errorf("copy of %s: %d rows are wrong: %q", t.sql(), wrong, findings)
	}
	return rows, nil
}

// stream runs a query of text columns and hands over its rows.
func stream(ctx context.Context, server *harness.MySQL, sql string, take func(cells []string) error) error {
	conn, err := connect(ctx, server)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	var result mysql.Result
	return conn.ExecuteSelectStreaming(sql, &result, func(row []mysql.FieldValue) error {
		cells := make([]string, len(row))
		for i, v := range row {
			cells[i] = string(v.AsString())
		}
		return take(cells)
	}, nil)
}
