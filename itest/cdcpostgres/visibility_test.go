package cdcpostgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
)

const (
	// gapRows in chunks of gapChunk.
	gapRows, gapChunk = 40, 4
	// gapChange touches a row of a chunk that is read before the middle of the copy, and of one that is read behind it.
	gapChange = `UPDATE t SET v = v + 100 WHERE id IN (1, 2, 37); DELETE FROM t WHERE id IN (3, 38);
		UPDATE t SET id = id + 1000 WHERE id IN (4, 39); INSERT INTO t VALUES (2000, 2000)`
)

// scene is a copy that is halted at its first chunk, and again in its middle.
type scene struct {
	*job

	conn    *pgx.Conn // the session of the transaction in question
	waiting []waiter
}

// waiter is a session whose commit is in the log and waits for a standby; nobody sees its transaction.
type waiter struct {
	pid  uint32
	done chan error
}

// step is something done to a scene.
type step func(*testing.T, *scene)

// run is a step of the session of the transaction in question.
func run(sql string) step {
	return func(t *testing.T, s *scene) { t.Helper(); execOn(t, s.conn, sql) }
}

// hang lets transactions, each of a session of its own, wait for a standby under a kind of synchronous_commit.
func hang(level string, transactions ...string) step {
	return func(t *testing.T, s *scene) {
		t.Helper()
		for _, sql := range transactions {
			s.begin(t, level, sql)
		}
	}
}

// begin runs a transaction and returns when the server says that it waits for a standby.
func (s *scene) begin(t *testing.T, level, sql string) {
	t.Helper()
	conn, ctx := s.session(t), t.Context()
	w := waiter{pid: conn.PgConn().PID(), done: make(chan error, 1)}
	execOn(t, conn, "SET synchronous_commit = "+level)
	go func() {
		_, err := conn.Exec(ctx, sql)
		w.done <- err
	}()
	eventually(t, "the wait for a standby", func() bool {
		at, err := harness.Value[string](ctx, s.pg, s.database, "SELECT coalesce(wait_event, '') FROM pg_stat_activity WHERE pid = $1", w.pid)
		return err == nil && at == "SyncRep"
	})
	s.waiting = append(s.waiting, w)
}

// visible waits for what hung to be visible.
func (s *scene) visible(t *testing.T) {
	t.Helper()
	for _, w := range s.waiting {
		select {
		case err := <-w.done:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(patience):
			t.Fatal("a transaction waits for its standby still")
		}
	}
}

// cancel ends the wait for a standby without one.
func cancel(t *testing.T, s *scene) {
	t.Helper()
	for _, w := range s.waiting {
		s.exec(t, fmt.Sprintf("SELECT pg_cancel_backend(%d)", w.pid))
	}
	s.visible(t)
}

// gap says what transactions do around the chunks of a copy.
type gap struct {
	before string // in the session, before the slot is there
	// What happens while the first chunks are emitted, in the middle, and behind the last.
	first, middle, last step
}

const (
	gapHalves = "BEGIN; " + gapChange + "; COMMIT"
	gapSaved  = `BEGIN; SAVEPOINT a; UPDATE t SET v = -1 WHERE id IN (5, 36); ROLLBACK TO a; SAVEPOINT b; ` + gapChange + `; RELEASE b;
		DO $$ BEGIN BEGIN INSERT INTO t VALUES (3000, 0); UPDATE t SET v = -1; INSERT INTO t VALUES (3000, 1);
		EXCEPTION WHEN unique_violation THEN INSERT INTO t VALUES (3001, 1); UPDATE t SET v = 7 WHERE id = 35; END; END $$`
)

// prepared prepares a transaction under a name.
func prepared(name string) step {
	return run("BEGIN; " + gapChange + "; PREPARE TRANSACTION '" + name + "'")
}

