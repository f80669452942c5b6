package cdcpostgres

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
)

// copying makes the job copy its tables, in chunks of so many rows.
func (j *job) copying(chunkRows int) *job {
	j.source.Snapshot = spec.Snapshot{Mode: spec.SnapshotInitial, ChunkRows: chunkRows}
	return j
}

// through takes epochs until a row has come that ends so; the log follows only behind committed chunks.
func (a *attempt) through(t *testing.T, row string) []change {
	t.Helper()
	harness.Await(t, patience, row, func(context.Context) error {
		a.mu.Lock()
		came := slices.ContainsFunc(a.rows, func(c change) bool { return strings.HasSuffix(c.String(), row) })
		err := a.err
		a.mu.Unlock()
		switch {
		case came:
			return nil
		case err != nil:
			t.Fatal(err)
		}
		a.confirm(t, a.takeEpoch(t))
		return errors.New("it has not come")
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.rows)
}

// O02: rows of a copy that no epoch has are read again, although the slot was there; those of a committed one are not.
func TestCrashBetweenCopyAndEpoch(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.t").copying(3)
	j.exec(t, "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 10)")
	read := func(a *attempt) {
		t.Helper()
		for i, c := range a.take(t, 10) {
			if c.meta.Op != rows.OpRead {
				t.Errorf("row %d is %s", i, c)
			}
		}
	}
	a := j.start(t)
	read(a)
	a.stop()
	a = j.start(t)
	read(a)
	a.confirm(t, a.takeEpoch(t))
	a.stop()
	a = j.start(t)
	j.exec(t, "INSERT INTO t VALUES (11)")
	wantRows(t, a.through(t, "insert public.t id=11"), "insert public.t id=11")
}

// O06: a copy takes longer than the server lets a session be idle or a sender be silent; the log begins all the same.
func TestCopyLongerThanTheServersPatience(t *testing.T) {
	t.Parallel()
	j := newJob(t, harness.StartPostgres(t, harness.PostgresConfig{Settings: map[string]string{
		"wal_sender_timeout": "1s", "idle_session_timeout": "500ms",
	}}), "public.t").copying(2)
	j.exec(t, "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 8)")
	ctx := t.Context()
	j.onEmit = func(b *rows.Batch) {
		if b.Op(0) == rows.OpRead {
			_ = harness.Pause(ctx, time.Second) // it ends early only with the test
		}
	}
	a := j.start(t)
	a.until(t, "the copy", func() bool { return len(a.rows) == 8 })
	j.exec(t, "INSERT INTO t VALUES (9)")
	if got := a.through(t, "insert public.t id=9"); len(got) != 9 {
		t.Errorf("the rows are %v", texts(got))
	}
}

// O34: names are names, in the copy too: an underscore stands for itself.
func TestUnderscoreIsNoWildcard(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "test_.tab").copying(100)
	j.exec(t, `CREATE SCHEMA test_; CREATE SCHEMA test1; CREATE TABLE test_.tab (id int PRIMARY KEY, a text);
		CREATE TABLE test1.tab (id int PRIMARY KEY, b text, c text); INSERT INTO test_.tab VALUES (1, 'x'); INSERT INTO test1.tab VALUES (1, 'y', 'z')`)
	a := j.start(t)
	wantRows(t, a.take(t, 1), "read test_.tab a=x id=1")
	j.exec(t, "INSERT INTO test1.tab VALUES (2, 'y', 'z'); INSERT INTO test_.tab VALUES (2, 'w')")
	wantRows(t, a.through(t, "insert test_.tab a=w id=2"), "insert test_.tab a=w id=2")
}

// O43: a generated column, which the log does not carry, is in no row of the copy either.
func TestGeneratedColumn(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.t").copying(100)
	j.exec(t, "CREATE TABLE t (id int PRIMARY KEY, a int, g int GENERATED ALWAYS AS (a * 2) STORED); INSERT INTO t VALUES (1, 1)")
	a := j.start(t)
	wantRows(t, a.take(t, 1), "read public.t a=1 id=1")
	j.exec(t, "UPDATE t SET a = 2")
	wantRows(t, a.through(t, "update_after public.t a=2 id=1"), "update_after public.t a=2 id=1")
}

// O42, O45: a row leaves a chunk that was not read for one that was, and the log does not have all of it: the table is
// copied anew, and no row comes without a value.
func TestMovedWithoutItsValue(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.t").copying(2)
	big := strings.Repeat("x", 20_000)
	j.exec(t, "CREATE TABLE t (id int PRIMARY KEY, big text); ALTER TABLE t ALTER big SET STORAGE EXTERNAL; INSERT INTO t SELECT g * 10, '"+big+"' FROM generate_series(1, 12) g")
	arrived, gate := make(chan struct{}), make(chan struct{})
	j.onEmit = func(*rows.Batch) {
		select {
		case arrived <- struct{}{}:
			<-gate
		case <-gate:
		}
	}
	a := j.start(t)
	a.halted(t, arrived)
	j.exec(t, "UPDATE t SET id = 5 WHERE id = 120")
	close(gate)
	a.until(t, "the copy", func() bool { return len(a.rows) >= 11 })
	j.exec(t, "INSERT INTO t VALUES (999, 'last')")
	there := make(map[string]string)
	for _, c := range a.through(t, "big=last id=999") {
		switch c.meta.Op {
		case rows.OpTruncate:
			clear(there)
		case rows.OpDelete:
			delete(there, c.cells["id"])
		default:
			there[c.cells["id"]] = c.cells["big"]
		}
	}
	if len(there) != 13 || there["5"] != big {
		t.Errorf("%d rows, the moved one has %.10q", len(there), there["5"])
	}
}
