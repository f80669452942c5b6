package sinkmysql_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/rows"
	pkgsink "weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
)

// attempt is the halves of one MySQL sink, driven by hand.
type attempt struct {
	t         *testing.T
	writer    pkgsink.Writer
	committer pkgsink.Committer
	last      epoch.Ref
	seq       uint64
}

// memory is a store of pieces.
type memory struct {
	mu  sync.Mutex
	all map[string][]byte
}

func (m *memory) Put(_ context.Context, data []byte) (epoch.Object, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = make(map[string][]byte)
	}
	name := fmt.Sprint("piece ", len(m.all))
	m.all[name] = data
	return epoch.Object{Subject: name}, nil
}

func (m *memory) Get(_ context.Context, o epoch.Object) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[o.Subject], nil
}

// mysqlSink writes into a database. Tests change what they are about.
func mysqlSink(url, database string) spec.Sink {
	return spec.Sink{Name: "warehouse", Type: "mysql", Mode: spec.Upsert, Config: &spec.MySQLSink{
		URL: config.NewSecret(url), Database: database, Table: "{table}",
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
	a := &attempt{t: t}
	c := connector(t)
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

// col declares a column: name, type and the source's word for it; a name that ends in * is of the key.
func col(name string, typ rows.Type, word string) rows.Column {
	c := rows.Column{Name: strings.TrimSuffix(name, "*"), Type: typ, Source: word, Nullable: true}
	if c.Name != name {
		c.KeyPos, c.Nullable = 1, false
	}
	return c
}

func schemaOf(t *testing.T, origin string, version uint32, columns ...rows.Column) *rows.Schema {
	t.Helper()
	s, err := rows.NewSchema("shop.people", version, origin, columns)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// people is a table of id and text columns.
func people(t *testing.T, version uint32, texts ...string) *rows.Schema {
	t.Helper()
	columns := []rows.Column{col("id*", rows.Of(rows.KindInt64), "bigint")}
	for i, name := range texts {
		c := col(name, rows.Of(rows.KindText), "text")
		c.ID = i + 2
		columns = append(columns, c)
	}
	columns[0].ID = 1
	return schemaOf(t, "postgres", version, columns...)
}

// row is one change: an int64 key and texts; "?" is absent and "-" null.
type row struct {
	op    rows.Op
	id    int64
	texts []string
}

func ins(id int64, texts ...string) row { return row{rows.OpInsert, id, texts} }
func upd(id int64, texts ...string) row { return row{rows.OpUpdateAfter, id, texts} }

func (a *attempt) batch(s *rows.Schema, all ...row) *rows.Batch {
	a.t.Helper()
	b := rows.NewBuilder(s)
	for _, r := range all {
		b.Column(0).(*array.Int64Builder).Append(r.id)
		for i := 1; i < s.NumColumns(); i++ {
			switch {
			case i > len(r.texts) || r.texts[i-1] == "-":
				b.Null(i)
			case r.texts[i-1] == "?":
				b.Absent(i)
			default:
				b.Column(i).(*array.StringBuilder).Append(r.texts[i-1])
			}
		}
		a.end(b, r.op)
	}
	return a.flush(b)
}

func (a *attempt) end(b *rows.Builder, op rows.Op) {
	a.seq++
	b.EndRow(rows.Meta{Op: op, Seq: a.seq, Txn: a.seq})
}

func (a *attempt) flush(b *rows.Builder) *rows.Batch {
	a.t.Helper()
	out, err := b.Flush()
	if err != nil {
		a.t.Fatal(err)
	}
	return out
}

// show reads a query as lines of text, cells parted by |.
func show(t *testing.T, my *harness.MySQL, sql string) []string {
	t.Helper()
	conn, err := my.Connect(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Execute("SET NAMES utf8mb4"); err != nil { // MariaDB does not know the number that the client asks for
		t.Fatal(err)
	}
	r, err := conn.Execute(sql)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out []string
	for i := range r.RowNumber() {
		var cells []string
		for j := range r.ColumnNumber() {
			text := "null"
			if null, _ := r.IsNull(i, j); !null {
				text, _ = r.GetString(i, j)
			}
			cells = append(cells, strings.Clone(text))
		}
		out = append(out, strings.Join(cells, "|"))
	}
	return out
}

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the target has\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func wantCode(t *testing.T, err error, code fault.Code, words ...string) {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Fatalf("error %v, want %s", err, code)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %v does not name %q", err, w)
		}
	}
}

func run(t *testing.T, my *harness.MySQL, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if err := my.Exec(t.Context(), "", sql); err != nil {
			t.Fatal(err)
		}
	}
}