// A transaction is logged before it is visible, and chunks read in between do not have it although the log was past it:
// O01 as a kind. Whatever a transaction does around the chunks, each row comes exactly once, as read or as change.
func TestVisibilityGap(t *testing.T) {
	t.Parallel()
	pg := harness.StartPostgres(t, harness.PostgresConfig{Settings: map[string]string{
		"max_prepared_transactions": "10", "synchronous_standby_names": "paused", "synchronous_commit": "local",
	}})
	// One after the other: a copy waits for every transaction of the server that is open when it begins.
	for name, g := range map[string]gap{
		"standby answers behind the copy":      {first: hang("on", gapHalves), last: cancel},
		"standby answers in the middle":        {first: hang("on", gapHalves), middle: cancel},
		"standby is asked in the middle":       {middle: hang("on", gapHalves), last: cancel},
		"standby answers a prepared one":       {first: prepared("s"), middle: hang("on", "COMMIT PREPARED 's'"), last: cancel},
		"standby answers one with savepoints":  {first: hang("on", gapSaved+"; COMMIT"), middle: cancel},
		"prepared, committed behind the copy":  {first: prepared("a"), last: run("COMMIT PREPARED 'a'")},
		"prepared, committed in the middle":    {first: prepared("b"), middle: run("COMMIT PREPARED 'b'")},
		"prepared, rolled back in the middle":  {first: prepared("c"), middle: run("ROLLBACK PREPARED 'c'")},
		"savepoints, committed behind":         {first: run(gapSaved), last: run("COMMIT")},
		"savepoints, committed in the middle":  {first: run(gapSaved), middle: run("COMMIT")},
		"begun in the middle":                  {middle: run("BEGIN; " + gapChange), last: run("COMMIT")},
		"begun without an id before the slot":  {before: "BEGIN; SELECT count(*) FROM t", first: run(gapChange), middle: run("COMMIT")},
		"rolled back in the middle":            {first: run("BEGIN; " + gapChange), middle: run("ROLLBACK")},
		"rolled back behind":                   {first: run("BEGIN; " + gapChange), last: run("ROLLBACK")},
		"committed at once":                    {first: run(gapHalves)},
		"committed at once, in the middle":     {middle: run(gapHalves)},
		"a key moves to and fro in the middle": {first: run("BEGIN; " + gapChange), middle: run("UPDATE t SET id = id - 1000 WHERE id BETWEEN 1000 AND 1999; COMMIT")},
	} {
		t.Run(name, func(t *testing.T) { g.play(t, pg) })
	}
}

// play copies a table in chunks while the transactions do what they do, and judges what came.
func (g gap) play(t *testing.T, pg *harness.Postgres) {
	t.Helper()
	j := newJob(t, pg, "public.t")
	j.source.Snapshot = spec.Snapshot{Mode: spec.SnapshotInitial, ChunkRows: gapChunk}
	j.exec(t, fmt.Sprintf("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t SELECT g, g FROM generate_series(1, %d) g", gapRows))
	s := &scene{job: j, conn: j.session(t)}
	if g.before != "" {
		execOn(t, s.conn, g.before)
	}
	do := func(f step) {
		t.Helper()
		if f != nil {
			f(t, s)
		}
	}
	arrived, gate := make(chan struct{}), make(chan struct{})
	j.onEmit = func(*rows.Batch) {
		select {
		case arrived <- struct{}{}:
			<-gate
		case <-gate:
		}
	}
	a := j.start(t)
	for i := range gapRows / gapChunk / 2 {
		a.halted(t, arrived)
		if i == 0 {
			do(g.first)
		}
		gate <- struct{}{}
	}
	a.halted(t, arrived)
	do(g.middle)
	close(gate)
	a.until(t, "the copy", func() bool { return len(a.rows) >= gapRows-2 })
	do(g.last)
	s.exactly(t, a)
}

// So is the catalog: what a transaction did to a table is not there yet when its rows come out of the log. Read too early, two of
// the columns look renamed, and the job goes on with a target whose rows are wrong.
func TestVisibilityGapOfColumns(t *testing.T) {
	t.Parallel()
	pg := harness.StartPostgres(t, harness.PostgresConfig{Settings: map[string]string{
		"synchronous_standby_names": "paused", "synchronous_commit": "local",
	}})
	j := newJob(t, pg, "public.t")
	j.exec(t, "CREATE TABLE t (id int PRIMARY KEY, v text, n int); INSERT INTO t VALUES (1, 'v', 1)")
	s := &scene{job: j}
	a := j.start(t)
	j.exec(t, "INSERT INTO t VALUES (2, 'v', 2)")
	a.take(t, 1)
	s.begin(t, "on", "ALTER TABLE t ALTER n TYPE text USING 'n' || n, DROP v, ADD w int DEFAULT 7; INSERT INTO t VALUES (3, 'n3', 3)")
	eventually(t, "the transaction sent to the reader", func() bool {
		sent, err := harness.Value[bool](t.Context(), pg, j.database, "SELECT bool_and(sent_lsn >= pg_current_wal_flush_lsn()) FROM pg_stat_replication")
		return err == nil && sent
	})
	if err := harness.Pause(t.Context(), 200*time.Millisecond); err != nil { // for whoever does not wait
		t.Fatal(err)
	}
	cancel(t, s)
	if err := a.failure(t); fault.CodeOf(err) != fault.PGTableDiffers {
		t.Errorf("the attempt ended by %v", err)
	}
}

