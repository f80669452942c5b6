package cdcpostgres

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"weir.dev/weir/itest/harness"
)

// slots lists the slots of the job's database.
func (j *job) slots(t *testing.T) []string {
	t.Helper()
	names, err := harness.Value[[]string](t.Context(), j.pg, j.database,
		"SELECT coalesce(array_agg(slot_name::text ORDER BY slot_name), '{}') FROM pg_replication_slots WHERE database = current_database()")
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// O17: a slot that was dropped and made again has a gap before it.
func TestSlotMadeAgain(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.*")
	j.exec(t, "CREATE TABLE t (id int PRIMARY KEY)")
	a := j.start(t)
	j.exec(t, "INSERT INTO t VALUES (1)")
	a.take(t, 1)
	a.takeEpoch(t)
	a.stop()
	slot := j.slots(t)[0]
	eventually(t, "the slot is free", func() bool {
		return j.pg.Exec(t.Context(), j.database, "SELECT pg_drop_replication_slot('"+slot+"')") == nil
	})
	_, err := j.open(t.Context())
	wantFault(t, err, "WEIR-PG-010")
	j.exec(t, "INSERT INTO t VALUES (2)")
	j.exec(t, "SELECT pg_create_logical_replication_slot('"+slot+"', 'pgoutput')")
	_, err = j.open(t.Context())
	wantFault(t, err, "WEIR-PG-017")
	j.exec(t, "SELECT pg_drop_replication_slot('"+slot+"')")
}

// O18: a slot that has lost log is a final state, told before anything is read.
func TestSlotLost(t *testing.T) {
	t.Parallel()
	pg := harness.StartPostgres(t, harness.PostgresConfig{Settings: map[string]string{
		"max_slot_wal_keep_size": "1MB", "max_wal_size": "32MB", "min_wal_size": "32MB",
	}})
	j := newJob(t, pg, "public.*")
	j.exec(t, "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE noise (v text)")
	j.source.Tables = j.source.Tables[:0]
	j.tables(t, "public.t")
	a := j.start(t)
	j.exec(t, "INSERT INTO t VALUES (1)")
	a.take(t, 1)
	a.takeEpoch(t)
	a.stop()
	for range 3 {
		j.exec(t, "INSERT INTO noise SELECT repeat('x', 1000) FROM generate_series(1, 40000)")
		if err := pg.Exec(t.Context(), "postgres", "SELECT pg_switch_wal()"); err != nil {
			t.Fatal(err)
		}
		if err := pg.Exec(t.Context(), "postgres", "CHECKPOINT"); err != nil {
			t.Fatal(err)
		}
	}
	_, err := j.open(t.Context())
	f := faultOf(t, err, "WEIR-PG-009")
	if !strings.Contains(f.Remedy, "`weir job resnapshot shop`") {
		t.Errorf("remedy is %q", f.Remedy)
	}
}

// Before the first durable epoch each attempt has a slot of its own; the older ones go when an epoch is durable.
func TestSlotsOfAttempts(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.*")
	j.exec(t, "CREATE TABLE t (id int PRIMARY KEY)")
	j.start(t).stop()
	a := j.start(t)
	if got := j.slots(t); len(got) != 2 {
		t.Fatalf("slots are %q, want those of two attempts", got)
	}
	a.takeEpoch(t)
	want := fmt.Sprintf("weir_shop_db_%s_2", j.life)
	eventually(t, "the older slot is dropped", func() bool { got := j.slots(t); return len(got) == 1 && got[0] == want })
	a.stop()
	for range 2 { // Release is idempotent
		if err := release(t, j); err != nil {
			t.Fatal(err)
		}
	}
	left, err := harness.Value[int](t.Context(), j.pg, j.database, "SELECT (SELECT count(*) FROM pg_publication) + (SELECT count(*) FROM pg_replication_slots WHERE database = current_database())")
	if err != nil || left != 0 {
		t.Errorf("%d slots and publications are left, %v", left, err)
	}
}

// What the user made is used and never dropped.
func TestGivenSlotAndPublication(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.t")
	j.source.Slot, j.source.Publication = "given_slot", "given"
	j.exec(t, "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE u (id int PRIMARY KEY); CREATE PUBLICATION given FOR ALL TABLES")
	j.exec(t, "SELECT pg_create_logical_replication_slot('given_slot', 'pgoutput')")
	t.Cleanup(func() {
		eventually(t, "the slot is free", func() bool {
			return j.pg.Exec(context.Background(), j.database, "SELECT pg_drop_replication_slot('given_slot')") == nil
		})
	})
	j.exec(t, "INSERT INTO t VALUES (1); INSERT INTO u VALUES (1); INSERT INTO t VALUES (2)")
	a := j.start(t)
	got := a.take(t, 2)
	wantRows(t, got, "insert public.t id=1", "insert public.t id=2")
	a.takeEpoch(t)
	a.stop()
	if err := release(t, j); err != nil {
		t.Fatal(err)
	}
	if got := j.slots(t); len(got) != 1 {
		t.Errorf("slots are %q", got)
	}
}

func TestSlotDroppedWhileRunning(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.*")
	j.exec(t, "CREATE TABLE t (id int PRIMARY KEY)")
	a := j.start(t)
	a.takeEpoch(t)
	slot := j.slots(t)[0]
	eventually(t, "the slot is dropped", func() bool {
		j.exec(t, "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = '"+slot+"'")
		return j.pg.Exec(t.Context(), j.database, "SELECT pg_drop_replication_slot('"+slot+"')") == nil
	})
	if err := a.failure(t); err == nil {
		t.Fatal("the attempt goes on without its slot")
	}
	a.stop()
	_, err := j.open(t.Context())
	wantFault(t, err, "WEIR-PG-010")
}
