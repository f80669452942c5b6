package sink_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/jackc/pgx/v5"

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

func wantCode(t *testing.T, err error, want fault.Code, parts ...string) {
	t.Helper()
	if fault.CodeOf(err) != want {
		t.Errorf("error = %v, want code %s", err, want)
		return
	}
	text := fault.Of(err).Text()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("the error does not say %q:\n%s", part, text)
		}
	}
	if strings.Contains(text, "canary") {
		t.Errorf("the error shows a value:\n%s", text)
	}
}

func ledgerAndLog(in scene) {
	t, pg, db := in.t, in.pg, in.db
	s := postgresSink(pg.URL(db))
	if l, kept, err := sink.ReadLedger(t.Context(), "j", s, resolve); err != nil || !kept || l.Life != "" {
		t.Errorf("ledger of an untouched target: %+v, %t, %v", l, kept, err)
	}
	p := people(t, "public.people")
	for i, token := range []fence.Token{7, 9, 11} {
		a := openAttempt(t, configOf(s, token))
		a.epoch(a.batch(p, ins(int64(2*i)), ins(int64(2*i+1))))
		a.epoch(a.batch(p, upd(int64(2*i), "x")))
	}
	l, kept, err := sink.ReadLedger(t.Context(), "j", s, resolve)
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
	wantLines(t, show(t, pg, db, "SELECT job, sink, life, fence, epoch, digest FROM out.weir_ledger"),
		"j|warehouse|lifeoftests|11|6|digest of 6")
	wantLines(t, show(t, pg, db, "SELECT source, target, made FROM out.weir_ledger_tables"), "public.people|people|t")
}

func types(in scene) {
	t, pg, db := in.t, in.pg, in.db
	s := schemaOf(t, "public.all types", 1,
		col("id*", rows.Of(rows.KindInt64), "bigint"),
		col("i2", rows.Of(rows.KindInt16), "smallint"),
		col("n", rows.Decimal(10, 2), "numeric(10,2)"),
		col("nn", rows.Of(rows.KindDecimalText), "numeric"),
		col("b", rows.Of(rows.KindBytes), "bytea"),
		col("iv", rows.Of(rows.KindText), "interval"),
		col("inet", rows.Of(rows.KindText), "inet"),
		col("j", rows.Of(rows.KindJSON), "json"),
		col("jb", rows.Of(rows.KindJSON), "jsonb"),
		col("arr", rows.Of(rows.KindText), "integer[]"),
		col("mood", rows.Of(rows.KindText), "shop.mood"), // an enum that only the source has
		col("tz", rows.Of(rows.KindTimestampTZ), "timestamp(3) with time zone"),
		col("d", rows.Of(rows.KindDate), "date"),
		col("u", rows.Of(rows.KindUUID), "uuid"),
		col("f", rows.Of(rows.KindFloat64), "double precision"),
		col("ok", rows.Of(rows.KindBool), "boolean"),
		col("c", rows.Of(rows.KindText), "character(5)"),
	)
	a := openAttempt(t, configOf(postgresSink(pg.URL(db)), 1))
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
	a.epoch(build(rows.OpInsert, 1))
	a.epoch(build(rows.OpUpdateAfter, 1), build(rows.OpUpdateAfter, 2))
	want := `-7|-123.45|123456789012345678901234567890.5|\x00ff|1 year 2 mons 03:04:05|10.0.0.0/8|{"a": 1}|{"b": [2]}|{1,NULL,3}|so so|` +
		`2023-11-14 22:13:20.123+00|2022-01-08|30313233-3435-3637-3839-616263646566|0.1|t|ab   `
	wantLines(t, show(t, pg, db, `SELECT * FROM out."all types" ORDER BY id`), "1|"+want, "2|"+want)
	wantLines(t, show(t, pg, db, `SELECT format_type(atttypid, atttypmod) FROM pg_attribute
		WHERE attrelid = 'out."all types"'::regclass AND attname IN ('iv', 'arr', 'mood', 'jb', 'tz', 'c') ORDER BY attnum`),
		"interval", "jsonb", "integer[]", "text", "timestamp(3) with time zone", "character(5)")
}

