package big

import (
	"context"
	"fmt"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
)

const idleSpec = `apiVersion: weir/v1
job: big
epoch: {interval: 250ms, idle_interval: 1s}
sources:
  db:
    type: postgres
    url: ${SOURCE_URL}
    tables: ["public.t"]
    heartbeat: 1s
sinks:
  copy: {from: [db], type: postgres, url: "${TARGET_URL}", schema: copy, mode: upsert}
`

// What a slot may keep of the log in MiB, and what is written beside it meanwhile.
const (
	keptLimit = 80 // five segments
	beside    = 220
)

// A database in which nothing happens, on a server where another one writes: its slot follows, although not one change of
// the log is for it, and the server can remove the log. Once the copy is done the source holds the connections of the log
// and no more.
func TestIdleDatabase(t *testing.T) {
	s := &scene{
		source: harness.StartPostgres(t, harness.PostgresConfig{Settings: map[string]string{"max_wal_size": "32MB", "min_wal_size": "32MB"}}),
		target: harness.StartPostgres(t, harness.PostgresConfig{}),
	}
	if err := s.source.CreateDatabase(t.Context(), "quiet"); err != nil {
		t.Fatal(err)
	}
	if err := s.source.Exec(t.Context(), "quiet", "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 1000)"); err != nil {
		t.Fatal(err)
	}
	s.Mesh = mesh.Start(t, mesh.Config{
		Roles: []mesh.Role{mesh.Coordinator, mesh.CDCPostgres, mesh.Sink},
		Env:   []string{"SOURCE_URL=" + s.source.URL("quiet"), "TARGET_URL=" + s.target.URL("postgres")},
	})
	s.Submit(t, job, idleSpec)
	s.CaughtUp(t, job)

	// Log and catalog, the observer of the log, the keeper of the slot, and the walsender.
	const connections = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'quiet' AND application_name LIKE 'weir:%'"
	harness.Await(t, 30*time.Second, "the copy's connections to be given back", func(ctx context.Context) error {
		n, err := harness.Value[int64](ctx, s.source, "postgres", connections)
		if err == nil && n > 4 {
			err = fmt.Errorf("%d connections", n)
		}
		return err
	})

	const state = `SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint >> 20 FROM pg_replication_slots WHERE slot_name LIKE 'weir_%'`
	const confirmed = `SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name LIKE 'weir_%'`
	s.exec(t, s.source, "CREATE TABLE busy (v text); ALTER TABLE busy ALTER v SET STORAGE EXTERNAL")
	written := func() int64 {
		return ask[int64](t, s.source, "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint >> 20")
	}
	before, at := written(), ask[string](t, s.source, confirmed)
	var most int64
	for written()-before < beside {
		s.exec(t, s.source, "INSERT INTO busy SELECT repeat('x', 1000) FROM generate_series(1, 4000)")
		most = max(most, ask[int64](t, s.source, state))
		if err := harness.Pause(t.Context(), 300*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d MiB were written beside the idle database; its slot kept %d MiB at most", written()-before, most)
	if most > keptLimit {
		t.Errorf("the slot of an idle database kept %d MiB of log, want %d at most", most, keptLimit)
	}
	if now := ask[string](t, s.source, confirmed); now == at {
		t.Errorf("the slot has stayed at %s", at)
	}
}
