package sink_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"weir.dev/weir/itest/drive"
	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/fault"
)

// TestPostgresOutage takes the target away in every way that it has.
func TestPostgresOutage(t *testing.T) {
	t.Parallel()
	pg := harness.StartPostgres(t, harness.PostgresConfig{})
	a := drive.Open(t, drive.Config(postgresSink(pg.URL("postgres")), 1))
	p := drive.People(t, "public.people")
	a.Epoch(a.Batch(p, drive.Ins(0, "a", "b")))

	for i, outage := range []struct {
		name       string
		begin, end func() error
	}{
		{"killed", func() error { pg.Kill(); return nil }, func() error { return pg.Start(t.Context()) }},
		{"stopped in order", func() error { return pg.Stop(t.Context()) }, func() error { return pg.Start(t.Context()) }},
		{"frozen", pg.Pause, pg.Resume},
	} {
		c := a.Stage(a.Batch(p, drive.Ins(int64(i+1), "c", "d"), drive.Upd(0, outage.name, "x")))
		if err := outage.begin(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			// A frozen server says nothing: there the caller's patience ends first.
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			_, err := a.Committer.Commit(ctx, c)
			cancel()
			if !errors.Is(err, fault.Transient) && !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("%s: %v, want transient", outage.name, err)
			}
		}
		if err := outage.end(); err != nil {
			t.Fatal(err)
		}
		if err := a.Try(c); err != nil {
			t.Fatalf("after the server was %s: %v", outage.name, err)
		}
		drive.WantLines(t, show(t, pg, "postgres", "SELECT count(*), max(email) FILTER (WHERE id = 0) FROM out.people"),
			fmt.Sprintf("%d|%s", i+2, outage.name))
	}
	if n, err := harness.Value[int](t.Context(), pg, "postgres",
		"SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'weir:%'"); err != nil || n != 1 {
		t.Errorf("%d sessions are left, %v; want the committer's own", n, err)
	}
}
