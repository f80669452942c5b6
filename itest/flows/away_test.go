package flows

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/itest/rig"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
)

const awaySpec = `apiVersion: weir/v1
job: shop
epoch: {interval: 250ms}
restart: {backoff: 200ms, cap: 0}
sources:
  db: {type: %s, url: "${SOURCE_URL}", tables: ["%s.t"]}
sinks:
  copy: {from: [db], type: postgres, url: "${TARGET_URL}", schema: copy}
`

// longAway is a time in which pauses that double would have grown past the longest that is allowed.
const longAway = 12 * time.Second

// server is a source that can be taken away.
type server interface {
	Kill()
	Start(ctx context.Context) error
	Exec(ctx context.Context, database, sql string, args ...any) error
	URL(database string) string
}

// TestSourceIsAway takes the source away for longer than the pauses before attempts are meant to grow. Meanwhile the status names
// it with its code and since when; no budget is used up, not even where there is none; and when it is back its rows flow after a
// short pause.
func TestSourceIsAway(t *testing.T) {
	t.Parallel()
	target := harness.StartPostgres(t, harness.PostgresConfig{})
	for _, tt := range []struct {
		kind, database, schema string
		code                   fault.Code
		start                  func(t *testing.T) server
	}{
		{"postgres", "postgres", "public", fault.PGCannotConnect, func(t *testing.T) server { return harness.StartPostgres(t, harness.PostgresConfig{}) }},
		{"mysql", "", "shop", fault.MYCannotConnect, func(t *testing.T) server { return harness.StartMySQL(t, harness.MySQLConfig{}) }},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			t.Parallel()
			source, database := tt.start(t), "from_"+tt.kind
			if err := target.CreateDatabase(t.Context(), database); err != nil {
				t.Fatal(err)
			}
			run := func(sql string) {
				t.Helper()
				if err := source.Exec(t.Context(), tt.database, sql); err != nil {
					t.Fatal(err)
				}
			}
			if tt.kind == "mysql" {
				run("CREATE DATABASE shop")
			}
			run(fmt.Sprintf("CREATE TABLE %s.t (id int PRIMARY KEY)", tt.schema))
			run(fmt.Sprintf("INSERT INTO %s.t VALUES (1)", tt.schema))
			m := mesh.Up(t, []string{"SOURCE_URL=" + source.URL(tt.database), "TARGET_URL=" + target.URL(database)})
			m.Submit(t, rig.Job, fmt.Sprintf(awaySpec, tt.kind, tt.schema))
			records := m.Records(t)
			rows := func(want int64) {
				t.Helper()
				harness.Await(t, 60*time.Second, fmt.Sprintf("%d rows at the target", want), func(context.Context) error {
					n, err := harness.Value[int64](t.Context(), target, database, "SELECT count(*) FROM copy.t")
					if err == nil && n != want {
						err = fmt.Errorf("there are %d", n)
					}
					return err
				})
			}
			rows(1)
			m.CaughtUp(t, rig.Job)

			source.Kill()
			killed := time.Now()
			said := unreachable(t, m, killed, tt.code)
			if err := harness.Pause(t.Context(), longAway-time.Since(killed)); err != nil {
				t.Fatal(err)
			}
			head, err := records.Now(t.Context(), rig.Job)
			if err != nil {
				t.Fatal(err)
			}
			if head.Phase != job.Starting || head.Reason.Code != string(tt.code) || head.Reason.Since.Sub(killed) > 10*time.Second || head.Reason.Remedy == "" {
				t.Errorf("after %s the job is %s: %+v", longAway, head.Phase, head.Reason)
			}
			for _, r := range head.Restarts {
				if r.Kind != job.RestartAway {
					t.Errorf("a restart counts as %s", r.Kind)
				}
			}
			if last := head.Restarts[len(head.Restarts)-1]; !head.RetryAt.IsZero() && head.RetryAt.Sub(last.At) > 2*time.Second {
				t.Errorf("the next look comes %s after the last", head.RetryAt.Sub(last.At))
			}
			if err := source.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			back := time.Now()
			run(fmt.Sprintf("INSERT INTO %s.t VALUES (2)", tt.schema))
			rows(2)
			t.Logf("named after %.1f s; %d attempts in %s; rows flow %.1f s after the server was back",
				said.Seconds(), len(head.Restarts), longAway, time.Since(back).Seconds())
			m.Verify(t, rig.Job)
		})
	}
}

// unreachable waits until the status names the source with a code, and returns how long that took from when it was lost.
func unreachable(t *testing.T, m *mesh.Mesh, since time.Time, code fault.Code) time.Duration {
	t.Helper()
	harness.Await(t, 10*time.Second, "a status that names the source", func(context.Context) error {
		st := m.Status(t, rig.Job)
		if st.Reason.Code != string(code) {
			return errors.New("it says " + st.Reason.Code)
		}
		return nil
	})
	return time.Since(since)
}
