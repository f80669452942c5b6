package schema

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// Every Parquet file has the columns of one version, also where one epoch holds two.
func TestFilesBeginAnew(t *testing.T) {
	s := start(t, `CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a')`,
		"  lake: {from: [db], type: files, mode: append, files: {path: \"{dir}\", format: parquet}}\n")
	s.at(t, source, `BEGIN; INSERT INTO t VALUES (2, 'b'); ALTER TABLE t ADD n int DEFAULT 7; INSERT INTO t VALUES (3, 'c', 3);
		ALTER TABLE t DROP v; INSERT INTO t VALUES (4, 4); ALTER TABLE t RENAME n TO m; INSERT INTO t VALUES (5, 5); COMMIT`)
	s.CaughtUp(t, "schema")
	names, err := filepath.Glob(filepath.Join(s.dir, "public.t", "e*.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, name := range names {
		got = append(got, contents(t, name))
	}
	slices.Sort(got)
	want := []string{"id m: [5] [5]", "id n v: [3] [3] [\"c\"]", "id n: [4] [4]", "id v: [1] [\"a\"]", "id v: [2] [\"b\"]"}
	if !slices.Equal(got, want) {
		t.Errorf("files are %q, want %q", got, want)
	}
}

// contents shows the table's own columns of a file.
func contents(t *testing.T, name string) string {
	t.Helper()
	in, err := file.OpenParquetFile(name, false)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r, err := pqarrow.NewFileReader(in, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	table, err := r.ReadTable(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer table.Release()
	var columns []string
	values := make(map[string]string)
	for i := range int(table.NumCols()) {
		c := table.Column(i)
		if c.Name()[0] == '_' {
			continue
		}
		columns = append(columns, c.Name())
		values[c.Name()] = fmt.Sprint(c.Data().Chunk(0))
	}
	slices.Sort(columns)
	text, cells := "", ""
	for i, c := range columns {
		if i > 0 {
			text += " "
		}
		text += c
		cells += " " + values[c]
	}
	return text + ":" + cells
}
