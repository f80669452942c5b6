package lake

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"

	"weir.dev/weir/services/weir/verify/audit"
)

// Judge is ClickHouse, the npm package chdb. It reads a table from its metadata file on, and knows nothing of Weir.
type Judge struct {
	root, modules string
}

// NewJudge is for the warehouse in a folder. The package is found in the folder modules, or by NODE_PATH when that is empty.
func NewJudge(root, modules string) *Judge { return &Judge{root, modules} }

// program reads queries from its standard input and writes the answers, each a text of rows.
const program = `const { query } = require("chdb");
const all = JSON.parse(require("fs").readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(all.map(q => query(q, "JSONCompactEachRow"))));`

// Version asks ClickHouse for it. The error says how to get the package when it is not there.
func (j *Judge) Version(ctx context.Context) (string, error) {
	all, err := j.Ask(ctx, "SELECT version()")
	if err != nil {
		return "", fmt.Errorf("ClickHouse is not there; `npm install chdb` and NODE_PATH=<folder>/node_modules: %w", err)
	}
	return fmt.Sprint(all[0][0][0]), nil
}

// Ask answers queries in order, each by its rows.
func (j *Judge) Ask(ctx context.Context, queries ...string) ([][][]any, error) {
	in, err := json.Marshal(queries)
	if err != nil {
		return nil, fmt.Errorf("ask ClickHouse: %w", err)
	}
	cmd := exec.CommandContext(ctx, "node", "-e", program)
	cmd.Dir = j.root // a path of another folder is refused
	if j.modules != "" {
		cmd.Env = append(os.Environ(), "NODE_PATH="+j.modules)
	}
	cmd.Stdin = bytes.NewReader(in)
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("ask ClickHouse: %w: %.1000s", err, log.String())
	}
	var texts []string
	if err := json.Unmarshal(out, &texts); err != nil {
		return nil, fmt.Errorf("ask ClickHouse: %w", err)
	}
	answers := make([][][]any, len(texts))
	for i, text := range texts {
		for d := json.NewDecoder(strings.NewReader(text)); d.More(); {
			var row []any
			if err := d.Decode(&row); err != nil {
				return nil, fmt.Errorf("ask ClickHouse: %w", err)
			}
			answers[i] = append(answers[i], row)
		}
	}
	return answers, nil
}

// Agree compares what ClickHouse reads in tables with what the library reads there, every row with all its columns.
func (j *Judge) Agree(ctx context.Context, p Pin, tables []string) error {
	queries := make([]string, len(tables))
	shapes := make([][]iceberg.NestedField, len(tables))
	for i, name := range tables {
		t, err := p.open(ctx, name)
		if err != nil {
			return err
		}
		shapes[i] = t.Schema().Fields()
		if queries[i], err = j.query(p.at[name], shapes[i]); err != nil {
			return err
		}
	}
	answers, err := j.Ask(ctx, queries...)
	if err != nil {
		return err
	}
	var errs []error
	for i, name := range tables {
		errs = append(errs, agree(ctx, p, name, shapes[i], answers[i]))
	}
	return errors.Join(errs...)
}

// Table is what a query reads from, to see a table as of a metadata file.
func (j *Judge) Table(metadata string) (string, error) {
	dir, file, ok := strings.Cut(strings.TrimPrefix(metadata, "file://"), "/metadata/")
	if !ok {
		return "", fmt.Errorf("%s is no metadata file", metadata)
	}
	rel, err := filepath.Rel(j.root, dir)
	if err != nil {
		return "", fmt.Errorf("table at %s: %w", dir, err)
	}
	return "icebergLocal('" + rel + "', 'Parquet', SETTINGS iceberg_metadata_file_path = 'metadata/" + file + "')", nil
}

// query selects all columns as texts.
func (j *Judge) query(metadata string, columns []iceberg.NestedField) (string, error) {
	from, err := j.Table(metadata)
	if err != nil {
		return "", err
	}
	texts := make([]string, len(columns))
	for i, c := range columns {
		quoted := "`" + c.Name + "`"
		switch c.Type.(type) {
		case iceberg.BinaryType:
			texts[i] = `concat('\\x', lower(hex(` + quoted + `)))`
		case *iceberg.ListType:
			texts[i] = "toJSONString(" + quoted + ")"
		default:
			texts[i] = "toString(" + quoted + ")"
		}
	}
	return "SELECT " + strings.Join(texts, ", ") + " FROM " + from, nil
}

// agree compares two readings of a table as multisets of rows.
func agree(ctx context.Context, p Pin, name string, columns []iceberg.NestedField, theirs [][]any) error {
	count := make(map[string]int)
	for _, row := range theirs {
		line := make([]string, len(columns))
		for i, c := range columns {
			text, _ := row[i].(string)
			if line[i] = "null"; row[i] != nil {
				line[i] = strconv.Quote(neutral(c.Type, text, true))
			}
		}
		count[strings.Join(line, "|")]++
	}
	ours := 0
	err := p.each(ctx, name, func(row audit.Cells) error {
		line := make([]string, len(columns))
		for i, c := range columns {
			switch v := row[c.Name]; {
			case v != nil:
				line[i] = strconv.Quote(neutral(c.Type, *v, false))
			case isList(c.Type):
				line[i] = strconv.Quote("{}") // it has no arrays that are null
			default:
				line[i] = "null"
			}
		}
		ours++
		count[strings.Join(line, "|")]--
		return nil
	})
	if err != nil {
		return err
	}
	more, less := 0, 0
	for _, n := range count {
		more += max(n, 0)
		less += max(-n, 0)
	}
	if more+less > 0 {
		return fmt.Errorf("table %s: ClickHouse reads %d rows, %d of which the library does not; the library %d, %d of which ClickHouse does not",
			name, len(theirs), more, ours, less)
	}
	return nil
}

func isList(t iceberg.Type) bool {
	_, ok := t.(*iceberg.ListType)
	return ok
}

// neutral is a cell in one form for both readers.
func neutral(t iceberg.Type, s string, clickhouse bool) string {
	switch t.(type) {
	case iceberg.BooleanType:
		return s[:1]
	case iceberg.DecimalType:
		return trimmed(s)
	case iceberg.Float64Type:
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return strconv.FormatFloat(f, 'g', -1, 64)
		}
	case iceberg.TimestampType, iceberg.TimestampTzType:
		return trimmed(strings.TrimSuffix(s, "+00"))
	case *iceberg.ListType:
		var elems []*string
		if clickhouse && json.Unmarshal([]byte(s), &elems) == nil {
			return audit.ArrayText(elems)
		}
	}
	return s
}

// trimmed leaves out zeros at the end of a fraction.
func trimmed(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}
