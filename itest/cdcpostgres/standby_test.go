package cdcpostgres

import (
	"testing"

	"weir.dev/weir/itest/harness"
)

// behind is a standby that can stop, in a way that holds the commits of one kind of synchronous_commit.
type behind struct {
	level    string
	stop, on func(*testing.T)
}

// stopped lets transactions hang because the standby stops, and makes sure that nobody sees them.
func (b behind) stopped(transactions ...string) step {
	return func(t *testing.T, s *scene) {
		t.Helper()
		b.stop(t)
		hang(b.level, transactions...)(t, s)
		seen, err := harness.Value[int](t.Context(), s.pg, s.database, "SELECT count(*)::int FROM t WHERE id >= 1000 OR v > 100")
		if err != nil || seen != 0 {
			t.Fatalf("%d rows of transactions that wait are visible, %v", seen, err)
		}
	}
}

// again lets the standby go on and waits for what hung.
func (b behind) again(t *testing.T, s *scene) {
	t.Helper()
	b.on(t)
	s.visible(t)
}

// O01 with a real standby: commits are in the log, the log passes them and the chunks, and nobody sees them until the
// standby goes on. It stops in the two ways it can: it replays nothing any more, or nothing of it runs any more.
func TestBehindStandby(t *testing.T) {
	t.Parallel()
	pg := harness.StartPostgres(t, harness.PostgresConfig{Settings: map[string]string{
		"max_prepared_transactions": "10", "synchronous_standby_names": "behind", "synchronous_commit": "local",
	}})
	standby := pg.StartStandby(t, "behind")
	ask := func(t *testing.T, sql string) {
		t.Helper()
		if err := standby.Exec(t.Context(), "postgres", sql); err != nil {
			t.Fatal(err)
		}
	}
	must := func(do func() error) func(*testing.T) {
		return func(t *testing.T) {
			t.Helper()
			if err := do(); err != nil {
				t.Fatal(err)
			}
		}
	}
	frozen := behind{"on", must(standby.Pause), must(standby.Resume)}
	unreplayed := behind{
		"remote_apply",
		func(t *testing.T) {
			t.Helper()
			ask(t, "SELECT pg_wal_replay_pause()")
			eventually(t, "the standby to replay nothing", func() bool {
				state, err := harness.Value[string](t.Context(), standby, "postgres", "SELECT pg_get_wal_replay_pause_state()")
				return err == nil && state == "paused"
			})
		},
		func(t *testing.T) { t.Helper(); ask(t, "SELECT pg_wal_replay_resume()") },
	}
	several := []string{
		gapHalves, "INSERT INTO t VALUES (2001, 2)", "DELETE FROM t WHERE id IN (6, 33)", "UPDATE t SET v = v + 200 WHERE id IN (7, 34)",
	}
	for name, g := range map[string]gap{
		"unreplayed until the copy ends":    {first: unreplayed.stopped(gapHalves), last: unreplayed.again},
		"unreplayed, one with savepoints":   {first: unreplayed.stopped(gapSaved + "; COMMIT"), middle: unreplayed.again},
		"unreplayed, one that was prepared": {first: prepared("u"), middle: unreplayed.stopped("COMMIT PREPARED 'u'"), last: unreplayed.again},
		"unreplayed, several":               {first: unreplayed.stopped(several...), last: unreplayed.again},
		"frozen until the middle":           {first: frozen.stopped(several...), middle: frozen.again},
		"frozen from the middle":            {middle: frozen.stopped(gapHalves), last: frozen.again},
		"frozen, one rolled back beside": {
			first: run("BEGIN; UPDATE t SET v = 9 WHERE id IN (8, 32)"), middle: frozen.stopped(gapHalves),
			last: func(t *testing.T, s *scene) { t.Helper(); execOn(t, s.conn, "ROLLBACK"); frozen.again(t, s) },
		},
	} {
		t.Run(name, func(t *testing.T) { g.play(t, pg) })
	}
}