// PostgreSQL has these values, so they are written; none becomes null.
func specialValues(in scene) {
	t, pg, db := in.t, in.pg, in.db
	s := schemaOf(t, "public.special", 1, col("id*", rows.Of(rows.KindInt64), "bigint"), col("n", rows.Decimal(10, 2), "numeric(10,2)"),
		col("d", rows.Of(rows.KindDate), "date"), col("ts", rows.Of(rows.KindTimestamp), "timestamp without time zone"))
	a := openAttempt(t, configOf(postgresSink(pg.URL(db)), 1))
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
	a.epoch(batch)
	wantLines(t, show(t, pg, db, "SELECT * FROM out.special"), "1|NaN|infinity|0044-03-15 12:00:00 BC")
}

func tableThatWasThere(in scene) {
	t, pg, db := in.t, in.pg, in.db
	exec(t, pg, db, `CREATE SCHEMA out; CREATE TABLE out.people (id bigint PRIMARY KEY, email text, name text, extra text DEFAULT 'kept');
		INSERT INTO out.people VALUES (1, 'there', 'before')`)
	p := people(t, "public.people")
	s := postgresSink(pg.URL(db))
	a := openAttempt(t, configOf(s, 1))
	c := a.stage(a.batch(p, ins(2, "a", "b")))
	wantCode(t, a.try(c), fault.SinkNotEmpty, "out.people", "existing: keep")
	wantLines(t, show(t, pg, db, "SELECT * FROM out.people"), "1|there|before|kept")

	s.Config.(*spec.PostgresSink).Existing = spec.ExistingKeep
	kept := openAttempt(t, configOf(s, 2))
	if err := kept.try(c); err != nil { // small pieces are inline
		t.Fatal(err)
	}
	wantLines(t, show(t, pg, db, "SELECT * FROM out.people ORDER BY id"), "1|there|before|kept", "2|a|b|kept")

	// It is asked once: with rows of one's own in it the table is not refused and not emptied again.
	exec(t, pg, db, "CREATE TABLE out.others (id bigint PRIMARY KEY, email text, name text); INSERT INTO out.others VALUES (9, 'x', 'y')")
	s.Config.(*spec.PostgresSink).Existing = spec.ExistingTruncate
	emptied := openAttempt(t, configOf(s, 3))
	emptied.epoch(emptied.batch(people(t, "public.others"), ins(1, "a", "b")))
	emptied.epoch(emptied.batch(people(t, "public.others"), ins(2, "a", "b")))
	s.Config.(*spec.PostgresSink).Existing = spec.ExistingRefuse
	again := openAttempt(t, configOf(s, 4))
	again.epoch(again.batch(people(t, "public.others"), ins(3, "a", "b")))
	wantLines(t, show(t, pg, db, "SELECT id FROM out.others ORDER BY id"), "1", "2", "3")

	exec(t, pg, db, "DROP TABLE out.others")
	gone := again.stage(again.batch(people(t, "public.others"), ins(4, "a", "b")))
	wantCode(t, again.try(gone), fault.SinkMissingTable, "out.others")
	wantCode(t, again.try(gone), fault.SinkMissingTable, "out.others")
}

