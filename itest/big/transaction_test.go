package big

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/pkg/epoch"
)

const transactionSpec = `apiVersion: weir/v1
job: big
epoch: {interval: 100ms, max_transaction_rows: %d}
restart: {backoff: 100ms, cap: 1000}
sources:
  db:
    type: postgres
    url: ${SOURCE_URL}
    tables: ["public.t"]
    snapshot: {mode: never}
sinks:
%s`

const (
	toCopy      = "  copy: {from: [db], type: postgres, url: \"${TARGET_URL}\", schema: copy, mode: upsert}\n"
	toLog       = "  log: {from: [db], type: postgres, url: \"${TARGET_URL}\", schema: log, mode: changelog}\n"
	toBlackhole = "  none: {from: [db], type: blackhole}\n"
)

const transactionTable = "CREATE TABLE t (n bigint PRIMARY KEY, v text NOT NULL)"

// A transaction of more rows than max_transaction_rows is emitted over several epochs. The source is killed while the
// durable position lies inside it, and every row comes once.
func TestTransactionKilledInTheMiddle(t *testing.T) {
	const rows = 250_000
	s := setting(t)
	s.exec(t, s.source, transactionTable)
	s.Submit(t, job, fmt.Sprintf(transactionSpec, 5000, toCopy+toLog))
	s.exec(t, s.source, "INSERT INTO t SELECT g, repeat(md5(g::text), 8) FROM generate_series(1, $1::bigint) g", rows)
	s.exec(t, s.source, "UPDATE t SET v = 'behind it' WHERE n = 1")
	killInside(t, s.Mesh, s.Of(mesh.CDCPostgres)[0], "public.t", rows)
	s.CaughtUp(t, job)
	s.same(t, "t")
	const log = "SELECT format('%s rows, %s of them different', count(*), count(DISTINCT (_op, n))) FROM log.t"
	if got, want := ask[string](t, s.target, log), fmt.Sprintf("%d rows, %[1]d of them different", rows+1); got != want {
		t.Errorf("the changelog has %s, want %s", got, want)
	}
	s.Verify(t, job)
}

// killInside waits for a durable position inside a transaction of so many rows, kills the source, and starts it again.
func killInside(t *testing.T, m *mesh.Mesh, victim *mesh.Member, table string, rows int) {
	t.Helper()
	records := m.Records(t)
	durable := func(ctx context.Context) (*epoch.Manifest, error) {
		head, err := records.Now(ctx, job)
		if err != nil {
			return nil, err
		}
		if head.Durable == nil {
			return nil, errors.New("no epoch is durable")
		}
		return records.Manifest(ctx, job, head.Durable.Ref)
	}
	harness.Await(t, time.Minute, "a durable epoch inside the transaction", func(ctx context.Context) error {
		at, err := durable(ctx)
		if err == nil && !at.Torn {
			err = fmt.Errorf("epoch %s ends between two transactions", at.Epoch)
		}
		return err
	})
	victim.Kill()
	if _, err := victim.Wait(t.Context()); err == nil {
		t.Fatal("the source ended by itself")
	}
	at, err := durable(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !at.Torn {
		t.Error("the durable position is not inside the transaction: the kill came too late to mean anything")
	}
	t.Logf("killed with epoch %s durable, which has %d of %d rows", at.Epoch, at.Tables[table].In, rows)
	if err := victim.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// One transaction of any size needs no more memory than many small ones.
func TestHugeTransaction(t *testing.T) {
	rows, cut := 100_000, 10_000
	if large() {
		rows, cut = harness.Number(t, "ITEST_BIG_ROWS", 2_000_000), 1_000_000 // the default
	}
	for name, sinks := range map[string]string{"blackhole": toBlackhole, "postgres": toCopy} {
		t.Run(name, func(t *testing.T) {
			s := setting(t)
			s.exec(t, s.source, transactionTable)
			s.Submit(t, job, fmt.Sprintf(transactionSpec, cut, sinks))
			source, sink := watch(t, s.Of(mesh.CDCPostgres)[0].PID()), watch(t, s.Of(mesh.Sink)[0].PID())
			began := time.Now()
			s.exec(t, s.source, "INSERT INTO t SELECT g, repeat(md5(g::text), 3) FROM generate_series(1, $1::bigint) g", rows)
			written := time.Since(began)
			s.Must(t, "status", job, "--wait-for", "caught-up", "--timeout", "600s")
			took := time.Since(began)
			median, peak := source.end(t)
			sinkMedian, sinkPeak := sink.end(t)
			t.Logf("%d rows in one transaction, written in %.1f s and committed at the sink after %.1f s; resident memory of the source: "+
				"median %.0f MiB, peak %.0f MiB; of the sink: %.0f and %.0f", rows, written.Seconds(), took.Seconds(), median, peak, sinkMedian, sinkPeak)
			if peak > memoryLimit || sinkPeak > sinkLimit {
				t.Errorf("peaks are %.0f MiB and %.0f MiB", peak, sinkPeak)
			}
			if name == "postgres" {
				if n := ask[int64](t, s.target, "SELECT count(*) FROM copy.t"); n != int64(rows) {
					t.Errorf("%d rows at the target, want %d", n, rows)
				}
			}
		})
	}
}
