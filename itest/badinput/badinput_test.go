package badinput

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/pkg/fault"
)

func TestBadInput(t *testing.T) {
	s := &scene{
		source: harness.StartPostgres(t, harness.PostgresConfig{}),
		target: harness.StartPostgres(t, harness.PostgresConfig{}),
		mesh:   mesh.Start(t, mesh.Config{Roles: []mesh.Role{mesh.Coordinator, mesh.CDCPostgres, mesh.Sink}}),
	}
	s.canary(s.source.Admin.Password)
	s.canary(s.target.Admin.Password)
	s.records = s.mesh.Records(t)
	published := s.listen(t)

	tests := map[string]func(trial){
		"source password":   sourcePassword,
		"target password":   targetPassword,
		"no replication":    noReplication,
		"no create":         noCreate,
		"wal level, slots":  walLevelAndSlots,
		"slot dropped":      slotDropped,
		"target down":       targetDown,
		"constraint":        constraint,
		"broken spec":       brokenSpec,
		"literal password":  literalPassword,
		"unset environment": unsetReference,
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		t.Run(name, func(t *testing.T) { tests[name](trial{TB: t, scene: s}) })
	}
	s.silent(t, published)
}

func sourcePassword(t trial) {
	f := t.newFlow(t, "sourcepw", setup{})
	f.login(t, "source", f.source.URLAs(f.wrong(f.reader), f.name))
	f.submit(t)
	f.fails(t, fault.PGWrongPassword)
	f.login(t, "source", f.source.URLAs(f.reader, f.name))
	f.repaired(t)
}

func targetPassword(t trial) {
	f := t.newFlow(t, "targetpw", setup{})
	f.run(t)
	// It changes while the job runs; the committer notices when it has to connect again.
	if err := f.target.Exec(t.Context(), "postgres", fmt.Sprintf("ALTER ROLE %s PASSWORD '%s'", f.writer.Name, f.canary("CHANGED"+f.writer.Password))); err != nil {
		t.Fatal(err)
	}
	if err := f.target.Exec(t.Context(), "postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '"+f.writer.Name+"'"); err != nil {
		t.Fatal(err)
	}
	f.write(t, "INSERT INTO t VALUES (2, 2)")
	f.fails(t, fault.SinkWrongPassword)
	f.write(t, "INSERT INTO t VALUES (3, 3)") // while it stands
	f.login(t, "target", f.target.URLAs(harness.Role{Name: f.writer.Name, Password: "CHANGED" + f.writer.Password}, f.name))
	f.repaired(t)
}

func noReplication(t trial) {
	f := t.newFlow(t, "noreplication", setup{noReplication: true})
	f.submit(t)
	f.fails(t, fault.PGNoReplicationRight)
	if err := f.source.Exec(t.Context(), "postgres", "ALTER ROLE "+f.reader.Name+" REPLICATION"); err != nil {
		t.Fatal(err)
	}
	f.repaired(t)
}

func noCreate(t trial) {
	f := t.newFlow(t, "nocreate", setup{noCreate: true})
	f.submit(t)
	f.fails(t, fault.SinkMissingRight)
	if err := f.target.Exec(t.Context(), "postgres", "GRANT CREATE ON DATABASE "+f.name+" TO "+f.writer.Name); err != nil {
		t.Fatal(err)
	}
	f.repaired(t)
}

// walLevelAndSlots: first the log is not logical; when it is, somebody else has the only slot.
func walLevelAndSlots(t trial) {
	source := harness.StartPostgres(t, harness.PostgresConfig{
		Settings: map[string]string{"wal_level": "replica", "max_replication_slots": "1"},
	})
	t.canary(source.Admin.Password)
	f := t.newFlow(t, "wallevel", setup{source: source})
	f.submit(t)
	f.fails(t, fault.PGWALLevel)

	if err := source.Configure(map[string]string{"wal_level": "logical"}); err != nil {
		t.Fatal(err)
	}
	if err := source.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := source.Exec(t.Context(), f.name, "SELECT pg_create_logical_replication_slot('somebody', 'pgoutput')"); err != nil {
		t.Fatal(err)
	}
	f.mesh.Must(t, "job", "resume", f.name)
	f.fails(t, fault.PGNoFreeSlot)
	if err := source.Exec(t.Context(), f.name, "SELECT pg_drop_replication_slot('somebody')"); err != nil {
		t.Fatal(err)
	}
	f.repaired(t)
}

