package sink_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/drive"
	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink"
)

// scene is where a case plays.
type scene struct {
	t  *testing.T
	pg *harness.Postgres
	db string
}

// TestPostgres has the cases that only a database has; they share one cluster, each in a database of its own.
func TestPostgres(t *testing.T) {
	t.Parallel()
	pg := harness.StartPostgres(t, harness.PostgresConfig{})
	n := 0
	for name, run := range map[string]func(in scene){
		"ledger and its log":                  ledgerAndLog,
		"types":                               types,
		"special values":                      specialValues,
		"table that was there":                tableThatWasThere,
		"two tables, one target":              nameClash,
		"table that the job reads":            ownSource,
		"columns and keys that do not fit":    misfits,
		"user's types":                        usersTypes,
		"unique values passed on":             uniqueValues,
		"fresh rows that are not":             notFresh,
		"truncate in a changelog":             truncateInChangelog,
		"zombie that holds the ledger":        zombieLock,
		"commit whose reply is lost":          lostReply,
		"connection cut before the commit":    cutBeforeCommit,
		"what the target refuses":             refusals,
		"a failed epoch is repeated as it is": failedThenRepeated,
	} {
		n++
		db := fmt.Sprintf("case%d", n)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := pg.CreateDatabase(t.Context(), db); err != nil {
				t.Fatal(err)
			}
			run(scene{t, pg, db})
		})
	}
}

func exec(t *testing.T, pg *harness.Postgres, db, sql string) {
	t.Helper()
	if err := pg.Exec(t.Context(), db, sql); err != nil {
		t.Fatal(err)
	}
}

