package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// TablePair names a table at the source and its copy at the target, each as
// schema.table.
type TablePair struct {
	Source, Target string
}

// CompareConfig says what is compared, and how much of it may be shown.
type CompareConfig struct {
	SourceURL, TargetURL string
	Tables               []TablePair
	// Values puts keys and values into the examples. Without it a row is named
	// by a hash of its key, so a report can go into any log.
	Values bool
}

// Comparison is the outcome for one table.
type Comparison struct {
	TablePair
	SourceRows, TargetRows int64
	Missing                int64 // rows of the source that the target lacks
	Extra                  int64 // rows of the target that the source lacks
	Different              int64 // rows of both with unequal columns
	Examples               []string
}

// maxExamples bounds the differences described per table; all are counted.
const maxExamples = 10

// Equal reports whether both sides hold the same rows.
func (c Comparison) Equal() bool { return c.Missing == 0 && c.Extra == 0 && c.Different == 0 }

// String is one line, followed by the examples.
func (c Comparison) String() string {
	verdict := "equal"
	if !c.Equal() {
		verdict = fmt.Sprintf("%d missing, %d extra, %d different", c.Missing, c.Extra, c.Different)
	}
	line := fmt.Sprintf("%s (%d rows) = %s (%d rows): %s", c.Source, c.SourceRows, c.Target, c.TargetRows, verdict)
	return strings.Join(append([]string{line}, c.Examples...), "\n  ")
}

// CompareTables compares tables of two databases row by row, each side in one
// snapshot. Rows pair up by the primary key of the source, and every column of
// the source is compared as text under the same session settings. Further
// columns of the target are its own affair. It is an error when a table or a
// column is missing; differences are not errors.
func CompareTables(ctx context.Context, cfg CompareConfig) ([]Comparison, error) {
	source, err := openSnapshot(ctx, cfg.SourceURL)
	if err != nil {
		return nil, fmt.Errorf("compare: source: %w", err)
	}
	defer source.close(ctx)
	target, err := openSnapshot(ctx, cfg.TargetURL)
	if err != nil {
		return nil, fmt.Errorf("compare: target: %w", err)
	}
	defer target.close(ctx)

	outcomes := make([]Comparison, 0, len(cfg.Tables))
	for _, pair := range cfg.Tables {
		c, err := compareTable(ctx, source, target, pair, cfg.Values)
		if err != nil {
			return nil, fmt.Errorf("compare %s with %s: %w", pair.Source, pair.Target, err)
		}
		outcomes = append(outcomes, c)
	}
	return outcomes, nil
}

// snapshot is a connection inside a read-only transaction.
type snapshot struct {
	conn *pgx.Conn
}

func openSnapshot(ctx context.Context, url string) (*snapshot, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	maps.Copy(cfg.RuntimeParams, map[string]string{
		"TimeZone": "UTC", "DateStyle": "ISO", "IntervalStyle": "iso_8601",
		"bytea_output": "hex", "extra_float_digits": "1",
		"application_name": "weir-compare",
	})
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	s := &snapshot{conn: conn}
	if _, err := conn.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"); err != nil {
		s.close(ctx)
		return nil, err
	}
	return s, nil
}

func (s *snapshot) close(ctx context.Context) { _ = s.conn.Close(context.WithoutCancel(ctx)) }

// shape lists the columns of a table, those of its primary key first.
type shape struct {
	columns []string
	keys    int
}

// shape reads a table's shape. A table without a primary key has none to
// pair rows by, so all its columns serve.
func (s *snapshot) shape(ctx context.Context, table string) (shape, error) {
	rows, err := s.conn.Query(ctx, `
		SELECT a.attname, coalesce(array_position(i.indkey::int2[], a.attnum), -1)
		FROM pg_attribute a
		LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
		WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped
		ORDER BY 2, a.attnum`, table)
	if err != nil {
		return shape{}, err
	}
	type column struct {
		Name     string
		Position int // within the key, counted from 0; -1 outside it
	}
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
	if err != nil {
		return shape{}, err
	}
	var key, rest []string
	for _, c := range columns {
		if c.Position >= 0 {
			key = append(key, c.Name)
		} else {
			rest = append(rest, c.Name)
		}
	}
	if len(key) == 0 {
		key, rest = rest, nil
	}
	if len(key) == 0 {
		return shape{}, errors.New("the table has no columns")
	}
	return shape{columns: slices.Concat(key, rest), keys: len(key)}, nil
}

