package sink_test

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/drive"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
)

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
