package iceberg

import (
	"context"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/services/weir/verify/lake"
)

// judge is ClickHouse. It reads a table from its metadata file on, and knows nothing of Weir.
type judge struct{ *lake.Judge }

func newJudge(tb testing.TB, root string) judge {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 5*time.Minute)
	defer cancel()
	modules, err := harness.ClickHouse(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	return judge{lake.NewJudge(root, modules)}
}

// ask runs a query; TABLE in it stands for the table whose newest metadata file is given.
func (j judge) ask(tb testing.TB, metadata, sql string) [][]any {
	tb.Helper()
	table, err := j.Table(metadata)
	if err != nil {
		tb.Fatal(err)
	}
	sql = strings.ReplaceAll(sql, "TABLE", table)
	answers, err := j.Ask(tb.Context(), sql)
	if err != nil {
		tb.Fatalf("%v\n%s", err, sql)
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
