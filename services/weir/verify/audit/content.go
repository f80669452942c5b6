package audit

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Cells are the columns of a row as text, nil for NULL.
type Cells = map[string]*string

// Content is what a table holds: its rows under the text of their key, as often as they are there.
type Content map[string][]Cells

// Add puts a row in.
func (c Content) Add(key []string, row Cells) error {
	text, err := KeyOf(row, key)
	if err != nil {
		return err
	}
	c[text] = append(c[text], row)
	return nil
}

// KeyOf is the text of a row's key.
func KeyOf(row Cells, key []string) (string, error) {
	var cells []*string
	for _, name := range key {
		cells = append(cells, row[name])
	}
	text, err := keyText(cells)
	if err != nil {
		return "", fmt.Errorf("key of a row: %w", err)
	}
	return text, nil
}

// Compare holds the rows of a target against those of its source; columns that only the target has are its own affair. Keys are
// unique: a second row of one is an extra one.
func Compare(source, target Content) Comparison {
	var c Comparison
	example := func(verdict, key, detail string) {
		if len(c.Examples) < maxExamples {
			c.Examples = append(c.Examples, fmt.Sprintf("%s: row %s%s", verdict, hashed(key), detail))
		}
	}
	for key, rows := range source {
		c.SourceRows += int64(len(rows))
		found := target[key]
		if len(found) == 0 {
			c.Missing++
			example("missing", key, "")
			continue
		}
		mine := make(Cells)
		for name := range rows[0] {
			if v, ok := found[0][name]; ok {
				mine[name] = v
			}
		}
		if names := differing(mine, rows[0]); len(names) > 0 {
			c.Different++
			example("different", key, " in "+strings.Join(names, ", "))
		}
	}
	for key, rows := range target {
		c.TargetRows += int64(len(rows))
		extra := len(rows) - min(len(source[key]), 1)
		if extra > 0 {
			c.Extra += int64(extra)
			example("extra", key, "")
		}
	}
	return c
}

// PostgresContent reads tables of a schema in one snapshot, in the text that changes are read in.
func PostgresContent(ctx context.Context, url, schema string, tables []Table) (map[string]Content, error) {
	conn, err := session(ctx, url)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"); err != nil {
		return nil, err
	}
	all := make(map[string]Content)
	for _, t := range tables {
		if all[t.Name], err = postgresTable(ctx, conn, schema, t); err != nil {
			return nil, fmt.Errorf("read %s.%s: %w", schema, t.Name, err)
		}
	}
	return all, nil
}

func postgresTable(ctx context.Context, conn *pgx.Conn, schema string, t Table) (Content, error) {
	columns, err := columnsOf(ctx, conn, schema, t.Name)
	if err != nil {
		return nil, err
	}
	found, err := conn.Query(ctx, fmt.Sprintf("SELECT ARRAY[%s] FROM %s", texts(columns), pgx.Identifier{schema, t.Name}.Sanitize()))
	if err != nil {
		return nil, err
	}
	c := make(Content)
	var cells []*string
	_, err = pgx.ForEachRow(found, []any{&cells}, func() error {
		row := make(Cells)
		for i, name := range columns {
			row[name] = cells[i]
		}
		return c.Add(t.Key, row)
	})
	return c, err
}

// texts are columns as the log has them: format() uses the type's output function; a cast to text says "true" where that says "t".
func texts(columns []string) string {
	all := make([]string, len(columns))
	for i, name := range columns {
		quoted := pgx.Identifier{name}.Sanitize()
		all[i] = "CASE WHEN " + quoted + " IS NOT NULL THEN format('%s', " + quoted + ") END"
	}
	return strings.Join(all, ", ")
}
