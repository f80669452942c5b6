package cdcpostgres

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
	cdcpostgres "weir.dev/weir/services/cdc-postgres"
)

// benchRows is how many rows the log holds; enough for seconds of reading.
const benchRows = 400_000

const benchTable = `
CREATE TABLE t (id bigint PRIMARY KEY, n int, big bigint, amount numeric(12,2), name text, note text,
                at timestamptz, ok boolean, u uuid, d double precision)`

// benchInsert writes transactions of 1,000 rows.
const benchInsert = `
DO $$ BEGIN FOR i IN 0..%d-1 LOOP
  INSERT INTO t SELECT g, g %% 1000, g::bigint * 7919, (g %% 1000000) / 100.0, 'customer ' || g, md5(g::text),
         '2026-01-01'::timestamptz + g * interval '1 second', g %% 2 = 0, md5((g * 3)::text)::uuid, g / 7.0
  FROM generate_series(i * 1000 + 1, i * 1000 + 1000) g;
  COMMIT; END LOOP; END $$`

// BenchmarkLog reads one and the same stretch of log by the connector into an output that throws rows away, and by
// pg_recvlogical into /dev/null, each from a copy of one slot.
func BenchmarkLog(b *testing.B) {
	pg := harness.StartPostgres(b, harness.PostgresConfig{})
	ctx := b.Context()
	must := func(sql string) {
		b.Helper()
		if err := pg.Exec(ctx, "postgres", sql); err != nil {
			b.Fatal(err)
		}
	}
	must(benchTable)
	must("CREATE PUBLICATION p FOR TABLE t WITH (publish_via_partition_root = true)")
	must("SELECT pg_create_logical_replication_slot('origin', 'pgoutput')")
	must(fmt.Sprintf(benchInsert, benchRows/1000))
	end, err := harness.Value[string](ctx, pg, "postgres", "SELECT pg_current_wal_flush_lsn()::text")
	if err != nil {
		b.Fatal(err)
	}
	slots := 0
	slot := func() string {
		slots++
		name := "run" + strconv.Itoa(slots)
		must("SELECT pg_copy_logical_replication_slot('origin', '" + name + "')")
		return name
	}
	// On a machine with other work only the processor time of the reading side says something.
	rate := func(b *testing.B, cpu time.Duration) {
		b.Helper()
		n := float64(benchRows) * float64(b.N)
		b.ReportMetric(n/b.Elapsed().Seconds(), "rows/s")
		b.ReportMetric(float64(cpu.Nanoseconds())/n, "cpu-ns/row")
	}
	b.Run("weir", func(b *testing.B) {
		var cpu time.Duration
		for range b.N {
			b.StopTimer()
			name := slot()
			before := processorTime(b)
			b.StartTimer()
			readAll(b, pg, name)
			b.StopTimer()
			cpu += processorTime(b) - before
			must("SELECT pg_drop_replication_slot('" + name + "')")
			b.StartTimer()
		}
		rate(b, cpu)
	})
	b.Run("pg_recvlogical", func(b *testing.B) {
		var cpu time.Duration
		for range b.N {
			b.StopTimer()
			name := slot()
			cmd := exec.CommandContext(ctx, pg.Bin("pg_recvlogical"), "-d", pg.URL("postgres"), "--slot", name, "--start",
				"--endpos", end, "-o", "proto_version=1", "-o", "publication_names=p", "-o", "binary=true", "-f", os.DevNull)
			b.StartTimer()
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("pg_recvlogical: %v\n%s", err, out)
			}
			b.StopTimer()
			cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
			must("SELECT pg_drop_replication_slot('" + name + "')")
			b.StartTimer()
		}
		rate(b, cpu)
	})
}

// processorTime is what this process has used so far.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// readAll reads benchRows rows through the connector.
func readAll(b *testing.B, pg *harness.Postgres, slot string) {
	b.Helper()
	table, err := spec.ParseTablePattern("public.t")
	if err != nil {
		b.Fatal(err)
	}
	j := &job{
		pg: pg, name: "bench", life: "b", url: pg.URL("postgres"), batch: 256 << 10, cut: 1_000_000, fence: 1,
		source: spec.PostgresSource{
			Readers: 1, Snapshot: spec.Snapshot{Mode: spec.SnapshotNever}, Heartbeat: config.Duration(time.Hour),
			Slot: slot, Publication: "p", Tables: spec.Tables{table},
		},
	}
	ctx := b.Context()
	var c cdcpostgres.Connector
	enum, err := c.OpenEnumerator(ctx, j.config("db_enum"))
	if err != nil {
		b.Fatal(err)
	}
	defer enum.Close()
	reader, err := c.OpenReader(ctx, j.config("db"))
	if err != nil {
		b.Fatal(err)
	}
	defer reader.Close()
	woken := make(chan struct{}, 1)
	woken <- struct{}{}
	if _, err := enum.Poll(ctx, direct{reader}, woken); err != nil {
		b.Fatal(err)
	}
	var out discard
	for out.rows < benchRows {
		if _, err := reader.Poll(ctx, &out, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// direct hands the enumerator's messages to the reader.
type direct struct{ source.Reader }

func (d direct) Tell(_ context.Context, _ int, payload []byte) error { return d.Receive(payload) }

// discard counts rows.
type discard struct{ rows int }

func (d *discard) Emit(_ context.Context, b rows.Batch, _ position.Position) error {
	d.rows += b.NumRows()
	return nil
}

func (*discard) Tell(context.Context, []byte) error { return nil }
