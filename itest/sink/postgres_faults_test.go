package sink_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/drive"
	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/fault"
)

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
