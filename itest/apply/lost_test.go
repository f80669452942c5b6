package apply

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
)

const lostSpec = `apiVersion: weir/v1
job: shop
epoch: {interval: 100ms}
restart: {backoff: 100ms, cap: 1000}
sources:
  db: {type: postgres, url: "${SOURCE_URL}", tables: ["public.*"], heartbeat: 1s, snapshot: {chunk_rows: 100}}
sinks:
  copy: {from: [db], type: postgres, url: "${TARGET_URL}", schema: copy, allow: [truncate]}
`

// advised finds the command in a remedy.
var advised = regexp.MustCompile("`weir (job resnapshot [^`]*)`")

// A slot that is dropped, made again by hand under its name, or lost to max_slot_wal_keep_size stops the job by its name, and
// the command that the stop advises mends it: whatever was written meanwhile, the target equals the source.
func TestSlotIsGone(t *testing.T) {
	const dropped = `SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active_pid IS NOT NULL AND database = current_database();
		SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database()`
	for _, c := range []struct {
		name, code string
		damage     func(t *testing.T, s *scene)
	}{
		{"dropped", "WEIR-PG-010", func(t *testing.T, s *scene) {
			t.Helper()
			s.drop(t, dropped)
		}},
		{"made again", "WEIR-PG-017", func(t *testing.T, s *scene) {
			t.Helper()
			var slot string
			if err := s.connect(t, source).QueryRow(t.Context(), "SELECT slot_name FROM pg_replication_slots WHERE database = current_database()").Scan(&slot); err != nil {
				t.Fatal(err)
			}
			reader := s.Of(mesh.CDCPostgres)[0]
			reader.Kill()
			s.drop(t, dropped)
			s.at(t, source, "DELETE FROM a WHERE id = 7")
			s.at(t, source, "SELECT pg_create_logical_replication_slot('"+slot+"', 'pgoutput')")
			if err := reader.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}},
		{"lost", "WEIR-PG-009", func(t *testing.T, s *scene) {
			t.Helper()
			reader := s.Of(mesh.CDCPostgres)[0]
			reader.Kill()
			s.at(t, source, "ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
			s.at(t, source, "SELECT pg_reload_conf()")
			harness.Await(t, 60*time.Second, "the slot to be lost", func(ctx context.Context) error {
				s.at(t, source, "DELETE FROM a WHERE id = (SELECT max(id) FROM a); SELECT pg_switch_wal()")
				s.at(t, source, "CHECKPOINT")
				var status string
				err := s.connect(t, source).QueryRow(ctx, "SELECT wal_status FROM pg_replication_slots WHERE database = current_database()").Scan(&status)
				if err == nil && status != "lost" {
					err = errors.New("wal_status is " + status)
				}
				return err
			})
			s.at(t, source, "ALTER SYSTEM RESET max_slot_wal_keep_size")
			s.at(t, source, "SELECT pg_reload_conf()")
			if err := reader.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := begin(t)
			s.at(t, source, "CREATE TABLE a (id int PRIMARY KEY, v text); INSERT INTO a SELECT i, 'x' FROM generate_series(1, 1000) i; CREATE TABLE b (id int PRIMARY KEY)")
			s.run(t, lostSpec)
			s.CaughtUp(t, name)
			s.at(t, source, "UPDATE a SET v = 'y' WHERE id < 5")
			s.CaughtUp(t, name)
			c.damage(t, s)
			s.at(t, source, "UPDATE a SET v = 'lost' WHERE id < 100; DELETE FROM a WHERE id BETWEEN 200 AND 300; INSERT INTO b VALUES (1)")
			remedy := s.wantStop(t, c.code)
			command := advised.FindStringSubmatch(remedy)
			if command == nil {
				t.Fatalf("no command in %q", remedy)
			}
			s.Must(t, strings.Fields(command[1])...)
			s.at(t, source, "INSERT INTO a VALUES (5000, 'new'); DELETE FROM a WHERE id = 2")
			s.CaughtUp(t, name)
			s.wantSame(t, "public.a", "public.b")
			s.Verify(t, name)
		})
	}
}

// drop drops the slot, however often a reader comes back to it.
func (s *scene) drop(t *testing.T, sql string) {
	t.Helper()
	harness.Await(t, 30*time.Second, "the slot to be dropped", func(ctx context.Context) error {
		return source.Exec(ctx, s.db, sql)
	})
}
