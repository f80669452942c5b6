package iceberg

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
)

// judge is ClickHouse. It reads a table from its metadata file on, and knows nothing of Weir.
type judge struct {
	modules string // folder of the npm package
	root    string // of the warehouse
}

// program reads SQL from its standard input and writes the rows as lines of JSON.
const program = `const { query } = require("chdb");
process.stdout.write(query(require("fs").readFileSync(0, "utf8"), "JSONCompactEachRow"));`

func newJudge(tb testing.TB, root string) judge {
	tb.Helper()
	repo, err := harness.RepoRoot()
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(tb.Context(), 5*time.Minute)
	defer cancel()
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(repo, "scripts", "setup-chdb.sh"))
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("install ClickHouse: %v\n%s", err, log.String())
	}
	return judge{modules: filepath.Join(strings.TrimSpace(string(out)), "node_modules"), root: root}
}

// ask runs a query; TABLE in it stands for the table whose newest metadata file is given.
func (j judge) ask(tb testing.TB, metadata, sql string) [][]any {
	tb.Helper()
	dir, file, ok := strings.Cut(strings.TrimPrefix(metadata, "file://"), "/metadata/")
	if !ok {
		tb.Fatalf("%s is no metadata file", metadata)
	}
	rel, err := filepath.Rel(j.root, dir)
	if err != nil {
		tb.Fatal(err)
	}
	sql = strings.ReplaceAll(sql, "TABLE", "icebergLocal('"+rel+"', 'Parquet', SETTINGS iceberg_metadata_file_path = 'metadata/"+file+"')")
	cmd := exec.CommandContext(tb.Context(), "node", "-e", program)
	cmd.Env = append(os.Environ(), "NODE_PATH="+j.modules)
	cmd.Dir = j.root // a path of another folder is refused
	cmd.Stdin = strings.NewReader(sql)
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("ask ClickHouse: %v\n%s\n%s", err, sql, log.String())
	}
	var rows [][]any
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var row []any
		if err := d.Decode(&row); err != nil {
			tb.Fatalf("ask ClickHouse: %v\n%s\n%s", err, sql, out)
		}
		rows = append(rows, row)
	}
	return rows
}

// lines are the first columns of a query's rows, as texts.
func (j judge) lines(tb testing.TB, metadata, sql string) []string {
	tb.Helper()
	var out []string
	for _, row := range j.ask(tb, metadata, sql) {
		text, ok := row[0].(string)
		if !ok {
			tb.Fatalf("%v is no text", row[0])
		}
		out = append(out, text)
	}
	return out
}