func ledgerAndLog(in scene) {
	t, pg, db := in.t, in.pg, in.db
	s := postgresSink(pg.URL(db))
	if l, kept, err := sink.ReadLedger(t.Context(), "j", s, drive.Resolve); err != nil || !kept || l.Life != "" {
		t.Errorf("ledger of an untouched target: %+v, %t, %v", l, kept, err)
	}
	p := drive.People(t, "public.people")
	for i, token := range []fence.Token{7, 9, 11} {
		a := drive.Open(t, drive.Config(s, token))
		a.Epoch(a.Batch(p, drive.Ins(int64(2*i)), drive.Ins(int64(2*i+1))))
		a.Epoch(a.Batch(p, drive.Upd(int64(2*i), "x")))
	}
	l, kept, err := sink.ReadLedger(t.Context(), "j", s, drive.Resolve)
	if err != nil || !kept {
		t.Fatal(err)
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	if l.Life != "lifeoftests" || l.Fence != 11 || l.Ref.Epoch != 6 || len(l.Log) != 6 || l.Log[0].Rows != 2 || l.Log[5].Rows != 1 {
		t.Errorf("ledger = %+v", l)
	}
	// The rows are for people, too.
	drive.WantLines(t, show(t, pg, db, "SELECT job, sink, life, fence, epoch, digest FROM out.weir_ledger"),
		"j|warehouse|lifeoftests|11|6|digest of 6")
	drive.WantLines(t, show(t, pg, db, "SELECT source, target, made FROM out.weir_ledger_tables"), "public.people|people|t")
}

func types(in scene) {
	t, pg, db := in.t, in.pg, in.db
	s := drive.Schema(t, "postgres", "public.all types", 1,
		drive.Col("id*", rows.Of(rows.KindInt64), "bigint"),
		drive.Col("i2", rows.Of(rows.KindInt16), "smallint"),
		drive.Col("n", rows.Decimal(10, 2), "numeric(10,2)"),
		drive.Col("nn", rows.Of(rows.KindDecimalText), "numeric"),
		drive.Col("b", rows.Of(rows.KindBytes), "bytea"),
		drive.Col("iv", rows.Of(rows.KindText), "interval"),
		drive.Col("inet", rows.Of(rows.KindText), "inet"),
		drive.Col("j", rows.Of(rows.KindJSON), "json"),
		drive.Col("jb", rows.Of(rows.KindJSON), "jsonb"),
		drive.Col("arr", rows.Of(rows.KindText), "integer[]"),
		drive.Col("mood", rows.Of(rows.KindText), "shop.mood"), // an enum that only the source has
		drive.Col("tz", rows.Of(rows.KindTimestampTZ), "timestamp(3) with time zone"),
		drive.Col("d", rows.Of(rows.KindDate), "date"),
		drive.Col("u", rows.Of(rows.KindUUID), "uuid"),
		drive.Col("f", rows.Of(rows.KindFloat64), "double precision"),
		drive.Col("ok", rows.Of(rows.KindBool), "boolean"),
		drive.Col("c", rows.Of(rows.KindText), "character(5)"),
	)
	a := drive.Open(t, drive.Config(postgresSink(pg.URL(db)), 1))
	build := func(op rows.Op, id int64) *rows.Batch {
		b := rows.NewBuilder(s)
		b.Column(0).(*array.Int64Builder).Append(id)
		b.Column(1).(*array.Int16Builder).Append(-7)
		b.Column(2).(*array.Decimal128Builder).Append(decimal128.FromI64(-12345))
		for i, text := range map[int]string{
			3: "123456789012345678901234567890.5", 5: "1 year 2 mons 03:04:05", 6: "10.0.0.0/8", 7: `{"a": 1}`, 8: `{"b": [2]}`,
			9: "{1,NULL,3}", 10: "so so", 16: "ab",
		} {
			b.Column(i).(*array.StringBuilder).Append(text)
		}
		b.Column(4).(*array.BinaryBuilder).Append([]byte{0, 255})
		b.Column(11).(*array.TimestampBuilder).Append(arrow.Timestamp(1_700_000_000_123_000))
		b.Column(12).(*array.Date32Builder).Append(19_000)
		b.Column(13).(*array.FixedSizeBinaryBuilder).Append([]byte("0123456789abcdef"))
		b.Column(14).(*array.Float64Builder).Append(0.1)
		b.Column(15).(*array.BooleanBuilder).Append(true)
		b.EndRow(rows.Meta{Op: op, Seq: uint64(id)})
		out, err := b.Flush()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	a.Epoch(build(rows.OpInsert, 1))
	a.Epoch(build(rows.OpUpdateAfter, 1), build(rows.OpUpdateAfter, 2))
	want := `-7|-123.45|123456789012345678901234567890.5|\x00ff|1 year 2 mons 03:04:05|10.0.0.0/8|{"a": 1}|{"b": [2]}|{1,NULL,3}|so so|` +
		`2023-11-14 22:13:20.123+00|2022-01-08|30313233-3435-3637-3839-616263646566|0.1|t|ab   `
	drive.WantLines(t, show(t, pg, db, `SELECT * FROM out."all types" ORDER BY id`), "1|"+want, "2|"+want)
	drive.WantLines(t, show(t, pg, db, `SELECT format_type(atttypid, atttypmod) FROM pg_attribute
		WHERE attrelid = 'out."all types"'::regclass AND attname IN ('iv', 'arr', 'mood', 'jb', 'tz', 'c') ORDER BY attnum`),
		"interval", "jsonb", "integer[]", "text", "timestamp(3) with time zone", "character(5)")
}

// PostgreSQL has these values, so they are written; none becomes null.
func specialValues(in scene) {
	t, pg, db := in.t, in.pg, in.db
	s := drive.Schema(t, "postgres", "public.special", 1, drive.Col("id*", rows.Of(rows.KindInt64), "bigint"), drive.Col("n", rows.Decimal(10, 2), "numeric(10,2)"),
		drive.Col("d", rows.Of(rows.KindDate), "date"), drive.Col("ts", rows.Of(rows.KindTimestamp), "timestamp without time zone"))
	a := drive.Open(t, drive.Config(postgresSink(pg.URL(db)), 1))
	b := rows.NewBuilder(s)
	b.Column(0).(*array.Int64Builder).Append(1)
	b.Special(1, "NaN")
	b.Special(2, "infinity")
	b.Special(3, "0044-03-15 12:00:00 BC")
	b.EndRow(rows.Meta{Op: rows.OpInsert, Seq: 1})
	batch, err := b.Flush()
	if err != nil {
		t.Fatal(err)
	}
	a.Epoch(batch)
	drive.WantLines(t, show(t, pg, db, "SELECT * FROM out.special"), "1|NaN|infinity|0044-03-15 12:00:00 BC")
}

func tableThatWasThere(in scene) {
	t, pg, db := in.t, in.pg, in.db
	exec(t, pg, db, `CREATE SCHEMA out; CREATE TABLE out.people (id bigint PRIMARY KEY, email text, name text, extra text DEFAULT 'kept');
		INSERT INTO out.people VALUES (1, 'there', 'before')`)
	p := drive.People(t, "public.people")
	s := postgresSink(pg.URL(db))
	a := drive.Open(t, drive.Config(s, 1))
	c := a.Stage(a.Batch(p, drive.Ins(2, "a", "b")))
	drive.WantCode(t, a.Try(c), fault.SinkNotEmpty, "out.people", "existing: keep")
	drive.WantLines(t, show(t, pg, db, "SELECT * FROM out.people"), "1|there|before|kept")

	s.Config.(*spec.PostgresSink).Existing = spec.ExistingKeep
	kept := drive.Open(t, drive.Config(s, 2))
	if err := kept.Try(c); err != nil { // small pieces are inline
		t.Fatal(err)
	}
	drive.WantLines(t, show(t, pg, db, "SELECT * FROM out.people ORDER BY id"), "1|there|before|kept", "2|a|b|kept")

	// It is asked once: with rows of one's own in it the table is not refused and not emptied again.
	exec(t, pg, db, "CREATE TABLE out.others (id bigint PRIMARY KEY, email text, name text); INSERT INTO out.others VALUES (9, 'x', 'y')")
	s.Config.(*spec.PostgresSink).Existing = spec.ExistingTruncate
	emptied := drive.Open(t, drive.Config(s, 3))
	emptied.Epoch(emptied.Batch(drive.People(t, "public.others"), drive.Ins(1, "a", "b")))
	emptied.Epoch(emptied.Batch(drive.People(t, "public.others"), drive.Ins(2, "a", "b")))
	s.Config.(*spec.PostgresSink).Existing = spec.ExistingRefuse
	again := drive.Open(t, drive.Config(s, 4))
	again.Epoch(again.Batch(drive.People(t, "public.others"), drive.Ins(3, "a", "b")))
	drive.WantLines(t, show(t, pg, db, "SELECT id FROM out.others ORDER BY id"), "1", "2", "3")

	exec(t, pg, db, "DROP TABLE out.others")
	gone := again.Stage(again.Batch(drive.People(t, "public.others"), drive.Ins(4, "a", "b")))
	drive.WantCode(t, again.Try(gone), fault.SinkMissingTable, "out.others")
	drive.WantCode(t, again.Try(gone), fault.SinkMissingTable, "out.others")
}

func nameClash(in scene) {
	t, pg, db := in.t, in.pg, in.db
	s := postgresSink(pg.URL(db))
	a := drive.Open(t, drive.Config(s, 1))
	a.Epoch(a.Batch(drive.People(t, "shop.people"), drive.Ins(1, "a", "b")))
	c := a.Stage(a.Batch(drive.People(t, "crm.people"), drive.Ins(1, "a", "b")))
	drive.WantCode(t, a.Try(c), fault.SinkNameClash, "shop.people", "crm.people")

	s.Config.(*spec.PostgresSink).Table = "{schema}_{table}"
	b := drive.Open(t, drive.Config(s, 2))
	b.Last = a.Last
	b.Epoch(b.Batch(drive.People(t, "crm.people"), drive.Ins(1, "c", "d")))
	drive.WantLines(t, show(t, pg, db, "SELECT * FROM out.crm_people"), "1|c|d")
}

// ownSource: a source of the same job has a session in the target's database, whatever both call its address.
func ownSource(in scene) {
	t, pg, db := in.t, in.pg, in.db
	pattern := func(text string) spec.TablePattern {
		p, err := spec.ParseTablePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	cfg := drive.Config(postgresSink(pg.URL(db)), 1)
	cfg.Sources = []spec.Source{{Name: "db", Type: "postgres", Config: &spec.PostgresSource{
		URL: config.NewSecret("postgres://another.name/elsewhere"), Tables: spec.Tables{pattern("*.*"), pattern("!*.quiet")},
	}}}
	a := drive.Open(t, cfg)
	session := func(name string) {
		conn, err := pgx.Connect(t.Context(), pg.URL(db)+"&application_name="+name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close(context.WithoutCancel(t.Context())) })
	}
	// Sources of other jobs, and of this job that are called otherwise, do not count.
	session("weir:otherlife:db:1")
	session("weir:lifeoftests:db2:1")
	a.Epoch(a.Batch(drive.People(t, "shop.clients"), drive.Ins(1, "a", "b")))
	session("weir:lifeoftests:db:1")
	drive.WantCode(t, a.Try(a.Stage(a.Batch(drive.People(t, "shop.people"), drive.Ins(1, "a", "b")))), fault.SinkOwnSource, "out.people", "source db")
	// A table that is left out of the source is no loop.
	if err := a.Try(a.Stage(a.Batch(drive.People(t, "shop.quiet"), drive.Ins(1, "a", "b")))); err != nil {
		t.Error(err)
	}
}

func misfits(in scene) {
	t, pg, db := in.t, in.pg, in.db
	exec(t, pg, db, `CREATE SCHEMA out;
		CREATE TABLE out.keyless (id bigint, email text, name text);
		CREATE TABLE out.otherkey (id bigint, email text PRIMARY KEY, name text);
		CREATE TABLE out.partial (id bigint, email text, name text); CREATE UNIQUE INDEX ON out.partial (id) WHERE email IS NOT NULL;
		CREATE TABLE out.demanding (id bigint PRIMARY KEY, email text, name text, more text NOT NULL);
		CREATE TABLE out.short (id bigint PRIMARY KEY, email varchar(3), name text);
		CREATE TABLE out.numbers (id bigint PRIMARY KEY, email integer, name text);
		CREATE TABLE out.fewer (id bigint PRIMARY KEY, email text);`)
	a := drive.Open(t, drive.Config(postgresSink(pg.URL(db)), 1))
	for _, tt := range []struct {
		table string
		code  fault.Code
		says  []string
	}{
		{"keyless", fault.SinkWrongKey, []string{"out.keyless", "(id)"}},
		{"otherkey", fault.SinkWrongKey, []string{"out.otherkey", "(id)"}},
		{"partial", fault.SinkWrongKey, []string{"out.partial"}},
		{"demanding", fault.SinkConstraint, []string{"out.demanding", "column more"}},
		{"short", fault.SinkRow, []string{"22001"}},
		{"numbers", fault.SinkRow, []string{"22P02"}},
	} {
		t.Log(tt.table)
		c := a.Stage(a.Batch(drive.People(t, "public."+tt.table), drive.Ins(1, "canary", "canary")))
		drive.WantCode(t, a.Try(c), tt.code, tt.says...)
		drive.WantLines(t, show(t, pg, db, "SELECT count(*) FROM out."+tt.table), "0")
	}
	// What is missing is added; a keyless source table is refused where its rows are.
	a.Epoch(a.Batch(drive.People(t, "public.fewer"), drive.Ins(1, "a", "b")))
	drive.WantLines(t, show(t, pg, db, "SELECT * FROM out.fewer"), "1|a|b")
	keyless := drive.Schema(t, "postgres", "public.heap", 1, drive.Col("id", rows.Of(rows.KindInt64), "bigint"))
	drive.WantCode(t, a.Writer.Write(t.Context(), *a.Batch(keyless, drive.Ins(1))), fault.SinkNoKey, "public.heap", "changelog")

	// int to text is no widening of a table that Weir made.
	narrow := drive.Schema(t, "postgres", "public.evolving", 1, drive.Col("id*", rows.Of(rows.KindInt64), "bigint"), drive.Col("v", rows.Of(rows.KindText), "text"))
	other := drive.Schema(t, "postgres", "public.evolving", 2, drive.Col("id*", rows.Of(rows.KindInt64), "bigint"), drive.Col("v", rows.Of(rows.KindInt64), "bigint"))
	a.Epoch(a.Batch(narrow, drive.Ins(1, "x")))
	b := rows.NewBuilder(other)
	b.Column(0).(*array.Int64Builder).Append(1)
	b.Column(1).(*array.Int64Builder).Append(1)
	b.EndRow(rows.Meta{Op: rows.OpUpdateAfter})
	batch, err := b.Flush()
	if err != nil {
		t.Fatal(err)
	}
	drive.WantCode(t, a.Try(a.Stage(batch)), fault.SinkSchemaChange, "out.evolving", "column v is text at the target and bigint at the source")
}

// A table of the user's may have other types; rows are converted where nothing is lost.
func usersTypes(in scene) {
	t, pg, db := in.t, in.pg, in.db
	exec(t, pg, db, `CREATE SCHEMA out; CREATE TYPE "out".mood AS ENUM ('so so', 'fine'); CREATE DOMAIN "out".mail AS text CHECK (VALUE LIKE '%@%');
		CREATE TABLE out.people (name "out".mood, id numeric(20,0) PRIMARY KEY, email "out".mail, at timestamptz DEFAULT '2000-01-01')`)
	p := drive.People(t, "public.people")
	a := drive.Open(t, drive.Config(postgresSink(pg.URL(db)), 1))
	a.Epoch(a.Batch(p, drive.Ins(1, "a@b", "so so"), drive.Ins(2, "c@d", "fine")))
	a.Epoch(a.Batch(p, drive.Upd(1, "e@f", "fine"), drive.Upd(2, "?", "so so"), drive.Ins(3, "x@y", "fine"), drive.Del(77)))
	drive.WantLines(t, show(t, pg, db, "SELECT id, email, name FROM out.people ORDER BY id"), "1|e@f|fine", "2|c@d|so so", "3|x@y|fine")
	drive.WantCode(t, a.Try(a.Stage(a.Batch(p, drive.Ins(4, "canary", "fine")))), fault.SinkConstraint, "mail_check")
}

// Rows that pass a unique value on arrive as a set; whatever the order, the end is the source's.
func uniqueValues(in scene) {
	t, pg, db := in.t, in.pg, in.db
	exec(t, pg, db, `CREATE SCHEMA out; CREATE TABLE out.people (id bigint PRIMARY KEY, email text UNIQUE, name text)`)
	p := drive.People(t, "public.people")
	a := drive.Open(t, drive.Config(postgresSink(pg.URL(db)), 1))
	var first []drive.Row
	for id := int64(1); id <= 100; id++ {
		first = append(first, drive.Ins(id, fmt.Sprint("m", id), "n"))
	}
	a.Epoch(a.Batch(p, first...))
	// A chain in the worst order: each takes the value of the next, the last a new one. As a set the first row clashes.
	var chain []drive.Row
	for id := int64(100); id >= 1; id-- {
		chain = append(chain, drive.Upd(id, fmt.Sprint("m", id+1), "chain"))
	}
	a.Epoch(a.Batch(p, chain...))
	drive.WantLines(t, show(t, pg, db, "SELECT count(*), bool_and(email = 'm' || id + 1) FROM out.people"), "100|t")
	// A ring: two rows exchange their values by way of a third one, which the fold leaves out.
	a.Epoch(a.Batch(p, drive.Upd(1, "tmp", "r"), drive.Upd(2, "m2", "r"), drive.Upd(1, "m3", "r"), drive.Del(50), drive.Ins(500, "m51", "moved")))
	drive.WantLines(t, show(t, pg, db, "SELECT id, email FROM out.people WHERE id IN (1, 2, 50, 500) ORDER BY id"), "1|m3", "2|m2", "500|m51")
	// A value that the target has for another reason is a constraint of the user's.
	exec(t, pg, db, "INSERT INTO out.people VALUES (9999, 'taken', 'by the user')")
	bad := a.Stage(a.Batch(p, drive.Ins(1000, "taken", "canary"), drive.Ins(1001, "free", "x")))
	drive.WantCode(t, a.Try(bad), fault.SinkConstraint, "people_email_key", "out.people")
	drive.WantLines(t, show(t, pg, db, "SELECT count(*) FROM out.people WHERE id >= 1000 AND id < 9999"), "0")
	exec(t, pg, db, "DELETE FROM out.people WHERE id = 9999")
	if err := a.Try(bad); err != nil {
		t.Errorf("after the repair: %v", err)
	}
}

// Rows the source inserted may be in a target that was kept.
func notFresh(in scene) {
	t, pg, db := in.t, in.pg, in.db
	exec(t, pg, db, `CREATE SCHEMA out; CREATE TABLE out.people (id bigint PRIMARY KEY, email text, name text); INSERT INTO out.people VALUES (5, 'old', 'old')`)
	s := postgresSink(pg.URL(db))
	s.Config.(*spec.PostgresSink).Existing = spec.ExistingKeep
	p := drive.People(t, "public.people")
	a := drive.Open(t, drive.Config(s, 1))
	a.Epoch(a.Batch(p, drive.Ins(4, "new", "new"), drive.Ins(5, "new", "new"), drive.Ins(6, "new", "new")))
	a.Epoch(a.Batch(p, drive.Del(4), drive.Ins(4, "again", "again")), a.Batch(p, drive.Upd(6, "?", "third")))
	drive.WantLines(t, show(t, pg, db, "SELECT * FROM out.people ORDER BY id"), "4|again|again", "5|new|new", "6|new|third")
}

func truncateInChangelog(in scene) {
	t, pg, db := in.t, in.pg, in.db
	s := postgresSink(pg.URL(db))
	s.Mode = spec.Changelog
	p := drive.People(t, "public.people")
	a := drive.Open(t, drive.Config(s, 1))
	a.Epoch(a.Batch(p, drive.Ins(1, "a", "b"), drive.Row{Op: rows.OpTruncate}, drive.Upd(2, "?", "c"), drive.Del(2)))
	drive.WantLines(t, show(t, pg, db, "SELECT id, email, name, _op, _seq, _txn, _ord, _epoch, _absent FROM out.people ORDER BY _seq"),
		"1|a|b|2|1|1|0|1|null", "null|null|null|6|2|2|0|1|null", "2|null|c|4|3|3|0|1|{email}", "2|null|null|5|4|4|0|1|null")
}

// A frozen committer holds the ledger row; its successor ends that session and no other.
func zombieLock(in scene) {
	t, pg, db := in.t, in.pg, in.db
	s := postgresSink(pg.URL(db))
	p := drive.People(t, "public.people")
	a := drive.Open(t, drive.Config(s, 4))
	a.Epoch(a.Batch(p, drive.Ins(1, "a", "b")))
	session := func(application string) *pgx.Conn {
		cfg, err := pgx.ParseConfig(pg.URL(db))
		if err != nil {
			t.Fatal(err)
		}
		cfg.RuntimeParams["application_name"] = application
		conn, err := pgx.ConnectConfig(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close(context.WithoutCancel(t.Context())) })
		return conn
	}
	zombie := session("weir:lifeoftests:warehouse_commit:4")
	tx, err := zombie.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT FROM out.weir_ledger FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	bystanders := map[string]*pgx.Conn{}
	for _, name := range []string{
		"weir:lifeoftests:warehouse_commit:9", "weir:lifeoftests:other_commit:1", "weir:anotherlife:warehouse_commit:1",
		"weir:lifeoftests:warehouse_commit:x", "psql",
	} {
		bystanders[name] = session(name)
	}
	start := time.Now()
	b := drive.Open(t, drive.Config(s, 5))
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("the claim waited %s for a zombie", took)
	}
	if err := tx.Commit(t.Context()); err == nil {
		t.Error("the zombie's transaction committed")
	}
	for name, conn := range bystanders {
		if err := conn.Ping(t.Context()); err != nil {
			t.Errorf("session %s was ended: %v", name, err)
		}
	}
	b.Epoch(b.Batch(p, drive.Ins(2, "c", "d")))
	err = a.Try(a.Stage(a.Batch(p, drive.Ins(3, "e", "f"))))
	if errors.Is(err, fault.Transient) { // its session is gone, and that it notices first
		err = a.Try(a.Stage(a.Batch(p, drive.Ins(3, "e", "f"))))
	}
	drive.WantCode(t, err, fault.SinkFenced, "fence 5")
	drive.WantLines(t, show(t, pg, db, "SELECT id FROM out.people ORDER BY id"), "1", "2")
}