// halted waits for a chunk to be emitted.
func (a *attempt) halted(t *testing.T, arrived <-chan struct{}) {
	t.Helper()
	select {
	case <-arrived:
	case <-time.After(patience):
		a.mu.Lock()
		defer a.mu.Unlock()
		t.Fatalf("no chunk came in %s; the attempt: %v", patience, a.err)
	}
}

// A transaction that is open when the slot is made: the server makes it wait, and the log begins behind it.
func TestTransactionSinceBeforeTheSlot(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]string{"committed": "COMMIT", "rolled back": "ROLLBACK"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, server, "public.t")
			j.source.Snapshot = spec.Snapshot{Mode: spec.SnapshotInitial, ChunkRows: gapChunk}
			j.exec(t, fmt.Sprintf("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t SELECT g, g FROM generate_series(1, %d) g", gapRows))
			s := &scene{job: j, conn: j.session(t)}
			execOn(t, s.conn, "BEGIN; "+gapChange)
			opened := make(chan struct{})
			ended := make(chan error, 1)
			ctx := t.Context()
			go func() {
				ended <- func() error {
					defer s.conn.Exec(ctx, end) //nolint:errcheck // what it did is in the table
					return awaitLock(ctx, j, opened)
				}()
			}()
			a := j.start(t)
			close(opened)
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			s.exactly(t, a)
		})
	}
}

// awaitLock returns when a session of the server waits for the end of a transaction; it is an error when the source is open
// first.
func awaitLock(ctx context.Context, j *job, opened <-chan struct{}) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		n, err := harness.Value[int](ctx, j.pg, j.database, `SELECT count(*)::int FROM pg_locks l JOIN pg_stat_activity a USING (pid)
			WHERE NOT l.granted AND l.locktype = 'transactionid' AND a.datname = current_database()`)
		if err != nil || n > 0 {
			return err
		}
		select {
		case <-opened:
			return errors.New("the slot was made beside an open transaction")
		case <-tick.C:
		}
	}
}

// key is the id of a change; the blanks that pad it are not in the server's text of a char(n) as text.
func key(c change) string { return strings.TrimRight(c.cells["id"], " ") }

// exactly takes epochs until a last change has come, and holds everything that came against the database: no row is read or
// inserted that is there, none changed or deleted that is not.
func (s *scene) exactly(t *testing.T, a *attempt) {
	t.Helper()
	const insert, update = "INSERT INTO t VALUES ('9999', 0)", "UPDATE t SET v = v + 1 WHERE id = '9999'"
	s.exec(t, insert)
	copied := false
	came := func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		n := len(a.rows)
		if n == 0 || key(a.rows[n-1]) != "9999" {
			return false
		}
		if a.rows[n-1].meta.Op != rows.OpRead {
			return true
		}
		if !copied { // the last chunk had it already: only a change of the log is behind all others
			copied = true
			s.exec(t, update)
		}
		return false
	}
	harness.Await(t, patience, "the last change", func(context.Context) error {
		if came() {
			return nil
		}
		a.mu.Lock()
		err := a.err
		a.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		a.confirm(t, a.takeEpoch(t))
		return errors.New("it has not come")
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	got := make(map[string]string)
	for i, c := range a.rows {
		id := key(c)
		_, there := got[id]
		fresh := c.meta.Op == rows.OpRead || c.meta.Op == rows.OpInsert
		if there == fresh {
			t.Fatalf("row %d of all that came: %s, which is there: %t; all:\n  %s", i, c, there, strings.Join(texts(a.rows), "\n  "))
		}
		if c.meta.Op == rows.OpDelete {
			delete(got, id)
			continue
		}
		got[id] = c.cells["v"]
	}
	conn := s.session(t)
	found, err := conn.Query(t.Context(), "SELECT id::text, v::text FROM t")
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[string]string)
	var id, v string
	if _, err := pgx.ForEachRow(found, []any{&id, &v}, func() error { want[id] = v; return nil }); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(got, want) {
		t.Fatalf("the rows are %v, want %v; all that came:\n  %s", got, want, strings.Join(texts(a.rows), "\n  "))
	}
}