func nameClash(in scene) {
	t, pg, db := in.t, in.pg, in.db
	s := postgresSink(pg.URL(db))
	a := openAttempt(t, configOf(s, 1))
	a.epoch(a.batch(people(t, "shop.people"), ins(1, "a", "b")))
	c := a.stage(a.batch(people(t, "crm.people"), ins(1, "a", "b")))
	wantCode(t, a.try(c), fault.SinkNameClash, "shop.people", "crm.people")

	s.Config.(*spec.PostgresSink).Table = "{schema}_{table}"
	b := openAttempt(t, configOf(s, 2))
	b.last = a.last
	b.epoch(b.batch(people(t, "crm.people"), ins(1, "c", "d")))
	wantLines(t, show(t, pg, db, "SELECT * FROM out.crm_people"), "1|c|d")
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
	cfg := configOf(postgresSink(pg.URL(db)), 1)
	cfg.Sources = []spec.Source{{Name: "db", Type: "postgres", Config: &spec.PostgresSource{
		URL: config.NewSecret("postgres://another.name/elsewhere"), Tables: spec.Tables{pattern("*.*"), pattern("!*.quiet")},
	}}}
	a := openAttempt(t, cfg)
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
	a.epoch(a.batch(people(t, "shop.clients"), ins(1, "a", "b")))
	session("weir:lifeoftests:db:1")
	wantCode(t, a.try(a.stage(a.batch(people(t, "shop.people"), ins(1, "a", "b")))), fault.SinkOwnSource, "out.people", "source db")
	// A table that is left out of the source is no loop.
	if err := a.try(a.stage(a.batch(people(t, "shop.quiet"), ins(1, "a", "b")))); err != nil {
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
	a := openAttempt(t, configOf(postgresSink(pg.URL(db)), 1))
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
		c := a.stage(a.batch(people(t, "public."+tt.table), ins(1, "canary", "canary")))
		wantCode(t, a.try(c), tt.code, tt.says...)
		wantLines(t, show(t, pg, db, "SELECT count(*) FROM out."+tt.table), "0")
	}
	// What is missing is added; a keyless source table is refused where its rows are.
	a.epoch(a.batch(people(t, "public.fewer"), ins(1, "a", "b")))
	wantLines(t, show(t, pg, db, "SELECT * FROM out.fewer"), "1|a|b")
	keyless := schemaOf(t, "public.heap", 1, col("id", rows.Of(rows.KindInt64), "bigint"))
	wantCode(t, a.writer.Write(t.Context(), *a.batch(keyless, ins(1))), fault.SinkNoKey, "public.heap", "changelog")

	// int to text is no widening of a table that Weir made.
	narrow := schemaOf(t, "public.evolving", 1, col("id*", rows.Of(rows.KindInt64), "bigint"), col("v", rows.Of(rows.KindText), "text"))
	other := schemaOf(t, "public.evolving", 2, col("id*", rows.Of(rows.KindInt64), "bigint"), col("v", rows.Of(rows.KindInt64), "bigint"))
	a.epoch(a.batch(narrow, ins(1, "x")))
	b := rows.NewBuilder(other)
	b.Column(0).(*array.Int64Builder).Append(1)
	b.Column(1).(*array.Int64Builder).Append(1)
	b.EndRow(rows.Meta{Op: rows.OpUpdateAfter})
	batch, err := b.Flush()
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, a.try(a.stage(batch)), fault.SinkSchemaChange, "out.evolving", "column v is text at the target and bigint at the source")
}

// A table of the user's may have other types; rows are converted where nothing is lost.
func usersTypes(in scene) {
	t, pg, db := in.t, in.pg, in.db
	exec(t, pg, db, `CREATE SCHEMA out; CREATE TYPE "out".mood AS ENUM ('so so', 'fine'); CREATE DOMAIN "out".mail AS text CHECK (VALUE LIKE '%@%');
		CREATE TABLE out.people (name "out".mood, id numeric(20,0) PRIMARY KEY, email "out".mail, at timestamptz DEFAULT '2000-01-01')`)
	p := people(t, "public.people")
	a := openAttempt(t, configOf(postgresSink(pg.URL(db)), 1))
	a.epoch(a.batch(p, ins(1, "a@b", "so so"), ins(2, "c@d", "fine")))
	a.epoch(a.batch(p, upd(1, "e@f", "fine"), upd(2, "?", "so so"), ins(3, "x@y", "fine"), del(77)))
	wantLines(t, show(t, pg, db, "SELECT id, email, name FROM out.people ORDER BY id"), "1|e@f|fine", "2|c@d|so so", "3|x@y|fine")
	wantCode(t, a.try(a.stage(a.batch(p, ins(4, "canary", "fine")))), fault.SinkConstraint, "mail_check")
}

// Rows that pass a unique value on arrive as a set; whatever the order, the end is the source's.
func uniqueValues(in scene) {
	t, pg, db := in.t, in.pg, in.db
	exec(t, pg, db, `CREATE SCHEMA out; CREATE TABLE out.people (id bigint PRIMARY KEY, email text UNIQUE, name text)`)
	p := people(t, "public.people")
	a := openAttempt(t, configOf(postgresSink(pg.URL(db)), 1))
	var first []row
	for id := int64(1); id <= 100; id++ {
		first = append(first, ins(id, fmt.Sprint("m", id), "n"))
	}
	a.epoch(a.batch(p, first...))
	// A chain in the worst order: each takes the value of the next, the last a new one. As a set the first row clashes.
	var chain []row
	for id := int64(100); id >= 1; id-- {
		chain = append(chain, upd(id, fmt.Sprint("m", id+1), "chain"))
	}
	a.epoch(a.batch(p, chain...))
	wantLines(t, show(t, pg, db, "SELECT count(*), bool_and(email = 'm' || id + 1) FROM out.people"), "100|t")
	// A ring: two rows exchange their values by way of a third one, which the fold leaves out.
	a.epoch(a.batch(p, upd(1, "tmp", "r"), upd(2, "m2", "r"), upd(1, "m3", "r"), del(50), ins(500, "m51", "moved")))
	wantLines(t, show(t, pg, db, "SELECT id, email FROM out.people WHERE id IN (1, 2, 50, 500) ORDER BY id"), "1|m3", "2|m2", "500|m51")
	// A value that the target has for another reason is a constraint of the user's.
	exec(t, pg, db, "INSERT INTO out.people VALUES (9999, 'taken', 'by the user')")
	bad := a.stage(a.batch(p, ins(1000, "taken", "canary"), ins(1001, "free", "x")))
	wantCode(t, a.try(bad), fault.SinkConstraint, "people_email_key", "out.people")
	wantLines(t, show(t, pg, db, "SELECT count(*) FROM out.people WHERE id >= 1000 AND id < 9999"), "0")
	exec(t, pg, db, "DELETE FROM out.people WHERE id = 9999")
	if err := a.try(bad); err != nil {
		t.Errorf("after the repair: %v", err)
	}
}