func lostReply(in scene) {
	t, pg, db := in.t, in.pg, in.db
	proxy := harness.StartCutter(t, pg.Port)
	a := drive.Open(t, drive.Config(postgresSink(proxy.URL(pg.URL(db))), 1))
	p := drive.People(t, "public.people")
	a.Epoch(a.Batch(p, drive.Ins(1, "a", "b")))
	for i := range int64(3) {
		c := a.Stage(a.Batch(p, drive.Ins(10+i, "c", "d"), drive.Upd(1, fmt.Sprint(i), "x")))
		proxy.CutAfter("COMMIT\x00", false)
		r, err := a.Committer.Commit(t.Context(), c)
		if err != nil || !r.Applied || r.Rows != 2 {
			t.Fatalf("commit whose reply was lost: %+v, %v", r, err)
		}
		if proxy.Cuts() != int(i)+1 {
			t.Fatal("the reply was not lost")
		}
		a.Last = c.Ref
	}
	drive.WantLines(t, show(t, pg, db, "SELECT id, email FROM out.people ORDER BY id"), "1|2", "10|c", "11|c", "12|c")
	drive.WantLines(t, show(t, pg, db, "SELECT count(*), max(epoch) FROM out.weir_ledger_log"), "4|4")
}

func cutBeforeCommit(in scene) {
	t, pg, db := in.t, in.pg, in.db
	proxy := harness.StartCutter(t, pg.Port)
	a := drive.Open(t, drive.Config(postgresSink(proxy.URL(pg.URL(db))), 1))
	p := drive.People(t, "public.people")
	a.Epoch(a.Batch(p, drive.Ins(1, "a", "b")))
	for i, word := range []string{"COMMIT\x00", "COPY", "FOR UPDATE", "weir_ledger_log"} {
		c := a.Stage(a.Batch(p, drive.Ins(10+int64(i), "c", "d"), drive.Upd(1, fmt.Sprint(i), "x")))
		proxy.CutAfter(word, true)
		err := a.Try(c)
		if !errors.Is(err, fault.Transient) {
			t.Fatalf("%s never reached the server: %v, want transient", word, err)
		}
		if proxy.Cuts() != i+1 {
			t.Fatalf("%s was not cut", word)
		}
		if err := a.Try(c); err != nil {
			t.Fatalf("repeated: %v", err)
		}
	}
	drive.WantLines(t, show(t, pg, db, "SELECT id, email FROM out.people ORDER BY id"), "1|3", "10|c", "11|c", "12|c", "13|c")
	drive.WantLines(t, show(t, pg, db, "SELECT count(*), max(epoch) FROM out.weir_ledger_log"), "5|5")
}

