package sink_test

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"weir.dev/weir/itest/drive"
	"weir.dev/weir/itest/harness"
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