// read returns the rows in the order of their key's text.
func (s *snapshot) read(ctx context.Context, table string, sh shape) (pgx.Rows, error) {
	var selected, order []string
	for i, name := range sh.columns {
		text := pgx.Identifier{name}.Sanitize() + "::text"
		selected = append(selected, text)
		if i < sh.keys {
			order = append(order, text+` COLLATE "C" NULLS FIRST`)
		}
	}
	schema, name, found := strings.Cut(table, ".")
	if !found {
		return nil, errors.New("the table is not given as schema.table")
	}
	return s.conn.Query(ctx, fmt.Sprintf("SELECT %s FROM %s ORDER BY %s",
		strings.Join(selected, ", "), pgx.Identifier{schema, name}.Sanitize(), strings.Join(order, ", ")))
}

// compareTable merges two ordered reads.
func compareTable(ctx context.Context, source, target *snapshot, pair TablePair, values bool) (Comparison, error) {
	c := Comparison{TablePair: pair}
	sh, err := source.shape(ctx, pair.Source)
	if err != nil {
		return c, err
	}
	left, err := source.read(ctx, pair.Source, sh)
	if err != nil {
		return c, err
	}
	defer left.Close()
	right, err := target.read(ctx, pair.Target, sh)
	if err != nil {
		return c, err
	}
	defer right.Close()

	next := func(rows pgx.Rows, count *int64) [][]byte {
		if !rows.Next() {
			return nil
		}
		*count++
		return rows.RawValues() // every column is text, so the raw bytes are its text
	}
	example := func(verdict string, row [][]byte, detail string) {
		if len(c.Examples) < maxExamples {
			c.Examples = append(c.Examples, fmt.Sprintf("%s: row %s%s", verdict, sh.describe(row, values), detail))
		}
	}
	l, r := next(left, &c.SourceRows), next(right, &c.TargetRows)
	for l != nil || r != nil {
		order := 0
		switch {
		case l == nil:
			order = 1
		case r == nil:
			order = -1
		default:
			order = slices.CompareFunc(l[:sh.keys], r[:sh.keys], compareText)
		}
		switch {
		case order < 0:
			c.Missing++
			example("missing", l, "")
			l = next(left, &c.SourceRows)
		case order > 0:
			c.Extra++
			example("extra", r, "")
			r = next(right, &c.TargetRows)
		default:
			if detail := sh.differences(l, r, values); detail != "" {
				c.Different++
				example("different", l, detail)
			}
			l, r = next(left, &c.SourceRows), next(right, &c.TargetRows)
		}
	}
	return c, errors.Join(left.Err(), right.Err())
}

// compareText orders NULL before every text, as the queries do.
func compareText(a, b []byte) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return bytes.Compare(a, b)
}

// hashed names a row without its key: that may be anybody's.
func hashed(key string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // a hash takes everything
	return fmt.Sprintf("#%016x", h.Sum64())
}

func (s shape) describe(row [][]byte, values bool) string {
	if !values {
		var whole strings.Builder
		for _, key := range row[:s.keys] {
			fmt.Fprintf(&whole, "%d:%s", len(key), key)
		}
		return hashed(whole.String())
	}
	var parts []string
	for i, key := range row[:s.keys] {
		parts = append(parts, s.columns[i]+"="+display(key))
	}
	return strings.Join(parts, ",")
}

// differences names the unequal columns of two rows; it is empty for equal ones.
func (s shape) differences(l, r [][]byte, values bool) string {
	var parts []string
	for i := s.keys; i < len(s.columns); i++ {
		if compareText(l[i], r[i]) == 0 {
			continue
		}
		part := s.columns[i]
		if values {
			part += " " + display(l[i]) + " became " + display(r[i])
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return ""
	}
	return " in " + strings.Join(parts, ", ")
}

// display quotes a value and shortens a long one.
func display(value []byte) string {
	const limit = 60
	switch {
	case value == nil:
		return "NULL"
	case len(value) > limit:
		return fmt.Sprintf("%.60q... (%d bytes)", value, len(value))
	}
	return fmt.Sprintf("%q", value)
}