// Rows the source inserted may be in a target that was kept.
func notFresh(in scene) {
	t, pg, db := in.t, in.pg, in.db
	exec(t, pg, db, `CREATE SCHEMA out; CREATE TABLE out.people (id bigint PRIMARY KEY, email text, name text); INSERT INTO out.people VALUES (5, 'old', 'old')`)
	s := postgresSink(pg.URL(db))
	s.Config.(*spec.PostgresSink).Existing = spec.ExistingKeep
	p := people(t, "public.people")
	a := openAttempt(t, configOf(s, 1))
	a.epoch(a.batch(p, ins(4, "new", "new"), ins(5, "new", "new"), ins(6, "new", "new")))
	a.epoch(a.batch(p, del(4), ins(4, "again", "again")), a.batch(p, upd(6, "?", "third")))
	wantLines(t, show(t, pg, db, "SELECT * FROM out.people ORDER BY id"), "4|again|again", "5|new|new", "6|new|third")
}

func truncateInChangelog(in scene) {
	t, pg, db := in.t, in.pg, in.db
	s := postgresSink(pg.URL(db))
	s.Mode = spec.Changelog
	p := people(t, "public.people")
	a := openAttempt(t, configOf(s, 1))
	a.epoch(a.batch(p, ins(1, "a", "b"), row{op: rows.OpTruncate}, upd(2, "?", "c"), del(2)))
	wantLines(t, show(t, pg, db, "SELECT id, email, name, _op, _seq, _txn, _ord, _epoch, _absent FROM out.people ORDER BY _seq"),
		"1|a|b|2|1|1|0|1|null", "null|null|null|6|2|2|0|1|null", "2|null|c|4|3|3|0|1|{email}", "2|null|null|5|4|4|0|1|null")
}

// A frozen committer holds the ledger row; its successor ends that session and no other.
func zombieLock(in scene) {
	t, pg, db := in.t, in.pg, in.db
	s := postgresSink(pg.URL(db))
	p := people(t, "public.people")
	a := openAttempt(t, configOf(s, 4))
	a.epoch(a.batch(p, ins(1, "a", "b")))
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
	b := openAttempt(t, configOf(s, 5))
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
	b.epoch(b.batch(p, ins(2, "c", "d")))
	err = a.try(a.stage(a.batch(p, ins(3, "e", "f"))))
	if errors.Is(err, fault.Transient) { // its session is gone, and that it notices first
		err = a.try(a.stage(a.batch(p, ins(3, "e", "f"))))
	}
	wantCode(t, err, fault.SinkFenced, "fence 5")
	wantLines(t, show(t, pg, db, "SELECT id FROM out.people ORDER BY id"), "1", "2")
}

func lostReply(in scene) {
	t, pg, db := in.t, in.pg, in.db
	proxy := harness.StartCutter(t, pg.Port)
	a := openAttempt(t, configOf(postgresSink(proxy.URL(pg.URL(db))), 1))
	p := people(t, "public.people")
	a.epoch(a.batch(p, ins(1, "a", "b")))
	for i := range int64(3) {
		c := a.stage(a.batch(p, ins(10+i, "c", "d"), upd(1, fmt.Sprint(i), "x")))
		proxy.CutAfter("COMMIT\x00", false)
		r, err := a.committer.Commit(t.Context(), c)
		if err != nil || !r.Applied || r.Rows != 2 {
			t.Fatalf("commit whose reply was lost: %+v, %v", r, err)
		}
		if proxy.Cuts() != int(i)+1 {
			t.Fatal("the reply was not lost")
		}
		a.last = c.Ref
	}
	wantLines(t, show(t, pg, db, "SELECT id, email FROM out.people ORDER BY id"), "1|2", "10|c", "11|c", "12|c")
	wantLines(t, show(t, pg, db, "SELECT count(*), max(epoch) FROM out.weir_ledger_log"), "4|4")
}

