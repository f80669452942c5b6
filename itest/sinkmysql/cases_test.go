package sinkmysql_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"weir.dev/weir/itest/drive"
	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink"
)

func TestCases(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, my *harness.MySQL) {
		for name, test := range map[string]func(t *testing.T, my *harness.MySQL, db string){
			"keys that differ in case or blanks": keysApart,
			"keys under a loose collation":       looseKey,
			"unique values passed on":            uniqueValues,
			"every type":                         everyType,
			"values without a form":              noForm,
			"schema changes":                     schemaChanges,
			"an attempt died behind its DDL":     diedBehindDDL,
			"a table that was there":             thereBefore,
			"a table that is not transactional":  notTransactional,
			"rows longer than a statement":       longRows,
			"the connection breaks at the end":   ambiguous,
			"a value that does not fit":          doesNotFit,
			"the ledger as people read it":       ledgerRead,
			"letters":                            replayed,
			"a letter asked for at once":         replayedAtOnce,
			"a register that is swept":           registerSwept,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, my, strings.ReplaceAll(name, " ", "_"))
			})
		}
	})
}

func keysApart(t *testing.T, my *harness.MySQL, db string) {
	s := drive.Schema(t, "postgres", "shop.people", 1, drive.Col("k*", rows.Of(rows.KindText), "text"), drive.Col("v", rows.Of(rows.KindInt32), "integer"))
	a := drive.Open(t, drive.Config(mysqlSink(my.URL(""), db), 1))
	put := func(op rows.Op, keys ...string) *rows.Batch {
		b := rows.NewBuilder(s)
		for i, k := range keys {
			b.Column(0).(*array.StringBuilder).Append(k)
			b.Column(1).(*array.Int32Builder).Append(int32(i))
			a.End(b, op)
		}
		return a.Flush(b)
	}
	a.Epoch(put(rows.OpInsert, "a", "A", "a ", "ä", `a\`, "a'"))
	a.Epoch(put(rows.OpDelete, "A", "a "))
	drive.WantLines(t, show(t, my, "SELECT concat('[', k, ']'), v FROM "+quote(db)+".people ORDER BY v"), "[a]|0", "[ä]|3", `[a\]|4`, "[a']|5")
}

func looseKey(t *testing.T, my *harness.MySQL, db string) {
	run(t, my, "CREATE DATABASE "+quote(db), "CREATE TABLE "+quote(db)+".people (k varchar(50) COLLATE utf8mb4_general_ci PRIMARY KEY, v int)")
	s := drive.Schema(t, "postgres", "shop.people", 1, drive.Col("k*", rows.Of(rows.KindText), "text"), drive.Col("v", rows.Of(rows.KindInt32), "integer"))
	a := drive.Open(t, drive.Config(mysqlSink(my.URL(""), db), 1))
	b := rows.NewBuilder(s)
	b.Column(0).(*array.StringBuilder).Append("a")
	b.Null(1)
	a.End(b, rows.OpInsert)
	drive.WantCode(t, a.Try(a.Stage(a.Flush(b))), fault.SinkWrongKey, "utf8mb4_general_ci")
}

// A duplicate of another unique index is another row's: it must not be changed in the place of the key's.
func uniqueValues(t *testing.T, my *harness.MySQL, db string) {
	run(t, my, "CREATE DATABASE "+quote(db), "CREATE TABLE "+quote(db)+".people (id bigint PRIMARY KEY, email varchar(50) UNIQUE, name text)")
	s := people(t, 1, "email", "name")
	a := drive.Open(t, drive.Config(mysqlSink(my.URL(""), db), 1))
	a.Epoch(a.Batch(s, drive.Ins(1, "a", "x"), drive.Ins(2, "b", "y"), drive.Ins(3, "c", "z")))
	a.Epoch(a.Batch(s, drive.Upd(1, "t", "x"), drive.Upd(2, "a", "y"), drive.Upd(1, "b", "x"), drive.Upd(3, "d", "?"), drive.Ins(4, "c", "new"))) // a ring, and a chain
	read := "SELECT id, email, name FROM " + quote(db) + ".people ORDER BY id"
	want := []string{"1|b|x", "2|a|y", "3|d|z", "4|c|new"}
	drive.WantLines(t, show(t, my, read), want...)
	c := a.Stage(a.Batch(s, drive.Ins(5, "a", "taken")))
	drive.WantCode(t, a.Try(c), fault.SinkConstraint, "email")
	drive.WantLines(t, show(t, my, read), want...)
	run(t, my, "ALTER TABLE "+quote(db)+".people DROP INDEX email")
	if err := a.Try(c); err != nil {
		t.Fatal(err)
	}
	drive.WantLines(t, show(t, my, read), append(want, "5|a|taken")...)
}

func everyType(t *testing.T, my *harness.MySQL, db string) {
	kinds := []rows.Type{
		rows.Of(rows.KindBool), rows.Of(rows.KindInt8), rows.Of(rows.KindUint8), rows.Of(rows.KindUint64), rows.Of(rows.KindFloat32),
		rows.Of(rows.KindFloat64), rows.Decimal(20, 4), rows.Decimal(70, 2), rows.Of(rows.KindDecimalText), rows.Of(rows.KindText),
		rows.Of(rows.KindBytes), rows.Of(rows.KindDate), rows.Of(rows.KindTime), rows.Of(rows.KindDuration), rows.Of(rows.KindTimestamp),
		rows.Of(rows.KindTimestampTZ), rows.Of(rows.KindUUID), rows.Of(rows.KindJSON), rows.List(rows.Of(rows.KindInt32)),
	}
	columns := []rows.Column{drive.Col("id*", rows.Of(rows.KindInt64), "")}
	for i, k := range kinds {
		columns = append(columns, drive.Col(string(rune('a'+i)), k, ""))
	}
	s := drive.Schema(t, "", "shop.people", 1, columns...)
	a := drive.Open(t, drive.Config(mysqlSink(my.URL(""), db), 1))
	b := rows.NewBuilder(s)
	b.Column(0).(*array.Int64Builder).Append(1)
	const moment = 1_700_000_000_123_456
	for i := range kinds {
		switch x := b.Column(i + 1).(type) {
		case *array.BooleanBuilder:
			x.Append(true)
		case *array.Int8Builder:
			x.Append(-128)
		case *array.Uint8Builder:
			x.Append(255)
		case *array.Uint64Builder:
			x.Append(math.MaxUint64)
		case *array.Float32Builder:
			x.Append(0.1)
		case *array.Float64Builder:
			x.Append(-1e-300)
		case *array.Decimal128Builder:
			x.Append(decimal128.FromI64(-123_4567))
		case *array.Decimal256Builder:
			b.Null(i + 1)
		case *array.StringBuilder:
			x.Append(map[rows.Kind]string{
				rows.KindText: "it's \\ \"ß\"\x00\n", rows.KindJSON: `{"a": [1, "x'y"]}`, rows.KindDecimalText: "123456789.123456789",
			}[kinds[i].Kind])
		case *array.BinaryBuilder:
			x.Append([]byte{0, '\'', '\\', 0xff, 0xf0})
		case *array.Date32Builder:
			x.Append(arrow.Date32(19_000))
		case *array.Time64Builder:
			x.Append(arrow.Time64(86_399_999_999))
		case *array.DurationBuilder:
			x.Append(arrow.Duration(-3_723_000_001))
		case *array.TimestampBuilder:
			x.Append(moment)
		case *array.FixedSizeBinaryBuilder:
			x.Append([]byte("0123456789abcdef"))
		case *array.ListBuilder:
			x.Append(true)
			x.ValueBuilder().(*array.Int32Builder).AppendValues([]int32{1, -2}, nil)
		}
	}
	a.End(b, rows.OpInsert)
	a.Epoch(a.Flush(b))
	drive.WantLines(t, show(t, my, "SELECT a, b, c, d, e = CAST(0.1 AS FLOAT), f = -1e-300, g, h, i, hex(j), hex(k), l, m, n, o, p, q, "+
		"JSON_EXTRACT(r, '$.a[1]'), JSON_EXTRACT(s, '$[1]') FROM "+quote(db)+".people"),
		`1|-128|255|18446744073709551615|1|1|-123.4567|null|123456789.123456789|69742773205C2022C39F22000A|`+
			`00275CFFF0|2022-01-08|23:59:59.999999|-01:02:03.000001|2023-11-14 22:13:20.123456|2023-11-14 22:13:20.123456|`+
			`30313233-3435-3637-3839-616263646566|"x'y"|-2`)
}

// What MySQL has no form for is null; what only MySQL has is kept.
func noForm(t *testing.T, my *harness.MySQL, db string) {
	s := drive.Schema(t, "", "shop.people", 1, drive.Col("id*", rows.Of(rows.KindInt64), ""), drive.Col("f", rows.Of(rows.KindFloat64), ""), drive.Col("d", rows.Of(rows.KindDate), ""),
		drive.Col("ts", rows.Of(rows.KindTimestamp), ""), drive.Col("n", rows.Of(rows.KindDecimalText), ""))
	a := drive.Open(t, drive.Config(mysqlSink(my.URL(""), db), 1))
	b := rows.NewBuilder(s)
	put := func(id int64, f float64, special string, days arrow.Date32) {
		b.Column(0).(*array.Int64Builder).Append(id)
		b.Column(1).(*array.Float64Builder).Append(f)
		if special == "" {
			b.Column(2).(*array.Date32Builder).Append(days)
			b.Null(3)
			b.Null(4)
		} else {
			b.Special(2, special)
			b.Special(3, special)
			b.Special(4, "NaN")
		}
		a.End(b, rows.OpInsert)
	}
	put(1, math.NaN(), "infinity", 0)
	put(2, math.Inf(-1), "0000-00-00", 0)
	put(3, 0, "2023-02-31", 0)
	put(4, 0, "", -800_000) // before Christ
	a.Epoch(a.Flush(b))
	drive.WantLines(t, show(t, my, "SELECT id, f, CAST(d AS char), CAST(ts AS char), n FROM "+quote(db)+".people ORDER BY id"),
		"1|null|null|null|NaN", "2|null|0000-00-00|0000-00-00 00:00:00.000000|NaN", "3|0|2023-02-31|2023-02-31 00:00:00.000000|NaN",
		"4|0|null|null|null")
}

func schemaChanges(t *testing.T, my *harness.MySQL, db string) {
	target := mysqlSink(my.URL(""), db)
	target.SchemaChange = spec.Evolve
	a := drive.Open(t, drive.Config(target, 1))
	one := people(t, 1, "email", "name")
	a.Epoch(a.Batch(one, drive.Ins(1, "a", "x")))
	two := people(t, 2, "mail", "name", "note") // renamed by identity, and a new one
	// Rows of the old form, and of the new one, in one epoch: the table has changed before the first of them.
	a.Epoch(a.Batch(one, drive.Upd(1, "b", "?"), drive.Ins(2, "c", "y")), a.Batch(two, drive.Ins(3, "d", "z", "n")))
	read := "SELECT * FROM " + quote(db) + ".people ORDER BY id"
	drive.WantLines(t, show(t, my, read), "1|b|x|null", "2|c|y|null", "3|d|z|n")
	three := drive.Schema(t, "postgres", "shop.people", 3, two.Column(0), two.Column(1), two.Column(3))
	a.Epoch(a.Batch(three, drive.Upd(1, "e", "m")))
	drive.WantLines(t, show(t, my, read), "1|e|m", "2|c|null", "3|d|n")
}

// What an attempt has changed about a table before it died is not changed again, nor taken back by rows of the old form.
func diedBehindDDL(t *testing.T, my *harness.MySQL, db string) {
	one, two := people(t, 1, "email"), people(t, 2, "email", "note")
	cfg := drive.Config(mysqlSink(my.URL(""), db), 1)
	a := drive.Open(t, cfg)
	a.Epoch(a.Batch(one, drive.Ins(1, "a")))
	c := a.Stage(a.Batch(one, drive.Ins(2, "b")), a.Batch(two, drive.Ins(3, "c", "n")))
	// A foreign lock lets the transaction fail, behind the DDL.
	conn, err := my.Connect(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Execute("BEGIN"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Execute("SELECT * FROM weir_ledger FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := a.Committer.Commit(ctx, c); fault.CodeOf(err) != fault.SinkBusy {
		t.Fatalf("commit under a foreign lock: %v, want SINK_BUSY", err)
	}
	if _, err := conn.Execute("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	drive.WantLines(t, show(t, my, "SELECT * FROM "+quote(db)+".people ORDER BY id"), "1|a|null")
	cfg.Fence = 2
	b := drive.Open(t, cfg)
	if err := b.Try(c); err != nil {
		t.Fatal(err)
	}
	drive.WantLines(t, show(t, my, "SELECT * FROM "+quote(db)+".people ORDER BY id"), "1|a|null", "2|b|null", "3|c|n")
}

func registerSwept(t *testing.T, my *harness.MySQL, db string) {
	run(t, my, "CREATE DATABASE "+quote(db))
	drive.Swept(t, database{my, db})
}

func thereBefore(t *testing.T, my *harness.MySQL, db string) {
	run(t, my, "CREATE DATABASE "+quote(db), "CREATE TABLE "+quote(db)+".people (id bigint PRIMARY KEY, email text, more int DEFAULT 7)",
		"INSERT INTO "+quote(db)+".people VALUES (9, 'old', 1)")
	s := people(t, 1, "email")
	target := mysqlSink(my.URL(""), db)
	a := drive.Open(t, drive.Config(target, 1))
	c := a.Stage(a.Batch(s, drive.Ins(1, "a")))
	drive.WantCode(t, a.Try(c), fault.SinkNotEmpty, db+".people")
	target.Config.(*spec.MySQLSink).Existing = spec.ExistingKeep
	b := drive.Open(t, drive.Config(target, 2))
	if err := b.Try(c); err != nil {
		t.Fatal(err)
	}
	drive.WantLines(t, show(t, my, "SELECT * FROM "+quote(db)+".people ORDER BY id"), "1|a|7", "9|old|1")
}

func notTransactional(t *testing.T, my *harness.MySQL, db string) {
	run(t, my, "CREATE DATABASE "+quote(db), "CREATE TABLE "+quote(db)+".people (id bigint PRIMARY KEY, email text) ENGINE = MyISAM")
	a := drive.Open(t, drive.Config(mysqlSink(my.URL(""), db), 1))
	drive.WantCode(t, a.Try(a.Stage(a.Batch(people(t, 1, "email"), drive.Ins(1, "a")))), fault.SinkEngine, "MyISAM")
}

func longRows(t *testing.T, my *harness.MySQL, db string) {
	s := people(t, 1, "email")
	a := drive.Open(t, drive.Config(mysqlSink(my.URL(""), db), 1))
	a.Epoch(a.Batch(s, drive.Ins(1, strings.Repeat("'", 3<<20)), drive.Ins(2, strings.Repeat("x", 900<<10)), drive.Ins(3, strings.Repeat("y", 900<<10)), drive.Ins(4, "-")))
	drive.WantLines(t, show(t, my, "SELECT id, length(email) FROM "+quote(db)+".people ORDER BY id"), "1|3145728", "2|921600", "3|921600", "4|null")
	c := a.Stage(a.Batch(s, drive.Ins(5, strings.Repeat("z", 70<<20))))
	drive.WantCode(t, a.Try(c), fault.SinkRow, "max_allowed_packet")
}

// The server has the COMMIT, or it has not, and the client hears nothing: either way the epoch is there once.
func ambiguous(t *testing.T, my *harness.MySQL, db string) {
	s := people(t, 1, "email")
	p := harness.StartCutter(t, my.Port)
	a := drive.Open(t, drive.Config(mysqlSink(p.URL(my.URL("")), db), 1))
	a.Epoch(a.Batch(s, drive.Ins(1, "a")))
	p.CutAfter("COMMIT", false)
	a.Epoch(a.Batch(s, drive.Ins(2, "b")))
	p.CutAfter("COMMIT", true)
	c := a.Stage(a.Batch(s, drive.Ins(3, "c")))
	drive.WantCode(t, a.Try(c), fault.SinkUnreachable)
	if err := a.Try(c); err != nil {
		t.Fatal(err)
	}
	if n := p.Cuts(); n != 2 {
		t.Errorf("%d cuts", n)
	}
	drive.WantLines(t, show(t, my, "SELECT * FROM "+quote(db)+".people ORDER BY id"), "1|a", "2|b", "3|c")
	drive.WantLines(t, show(t, my, "SELECT epoch, `rows` FROM "+quote(db)+".weir_ledger_log ORDER BY epoch"), "1|1", "2|1", "3|1")
}

// A value that is too long, or would be rounded, ends the commit, and its text is in no error.
func doesNotFit(t *testing.T, my *harness.MySQL, db string) {
	run(t, my, "CREATE DATABASE "+quote(db), "CREATE TABLE "+quote(db)+".people (id bigint PRIMARY KEY, email varchar(5))")
	a := drive.Open(t, drive.Config(mysqlSink(my.URL(""), db), 1))
	err := a.Try(a.Stage(a.Batch(people(t, 1, "email"), drive.Ins(1, "sesame open"))))
	drive.WantCode(t, err, fault.SinkRow, "email")
	if strings.Contains(err.Error(), "sesame") {
		t.Errorf("the error quotes the row: %v", err)
	}
}

func ledgerRead(t *testing.T, my *harness.MySQL, db string) {
	target := mysqlSink(my.URL(""), db)
	l, kept, err := sink.ReadLedger(t.Context(), "j", target, drive.Resolve)
	if err != nil || !kept || l.Life != "" {
		t.Fatalf("ledger of a target without one: %+v, %v", l, err)
	}
	a := drive.Open(t, drive.Config(target, 1))
	s := people(t, 1, "email")
	for i := range int64(3) {
		a.Epoch(a.Batch(s, drive.Ins(i, "a")))
	}
	l, _, err = sink.ReadLedger(t.Context(), "j", target, drive.Resolve)
	if err != nil || l.Life != "lifeoftests" || len(l.Log) != 3 || l.Ref != a.Last || l.Log[2].Rows != 1 {
		t.Fatalf("ledger %+v, %v", l, err)
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
}
