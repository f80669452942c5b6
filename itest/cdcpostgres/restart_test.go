package cdcpostgres

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/rows"
)

// confirmed is the slot's confirmed_flush_lsn.
func (j *job) confirmed(t *testing.T) position.LSN {
	t.Helper()
	text, err := harness.Value[string](t.Context(), j.pg, j.database,
		"SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE database = current_database()")
	if err != nil {
		t.Fatal(err)
	}
	lsn, err := position.ParseLSN(text)
	if err != nil {
		t.Fatal(err)
	}
	return lsn
}

// replied is when the server last had a status message from the job's reader.
func (j *job) replied(t *testing.T) string {
	t.Helper()
	at, err := harness.Value[string](t.Context(), j.pg, j.database,
		"SELECT coalesce(max(reply_time)::text, '') FROM pg_stat_replication WHERE application_name LIKE 'weir:"+j.life+":%'")
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// eventually asks every 50 ms until cond holds.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: not in %s", what, patience)
		}
	}
}

func (j *job) session(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := j.pg.Connect(t.Context(), j.database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func execOn(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// O07: a transaction that began before and commits after the stored position is sent whole, what lies before it never
// again.
func TestInterleavedTransactions(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.*")
	j.exec(t, "CREATE TABLE long (id int PRIMARY KEY); CREATE TABLE short (id int PRIMARY KEY)")
	a := j.start(t)
	conn := j.session(t)
	execOn(t, conn, "BEGIN; INSERT INTO long SELECT generate_series(1, 5)")
	j.exec(t, "INSERT INTO short VALUES (90)")
	wantRows(t, a.take(t, 1), "insert public.short id=90")
	a.confirm(t, a.takeEpoch(t))
	execOn(t, conn, "INSERT INTO long SELECT generate_series(6, 10)")
	a.stop()
	execOn(t, conn, "COMMIT")
	a = j.start(t)
	got := a.take(t, 10)
	for i, c := range got {
		if want := fmt.Sprintf("insert public.long id=%d", i+1); c.String() != want {
			t.Errorf("row %d is %s, want %s", i, c, want)
		}
	}
	j.exec(t, "INSERT INTO short VALUES (91)")
	wantRows(t, a.take(t, 1), "insert public.short id=91")
}

// O08: a logical message in a transaction moves no position.
func TestLogicalMessage(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.*")
	j.exec(t, "CREATE TABLE t (id int PRIMARY KEY)")
	a := j.start(t)
	conn := j.session(t)
	execOn(t, conn, "BEGIN; SELECT pg_logical_emit_message(true, 'x', 'y')")
	execOn(t, conn, "SELECT pg_logical_emit_message(false, 'x', 'y')")
	a.confirm(t, a.takeEpoch(t))
	execOn(t, conn, "INSERT INTO t VALUES (1); COMMIT")
	a.stop()
	a = j.start(t)
	wantRows(t, a.take(t, 1), "insert public.t id=1")
}

// O09: what is confirmed is the position of the committed epoch, not where the reader is by then. What came after it is
// read again.
func TestConfirmsOnlyCommittedEpochs(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.*")
	j.exec(t, "CREATE TABLE t (id int PRIMARY KEY)")
	a := j.start(t)
	before := j.confirmed(t)
	j.exec(t, "INSERT INTO t VALUES (1)")
	a.take(t, 1)
	cut := a.takeEpoch(t)
	j.exec(t, "INSERT INTO t SELECT generate_series(2, 101)")
	a.take(t, 100)
	// O15: neither durable nor read on is committed, however many keepalives are answered.
	for range 2 {
		last := j.replied(t)
		eventually(t, "a status message", func() bool { return j.replied(t) != last })
	}
	if got := j.confirmed(t); got != before {
		t.Fatalf("confirmed %s without a committed epoch, was %s", got, before)
	}
	a.confirm(t, cut)
	at, err := position.ParseLSN(cut.Position.Fields["lsn"])
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the epoch is confirmed", func() bool { return j.confirmed(t) == at })
	a.stop()
	a = j.start(t)
	if got := a.take(t, 100); got[0].String() != "insert public.t id=2" || got[99].String() != "insert public.t id=101" {
		t.Fatalf("rows after the epoch begin with %s and end with %s", got[0], got[99])
	}
}

// O16: a blocked consumer stops no status message.
func TestBlockedConsumerKeepsTheConnection(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.*")
	j.exec(t, "CREATE TABLE t (id int PRIMARY KEY, v text)")
	open := make(chan struct{})
	blocked := make(chan struct{}, 1)
	j.onEmit = func(*rows.Batch) {
		select {
		case blocked <- struct{}{}:
		default:
		}
		<-open
	}
	a := j.start(t)
	j.exec(t, "INSERT INTO t SELECT g, repeat('x', 500) FROM generate_series(1, 100000) g")
	<-blocked
	pid := func() string {
		v, err := harness.Value[string](t.Context(), j.pg, j.database, "SELECT coalesce(string_agg(pid::text, ','), '') FROM pg_stat_replication WHERE application_name LIKE 'weir:"+j.life+":%'")
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	first := pid()
	wait := time.NewTimer(8 * time.Second) // the server gives up after 5
	<-wait.C
	if now := pid(); first == "" || now != first {
		t.Errorf("the walsender was %q, is %q", first, now)
	}
	close(open)
	a.take(t, 100_000)
}

// O14: the slot follows although the captured table is quiet, because idle epochs confirm what keepalives say.
func TestIdleTableKeepsNoLog(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.t")
	j.exec(t, "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE noise (v text)")
	a := j.start(t)
	a.confirm(t, a.takeEpoch(t))
	j.exec(t, "INSERT INTO noise SELECT repeat('x', 1000) FROM generate_series(1, 20000)")
	written, err := harness.Value[string](t.Context(), j.pg, j.database, "SELECT pg_current_wal_insert_lsn()::text")
	if err != nil {
		t.Fatal(err)
	}
	end, err := position.ParseLSN(written)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the slot follows", func() bool {
		a.confirm(t, a.takeEpoch(t))
		return j.confirmed(t) >= end
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.status.Input {
		t.Error("what belongs to no captured table counts as input")
	}
}

// A transaction that was cut goes on exactly where it was, in the middle of a statement, also a key change.
func TestTornTransaction(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.*")
	j.cut, j.batch = 1000, 4<<10
	j.exec(t, "CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t SELECT g, repeat('x', 100) FROM generate_series(1, 30000) g")
	a := j.start(t)
	gate := make(chan struct{}, 1000)
	j.onEmit = func(*rows.Batch) { <-gate }
	for range 60 { // some thousands of rows pass
		gate <- struct{}{}
	}
	j.exec(t, "UPDATE t SET id = id + 100000")
	a.until(t, "the first rows", func() bool { return a.batches >= 60 })
	go func() {
		for range 100_000 {
			select {
			case gate <- struct{}{}:
			case <-t.Context().Done():
				return
			}
		}
	}()
	cut := a.takeEpoch(t)
	if !cut.Torn {
		t.Fatalf("the cut at %s is not torn", cut.Position)
	}
	a.confirm(t, cut)
	a.mu.Lock()
	first := append([]change(nil), a.rows...)
	a.mu.Unlock()
	a.stop()
	if n := len(first); n == 0 || n >= 60_000 {
		t.Fatalf("%d rows before the cut", n)
	}
	// Rows emitted behind the cut belong to no epoch; the ordinal of the cut says how many came before it.
	var ord int
	if _, err := fmt.Sscan(cut.Position.Fields["ord"], &ord); err != nil {
		t.Fatal(err)
	}
	first = first[:ord]
	j.onEmit = nil
	a = j.start(t)
	rest := a.take(t, 60_000-len(first))
	all := append(first, rest...)
	for i, c := range all {
		op, id := rows.OpDelete, i/2+1
		if i%2 == 1 {
			op, id = rows.OpInsert, id+100_000
		}
		if c.meta.Op != op || c.cells["id"] != fmt.Sprint(id) || c.meta.Ord != uint32(i) || c.meta.Txn != all[0].meta.Txn {
			t.Fatalf("row %d (cut at %d) is %s %s, _ord %d", i, len(first), c.meta.Op, c.cells["id"], c.meta.Ord)
		}
	}
	j.exec(t, "INSERT INTO t VALUES (1, 'next')")
	wantRows(t, a.take(t, 1), "insert public.t id=1 v=next")
}

// A reader that was stopped holds the slot; its successor ends it. A stranger is left alone and named.
func TestTakeover(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.*")
	j.exec(t, "CREATE TABLE t (id int PRIMARY KEY)")
	zombie := j.start(t)
	j.exec(t, "INSERT INTO t VALUES (1)")
	zombie.take(t, 1)
	zombie.takeEpoch(t)
	next := j.start(t)
	j.exec(t, "INSERT INTO t VALUES (2)")
	wantRows(t, next.take(t, 1), "insert public.t id=2")
	if err := zombie.failure(t); fault.ClassOf(err) != fault.Transient {
		t.Errorf("the zombie ends with %v", err)
	}

	// The zombie comes back: it must not take the slot from its successor.
	next.takeEpoch(t)
	j.fence -= 2
	back, err := j.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	j.fence += 2
	t.Cleanup(back.stop)
	f := faultOf(t, back.failure(t), "WEIR-PG-011")
	if !strings.Contains(f.Why, "weir:"+j.life+":db:") {
		t.Errorf("the holder is not named: %s", f.Why)
	}
	j.exec(t, "INSERT INTO t VALUES (3)")
	wantRows(t, next.take(t, 1), "insert public.t id=3")
}

// A drain ends at what the server held when it was asked for, also when nothing is ever written again.
func TestDrain(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.*")
	j.exec(t, "CREATE TABLE t (id int PRIMARY KEY)")
	a := j.start(t)
	j.exec(t, "INSERT INTO t SELECT generate_series(1, 5000)")
	a.reads.call(t.Context(), func() {
		if err := a.reader.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
	a.until(t, "the end", func() bool { return a.status.Drained })
	a.take(t, 5000)
	j.exec(t, "INSERT INTO t VALUES (0)")
	a.takeEpoch(t)
	a.until(t, "the end", func() bool { return a.status.Drained })
	a.mu.Lock()
	n := len(a.rows)
	a.mu.Unlock()
	if n != 0 {
		t.Errorf("%d rows after the end", n)
	}
	a.stop()
	a = j.start(t)
	wantRows(t, a.take(t, 1), "insert public.t id=0")
}

// A server that stops is not held up by what has not been confirmed.
func TestServerStopsAndComesBack(t *testing.T) {
	t.Parallel()
	pg := harness.StartPostgres(t, harness.PostgresConfig{})
	j := newJob(t, pg, "public.*")
	j.exec(t, "CREATE TABLE t (id int PRIMARY KEY)")
	a := j.start(t)
	j.exec(t, "INSERT INTO t VALUES (1)")
	a.take(t, 1)
	a.takeEpoch(t)
	j.exec(t, "INSERT INTO t VALUES (2)")
	a.take(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := pg.Stop(ctx); err != nil {
		t.Fatalf("stop the server with an unconfirmed row: %v", err)
	}
	wantFault(t, a.failure(t), "WEIR-PG-024")
	a.stop()
	_, err := j.open(t.Context())
	wantFault(t, err, "WEIR-PG-001")
	if err := pg.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	a = j.start(t)
	wantRows(t, a.take(t, 1), "insert public.t id=2")
}

func TestReport(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.*")
	j.exec(t, "CREATE TABLE t (id int PRIMARY KEY)")
	a := j.start(t)
	j.exec(t, "INSERT INTO t VALUES (1), (2)")
	a.take(t, 2)
	a.takeEpoch(t)
	eventually(t, "the head is observed and reached", func() bool {
		r := a.reader.Report()
		head, ok := r.Head.Get()
		consumed, _ := r.Consumed.Get()
		return ok && len(r.Tables) == 1 && consumed.Fields["lsn"] >= head.Position.Fields["lsn"]
	})
	r := a.reader.Report()
	if n, _ := r.Rows.Get(); n != 2 {
		t.Errorf("%d rows are reported", n)
	}
	if at, ok := r.LastEvent.Get(); !ok || time.Since(at) > time.Minute {
		t.Errorf("the last event is reported as %v, %t", at, ok)
	}
	if n, ok := r.RetainedBytes.Get(); !ok || n < 0 {
		t.Errorf("retained bytes are reported as %d, %t", n, ok)
	}
}