func cutBeforeCommit(in scene) {
	t, pg, db := in.t, in.pg, in.db
	proxy := harness.StartCutter(t, pg.Port)
	a := openAttempt(t, configOf(postgresSink(proxy.URL(pg.URL(db))), 1))
	p := people(t, "public.people")
	a.epoch(a.batch(p, ins(1, "a", "b")))
	for i, word := range []string{"COMMIT\x00", "COPY", "FOR UPDATE", "weir_ledger_log"} {
		c := a.stage(a.batch(p, ins(10+int64(i), "c", "d"), upd(1, fmt.Sprint(i), "x")))
		proxy.CutAfter(word, true)
		err := a.try(c)
		if !errors.Is(err, fault.Transient) {
			t.Fatalf("%s never reached the server: %v, want transient", word, err)
		}
		if proxy.Cuts() != i+1 {
			t.Fatalf("%s was not cut", word)
		}
		if err := a.try(c); err != nil {
			t.Fatalf("repeated: %v", err)
		}
	}
	wantLines(t, show(t, pg, db, "SELECT id, email FROM out.people ORDER BY id"), "1|3", "10|c", "11|c", "12|c", "13|c")
	wantLines(t, show(t, pg, db, "SELECT count(*), max(epoch) FROM out.weir_ledger_log"), "5|5")
}

func refusals(in scene) {
	t, pg, db := in.t, in.pg, in.db
	plain, err := pg.CreateRole(t.Context(), "plain_"+db, "")
	if err != nil {
		t.Fatal(err)
	}
	open := func(url string) error {
		c, err := connector(t, "postgres").OpenCommitter(t.Context(), configOf(postgresSink(url), 1))
		if err == nil {
			c.Close()
		}
		return err
	}
	wantCode(t, open(pg.URLAs(plain, db)), fault.SinkMissingRight, "permission denied")
	wantCode(t, open(pg.URL("nowhere")), fault.SinkNoDatabase)
	wrong := plain
	wrong.Password = "canary"
	wantCode(t, open(pg.URLAs(wrong, db)), fault.SinkWrongPassword)
	wantCode(t, open("postgres://canary:canary@127.0.0.1:1/x?connect_timeout=3"), fault.SinkUnreachable)
	wantCode(t, open("postgres://canary:canary@[/x"), fault.SinkBadURL)
	readOnly := pg.URL(db) + "&default_transaction_read_only=on"
	wantCode(t, open(readOnly), fault.SinkReadOnly)

	// With a schema of its own a plain role is enough.
	exec(t, pg, db, `CREATE SCHEMA out AUTHORIZATION "plain_`+db+`"`)
	a := openAttempt(t, configOf(postgresSink(pg.URLAs(plain, db)), 1))
	a.epoch(a.batch(people(t, "public.people"), ins(1, "a", "b")))
	exec(t, pg, db, `ALTER TABLE out.people OWNER TO postgres; REVOKE ALL ON out.people FROM "plain_`+db+`"`)
	wantCode(t, a.try(a.stage(a.batch(people(t, "public.people"), ins(2, "canary", "b")))), fault.SinkMissingRight, "people")
}

// What a failed transaction had learnt about tables is forgotten with it.
func failedThenRepeated(in scene) {
	t, pg, db := in.t, in.pg, in.db
	exec(t, pg, db, "CREATE SCHEMA out; CREATE TABLE out.strict (id bigint PRIMARY KEY, email text CHECK (email <> 'bad'), name text)")
	a := openAttempt(t, configOf(postgresSink(pg.URL(db)), 1))
	c := a.stage(a.batch(people(t, "public.made"), ins(1, "a", "b")), a.batch(people(t, "public.strict"), ins(1, "bad", "b")))
	for range 3 {
		wantCode(t, a.try(c), fault.SinkConstraint, "strict_email_check")
	}
	exec(t, pg, db, "ALTER TABLE out.strict DROP CONSTRAINT strict_email_check")
	if err := a.try(c); err != nil {
		t.Fatal(err)
	}
	wantLines(t, show(t, pg, db, "SELECT * FROM out.made, out.strict"), "1|a|b|1|bad|b")
}
