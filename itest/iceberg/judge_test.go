package iceberg

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/services/weir/verify/lake"
)

// judge is ClickHouse. It reads a table from its metadata file on, and knows nothing of Weir.
type judge struct {
	*lake.Judge

	// table is what a query reads from, to see a table as of a metadata file.
	table func(metadata string) (string, error)
}

// newJudge reads tables in a folder.
func newJudge(tb testing.TB, root string) judge {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 5*time.Minute)
	defer cancel()
	modules, err := harness.ClickHouse(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	j := lake.NewJudge(root, modules)
	return judge{j, j.Table}
}

// newStoreJudge reads tables in an object store, by ClickHouse's own client.
func newStoreJudge(tb testing.TB, store *harness.ObjectStore) judge {
	tb.Helper()
	j := newJudge(tb, tb.TempDir())
	j.table = func(metadata string) (string, error) {
		table, file, ok := strings.Cut(strings.TrimPrefix(metadata, "s3://"), "/metadata/")
		if !ok {
			return "", fmt.Errorf("%s is no metadata file", metadata)
		}
		return fmt.Sprintf("icebergS3('%s/%s', '%s', '%s', 'Parquet', SETTINGS iceberg_metadata_file_path = 'metadata/%s')",
			store.URL, table, store.AccessKey, store.SecretKey, file), nil
	}
	return j
}

// ask runs a query; TABLE in it stands for the table whose newest metadata file is given.
func (j judge) ask(tb testing.TB, metadata, sql string) [][]any {
	tb.Helper()
	table, err := j.table(metadata)
	if err != nil {
		tb.Fatal(err)
	}
	answers, err := j.Ask(tb.Context(), strings.ReplaceAll(sql, "TABLE", table)) // which may have keys of a store
	if err != nil {
		tb.Fatalf("%v\n%s of %s", err, sql, metadata)
	}
	return answers[0]
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
