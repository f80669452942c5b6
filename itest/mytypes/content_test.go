package mytypes

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"weir.dev/weir/pkg/rows"
)

// content is what a sink has of a table.
type content struct {
	current bool // rows as they are now, and not their changes
	types   map[string]string
	rows    map[rowKey]map[string]string // a value by column
}

// rowKey is a row and what happened to it.
type rowKey struct {
	op string
	id int
}

// lines is what the JSON files have; a special value is in brackets.
func (w *world) lines(t *testing.T, f family) content {
	t.Helper()
	c := content{rows: make(map[rowKey]map[string]string)}
	for _, name := range w.files(t, "lines", f) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewScanner(bytes.NewReader(text))
		in.Buffer(nil, len(text)+1)
		for in.Scan() {
			l := parseLine(t, in.Bytes())
			c.put(t, l.Op, l.values())
		}
	}
	return c
}

func (c content) put(t *testing.T, op string, row map[string]string) {
	t.Helper()
	id, err := strconv.Atoi(row["id"])
	if err != nil {
		t.Fatal(err)
	}
	if c.rows[rowKey{op, id}] != nil {
		t.Errorf("row %d came twice by %s", id, op)
	}
	c.rows[rowKey{op, id}] = row
}

func (w *world) files(t *testing.T, sink string, f family) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(w.dir, sink, f.table(), "e*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files of %s in %s: %v", f.table(), sink, err)
	}
	return files
}

// parquet is what the Parquet files have.
func (w *world) parquet(t *testing.T, f family) content {
	t.Helper()
	c := content{types: make(map[string]string), rows: make(map[rowKey]map[string]string)}
	for _, name := range w.files(t, "parquet", f) {
		in, err := file.OpenParquetFile(name, false)
		if err != nil {
			t.Fatal(err)
		}
		r, err := pqarrow.NewFileReader(in, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
		if err != nil {
			t.Fatal(err)
		}
		table, err := r.ReadTable(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		found := make([]map[string]string, table.NumRows())
		for i := range found {
			found[i] = make(map[string]string)
		}
		for col := range int(table.NumCols()) {
			field, at := table.Schema().Field(col), 0
			c.types[field.Name] = field.Type.String()
			for _, chunk := range table.Column(col).Data().Chunks() {
				for i := range chunk.Len() {
					found[at][field.Name] = chunk.ValueStr(i)
					at++
				}
			}
		}
		for _, row := range found {
			op := row["_op"]
			if n, err := strconv.Atoi(op); err == nil {
				op = rows.Op(n).String()
			}
			for column := range row {
				if strings.HasPrefix(column, "_") {
					delete(row, column)
				}
			}
			c.put(t, op, row)
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// copied is what the target has, in its own words.
func (w *world) copied(t *testing.T, f family) content {
	t.Helper()
	conn, err := w.target.Connect(t.Context(), "postgres")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), "SET TimeZone = 'UTC'; SET bytea_output = 'hex'; SET IntervalStyle = 'postgres'"); err != nil {
		t.Fatal(err)
	}
	c := content{current: true, types: make(map[string]string), rows: make(map[rowKey]map[string]string)}
	result := conn.PgConn().ExecParams(t.Context(), fmt.Sprintf("SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a "+
		"WHERE a.attrelid = 'copy.%s'::regclass AND a.attnum > 0 AND NOT a.attisdropped", f.name), nil, nil, nil, nil).Read()
	if result.Err != nil {
		t.Fatal(result.Err)
	}
	for _, r := range result.Rows {
		c.types[string(r[0])] = string(r[1])
	}
	result = conn.PgConn().ExecParams(t.Context(), "SELECT * FROM copy."+f.name, nil, nil, nil, nil).Read()
	if result.Err != nil {
		t.Fatal(result.Err)
	}
	for _, r := range result.Rows {
		row := make(map[string]string)
		for i, d := range result.FieldDescriptions {
			row[d.Name] = "NULL"
			if r[i] != nil {
				row[d.Name] = string(r[i])
			}
		}
		c.put(t, "", row)
	}
	return c
}

// shown is how much of a value a golden has.
const shown = 100

func short(s string) string {
	s = strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(s)
	if r := []rune(s); len(r) > shown {
		return fmt.Sprintf("%s... (%d)", string(r[:shown]), len(r))
	}
	return s
}

// render writes per column its types and values in the three sinks.
func render(out *strings.Builder, f family, lines, copied, columnar content) {
	for i, c := range f.columns {
		name := fmt.Sprintf("c%d", i+1)
		fmt.Fprintf(out, "%s %s | postgres %s | parquet %s\n", f.name, short(c.sqlType), copied.types[name], columnar.types[name])
		n := len(c.values)
		if c.values == nil {
			n = f.size()
		}
		for id := 1; id <= n; id++ {
			fmt.Fprintf(out, "\t%s | %s | %s\n", short(lines.rows[rowKey{"read", id}][name]), short(copied.rows[rowKey{"", id}][name]),
				short(columnar.rows[rowKey{"read", id}][name]))
		}
	}
}