func refusals(in scene) {
	t, pg, db := in.t, in.pg, in.db
	plain, err := pg.CreateRole(t.Context(), "plain_"+db, "")
	if err != nil {
		t.Fatal(err)
	}
	open := func(url string) error {
		c, err := drive.Connector(t, "postgres").OpenCommitter(t.Context(), drive.Config(postgresSink(url), 1))
		if err == nil {
			c.Close()
		}
		return err
	}
	drive.WantCode(t, open(pg.URLAs(plain, db)), fault.SinkMissingRight, "permission denied")
	drive.WantCode(t, open(pg.URL("nowhere")), fault.SinkNoDatabase)
	wrong := plain
	wrong.Password = "canary"
	drive.WantCode(t, open(pg.URLAs(wrong, db)), fault.SinkWrongPassword)
	drive.WantCode(t, open("postgres://canary:canary@127.0.0.1:1/x?connect_timeout=3"), fault.SinkUnreachable)
	drive.WantCode(t, open("postgres://canary:canary@[/x"), fault.SinkBadURL)
	readOnly := pg.URL(db) + "&default_transaction_read_only=on"
	drive.WantCode(t, open(readOnly), fault.SinkReadOnly)

	// With a schema of its own a plain role is enough.
	exec(t, pg, db, `CREATE SCHEMA out AUTHORIZATION "plain_`+db+`"`)
	a := drive.Open(t, drive.Config(postgresSink(pg.URLAs(plain, db)), 1))
	a.Epoch(a.Batch(drive.People(t, "public.people"), drive.Ins(1, "a", "b")))
	exec(t, pg, db, `ALTER TABLE out.people OWNER TO postgres; REVOKE ALL ON out.people FROM "plain_`+db+`"`)
	drive.WantCode(t, a.Try(a.Stage(a.Batch(drive.People(t, "public.people"), drive.Ins(2, "canary", "b")))), fault.SinkMissingRight, "people")
}

// What a failed transaction had learnt about tables is forgotten with it.
func failedThenRepeated(in scene) {
	t, pg, db := in.t, in.pg, in.db
	exec(t, pg, db, "CREATE SCHEMA out; CREATE TABLE out.strict (id bigint PRIMARY KEY, email text CHECK (email <> 'bad'), name text)")
	a := drive.Open(t, drive.Config(postgresSink(pg.URL(db)), 1))
	c := a.Stage(a.Batch(drive.People(t, "public.made"), drive.Ins(1, "a", "b")), a.Batch(drive.People(t, "public.strict"), drive.Ins(1, "bad", "b")))
	for range 3 {
		drive.WantCode(t, a.Try(c), fault.SinkConstraint, "strict_email_check")
	}
	exec(t, pg, db, "ALTER TABLE out.strict DROP CONSTRAINT strict_email_check")
	if err := a.Try(c); err != nil {
		t.Fatal(err)
	}
	drive.WantLines(t, show(t, pg, db, "SELECT * FROM out.made, out.strict"), "1|a|b|1|bad|b")
}