// slotDropped: somebody takes the slot away under the running job. What is lost cannot be repaired, so it must be said,
// and never be papered over by a new slot.
func slotDropped(t trial) {
	f := t.newFlow(t, "slotdropped", setup{})
	f.run(t)
	f.dropSlot(t)
	f.write(t, "INSERT INTO t VALUES (2, 2)")
	f.fails(t, fault.PGSlotMissing)
	f.staysFailed(t, fault.PGSlotMissing)
}

// dropSlot takes the slot from whoever reads it.
func (f *flow) dropSlot(tb testing.TB) {
	tb.Helper()
	harness.Await(tb, 20*time.Second, "the slot to be dropped", func(ctx context.Context) error {
		return f.source.Exec(ctx, f.name, `DO $$ DECLARE s record; BEGIN
			FOR s IN SELECT slot_name, active_pid FROM pg_replication_slots WHERE database = current_database() LOOP
				PERFORM pg_terminate_backend(s.active_pid, 2000);
				PERFORM pg_drop_replication_slot(s.slot_name);
			END LOOP; END $$`)
	})
}

// staysFailed: resuming without a repair fails again, and no slot was made meanwhile.
func (f *flow) staysFailed(tb testing.TB, code fault.Code) {
	tb.Helper()
	before := f.mesh.Status(tb, f.name).Fence
	f.mesh.Must(tb, "job", "resume", f.name)
	harness.Await(tb, 30*time.Second, "the resumed job to fail again", func(ctx context.Context) error {
		h, err := f.records.Now(ctx, f.name)
		if err == nil && (uint64(h.Fence) <= before || h.Phase != "FAILED") {
			err = fmt.Errorf("it is %s with fence %d", h.Phase, h.Fence)
		}
		return err
	})
	f.fails(tb, code)
	if n, err := harness.Value[int](tb.Context(), f.source, f.name,
		"SELECT count(*) FROM pg_replication_slots WHERE database = current_database()"); err != nil || n != 0 {
		tb.Errorf("%d slots, %v: a lost slot was made again silently", n, err)
	}
}

// targetDown: the target goes away for a while. The job waits and says so; nobody has to do anything.
func targetDown(t trial) {
	target := harness.StartPostgres(t, harness.PostgresConfig{})
	t.canary(target.Admin.Password)
	f := t.newFlow(t, "targetdown", setup{target: target})
	f.run(t)
	before := f.mesh.Status(t, f.name)
	if err := target.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	down := time.Now()
	f.write(t, "INSERT INTO t SELECT i, i FROM generate_series(1000, 1999) i")
	harness.Await(t, 20*time.Second, "status to say that the sink is down", func(context.Context) error {
		for _, sink := range f.mesh.Status(t, f.name).Sinks {
			if sink.Waiting != nil && sink.Waiting.Fault.Code == string(fault.SinkUnreachable) {
				tellsRemedy(t, fault.SinkUnreachable, sink.Waiting.Fault.Remedy)
				return nil
			}
		}
		return fmt.Errorf("status: %s", f.mesh.Must(t, "status", f.name).Stdout)
	})
	f.write(t, "UPDATE t SET v = v + 1 WHERE id BETWEEN 1000 AND 1499")
	if err := harness.Pause(t.Context(), time.Until(down.Add(10*time.Second))); err != nil {
		t.Fatal(err)
	}
	f.write(t, "DELETE FROM t WHERE id BETWEEN 1900 AND 1999")
	if err := target.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.equal(t)
	after := f.mesh.Status(t, f.name)
	if after.Phase != "RUNNING" || after.Fence != before.Fence {
		t.Errorf("the job is %s with attempt %d, it was attempt %d: an outage of the target is no failure", after.Phase, after.Fence, before.Fence)
	}
}

// constraint: the target has a rule that the source does not have.
func constraint(t trial) {
	f := t.newFlow(t, "constrained", setup{})
	f.run(t)
	if err := f.target.Exec(t.Context(), f.name, "ALTER TABLE copied.t ADD CONSTRAINT small CHECK (v < 100)"); err != nil {
		t.Fatal(err)
	}
	f.write(t, "INSERT INTO t VALUES (2, 2), (3, 1000), (4, 4)")
	f.fails(t, fault.SinkConstraint)
	f.write(t, "INSERT INTO t VALUES (5, 5); DELETE FROM t WHERE id = 1")
	if err := f.target.Exec(t.Context(), f.name, "ALTER TABLE copied.t DROP CONSTRAINT small"); err != nil {
		t.Fatal(err)
	}
	f.repaired(t)
}
