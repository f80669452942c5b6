package sink_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/rows"
	pkgsink "weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
)

// attempt is the halves of one PostgreSQL sink, driven by hand.
type attempt struct {
	t         *testing.T
	config    pkgsink.Config
	writer    pkgsink.Writer
	committer pkgsink.Committer
	last      epoch.Ref
	seq       uint64
}

// postgresSink writes into schema "out" of a database. Tests change what they are about.
func postgresSink(url string) spec.Sink {
	return spec.Sink{Name: "warehouse", Type: "postgres", Mode: spec.Upsert, Config: &spec.PostgresSink{
		URL: config.NewSecret(url), Schema: "out", Table: "{table}",
	}}
}

func configOf(s spec.Sink, token fence.Token) pkgsink.Config {
	return pkgsink.Config{
		Identity: source.Identity{Job: "j", Life: "lifeoftests", Fence: token, Subtask: plan.SubtaskID{Vertex: plan.CommitterOf(s.Name)}},
		Sink:     s, Resolve: resolve, Writers: 1, Store: &memory{}, Logger: slog.New(slog.DiscardHandler),
	}
}

// openAttempt opens both halves and claims.
func openAttempt(t *testing.T, cfg pkgsink.Config) *attempt {
	t.Helper()
	a := &attempt{t: t, config: cfg}
	c := connector(t, "postgres")
	var err error
	if a.committer, err = c.OpenCommitter(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.committer.Close() })
	cfg.Subtask = plan.SubtaskID{Vertex: plan.VertexID(cfg.Sink.Name)}
	if a.writer, err = c.OpenWriter(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.writer.Close() })
	row, err := a.committer.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a.last = row.Ref
	return a
}

// stage stages batches as the next epoch.
func (a *attempt) stage(batches ...*rows.Batch) pkgsink.Commit {
	a.t.Helper()
	for _, b := range batches {
		if err := a.writer.Write(a.t.Context(), *b); err != nil {
			a.t.Fatal(err)
		}
	}
	next := a.last.Epoch + 1
	pieces, err := a.writer.Stage(a.t.Context(), next)
	if err != nil {
		a.t.Fatal(err)
	}
	c := pkgsink.Commit{Ref: epoch.Ref{Epoch: next, Digest: "digest of " + next.String()}, Prev: a.last}
	for _, p := range pieces {
		c.Staged = append(c.Staged, epoch.Staged{Epoch: next, Data: p.Data, Objects: p.Objects, Rows: p.Rows})
	}
	return c
}

// try commits an epoch.
func (a *attempt) try(c pkgsink.Commit) error {
	a.t.Helper()
	_, err := a.committer.Commit(a.t.Context(), c)
	if err == nil {
		a.last = c.Ref
	}
	return err
}

// epoch stages and commits.
func (a *attempt) epoch(batches ...*rows.Batch) {
	a.t.Helper()
	if err := a.try(a.stage(batches...)); err != nil {
		a.t.Fatal(err)
	}
}

// col declares a column: name, PostgreSQL type; a name that ends in * is of the key.
func col(name string, typ rows.Type, sqlType string) rows.Column {
	c := rows.Column{Name: strings.TrimSuffix(name, "*"), Type: typ, Source: sqlType, Nullable: true}
	if c.Name != name {
		c.KeyPos, c.Nullable = 1, false
	}
	return c
}

func schemaOf(t *testing.T, table string, version uint32, columns ...rows.Column) *rows.Schema {
	t.Helper()
	s, err := rows.NewSchema(rows.TableID(table), version, "postgres", columns)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// people is a table of id and text columns.
func people(t *testing.T, table string) *rows.Schema {
	t.Helper()
	return schemaOf(t, table, 1, col("id*", rows.Of(rows.KindInt64), "bigint"), col("email", rows.Of(rows.KindText), "text"),
		col("name", rows.Of(rows.KindText), "text"))
}

// row is one change: an int64 key and texts; "?" is absent and nil null.
type row struct {
	op    rows.Op
	id    int64
	texts []string
}

func ins(id int64, texts ...string) row { return row{rows.OpInsert, id, texts} }
func upd(id int64, texts ...string) row { return row{rows.OpUpdateAfter, id, texts} }
func del(id int64) row                  { return row{rows.OpDelete, id, nil} }

func (a *attempt) batch(s *rows.Schema, all ...row) *rows.Batch {
	a.t.Helper()
	b := rows.NewBuilder(s)
	for _, r := range all {
		a.seq++
		m := rows.Meta{Op: r.op, Seq: a.seq, Txn: a.seq}
		if r.op == rows.OpTruncate {
			b.Truncate(m)
			continue
		}
		b.Column(0).(*array.Int64Builder).Append(r.id)
		for i := 1; i < s.NumColumns(); i++ {
			switch {
			case i > len(r.texts):
				b.Null(i)
			case r.texts[i-1] == "?":
				b.Absent(i)
			default:
				b.Column(i).(*array.StringBuilder).Append(r.texts[i-1])
			}
		}
		b.EndRow(m)
	}
	out, err := b.Flush()
	if err != nil {
		a.t.Fatal(err)
	}
	return out
}

// show reads a query as lines of text, cells parted by |.
func show(t *testing.T, pg *harness.Postgres, db, sql string) []string {
	t.Helper()
	conn, err := pg.Connect(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	found, err := conn.Query(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	var out []string
	for found.Next() {
		var cells []string
		for _, raw := range found.RawValues() {
			if raw == nil {
				cells = append(cells, "null")
			} else {
				cells = append(cells, string(raw))
			}
		}
		out = append(out, strings.Join(cells, "|"))
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the target has\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}
