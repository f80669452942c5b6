package types

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// line is a row as the JSON file has it, each part as it was written.
type line struct {
	Op           string
	Row, Special json.RawMessage
}

// id is the row's key in the matrix.
func (l line) id(tb testing.TB) int {
	tb.Helper()
	var row struct{ ID int }
	if err := json.Unmarshal(l.Row, &row); err != nil {
		tb.Fatalf("%v in %s", err, l.Row)
	}
	return row.ID
}

func parseLine(tb testing.TB, text []byte) line {
	tb.Helper()
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		tb.Fatalf("%v in %s", err, text)
	}
	return l
}

// dataFiles are the files of a table.
func dataFiles(tb testing.TB, dir, table string) []string {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(dir, table, "e*"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("no files of %s in %s: %v", table, dir, err)
	}
	return files
}

// readLines gives the rows of a table's JSON files.
func readLines(tb testing.TB, dir, table string) []line {
	tb.Helper()
	var lines []line
	for _, name := range dataFiles(tb, dir, table) {
		text, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		in := bufio.NewScanner(bytes.NewReader(text))
		in.Buffer(nil, len(text)+1)
		for in.Scan() {
			lines = append(lines, parseLine(tb, in.Bytes()))
		}
	}
	return lines
}

// readParquet gives the rows of a table's Parquet files.
func readParquet(tb testing.TB, dir, table string) []arrow.Table {
	tb.Helper()
	var tables []arrow.Table
	for _, name := range dataFiles(tb, dir, table) {
		in, err := file.OpenParquetFile(name, false)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { in.Close() })
		r, err := pqarrow.NewFileReader(in, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
		if err != nil {
			tb.Fatal(err)
		}
		t, err := r.ReadTable(tb.Context())
		if err != nil {
			tb.Fatalf("%s: %v", name, err)
		}
		tables = append(tables, t)
	}
	return tables
}
