package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/harness"
)

// pointer asks the catalog where a table's newest metadata is.
const pointer = "SELECT metadata_location FROM iceberg_tables WHERE table_namespace = $1 AND table_name = $2"

// scan reads columns of a table as it is now.
func (s *stand) scan(database, namespace, name string, columns []string, each func(arrow.RecordBatch)) {
	s.Helper()
	at, err := harness.Value[string](s.Context(), s.target, database, pointer, namespace, name)
	if err != nil {
		s.Fatal(err)
	}
	local := func(context.Context) (iceio.IO, error) { return iceio.LocalFS{}, nil }
	t, err := table.NewFromLocation(s.Context(), table.Identifier{namespace, name}, at, local, nil)
	if err != nil {
		s.Fatal(err)
	}
	_, records, err := t.Scan(table.WithSelectedFields(columns...)).ToArrowRecords(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	for r, err := range records {
		if err != nil {
			s.Fatal(err)
		}
		each(r)
		r.Release()
	}
}

// sameLake counts the rows of both tables and adds their keys up: speed without the rows would be nothing.
func (s *stand) sameLake(database, namespace string, rows int, sum int64) {
	s.Helper()
	for _, name := range []string{"wide", "wide_changes"} {
		n, total := 0, int64(0)
		s.scan(database, namespace, name, []string{"id"}, func(r arrow.RecordBatch) {
			for _, id := range r.Column(0).(*array.Int64).Int64Values() {
				n, total = n+1, total+id
			}
		})
		if n != rows || total != sum {
			s.Fatalf("table %s has %d rows with keys that sum up to %d, the source %d and %d", name, n, total, rows, sum)
		}
	}
}

// shown is when an epoch was first seen in the catalog.
type shown struct {
	epoch uint64
	at    time.Time
}

// icebergLatency measures for each row the time from its insert at the source, just before the commit, to the first look at the
// catalog that finds metadata with its epoch: from then on every reader has it. Rows carry their time and their epoch, so they are read
// once, at the end.
func (s *stand) icebergLatency(r *IcebergReport) {
	s.Helper()
	s.exec(`DROP TABLE IF EXISTS bench.ticks; CREATE TABLE bench.ticks (id bigint PRIMARY KEY, at timestamptz NOT NULL, note text)`)
	database := s.database()
	p := s.startOn("bench.ticks", "1s", "", database, icebergSink(s.TempDir(), "bench"))
	p.running()
	source, err := s.source.Connect(s.Context(), "postgres")
	if err != nil {
		s.Fatal(err)
	}
	defer source.Close(context.WithoutCancel(s.Context()))

	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	var seen []shown
	var look sync.WaitGroup
	look.Go(func() { seen = s.watchEpochs(ctx, database, "ticks_changes") })
	transactions := int(s.LatencyFor.Seconds() * perSecond / perTransaction)
	if err := tick(s.Context(), source, transactions); err != nil {
		s.Fatal(err)
	}
	p.committed(transactions * perTransaction)
	// What is committed may not have been looked at.
	if err := harness.Pause(ctx, 100*time.Millisecond); err != nil {
		s.Fatal(err)
	}
	cancel()
	look.Wait()
	s.scan(database, "bench", "ticks_changes", []string{"at", "_epoch"}, func(b arrow.RecordBatch) {
		at := b.Column(b.Schema().FieldIndices("at")[0]).(*array.Timestamp)
		epoch := b.Column(b.Schema().FieldIndices("_epoch")[0]).(*array.Int64)
		for i := range int(b.NumRows()) {
			r.visible = append(r.visible, s.since(seen, uint64(epoch.Value(i)), time.UnixMicro(int64(at.Value(i)))))
		}
	})
	p.stop()
}

// since is how long after a row's time its epoch was seen.
func (s *stand) since(seen []shown, epoch uint64, at time.Time) time.Duration {
	s.Helper()
	for _, x := range seen {
		if x.epoch >= epoch {
			return x.at.Sub(at)
		}
	}
	s.Fatalf("epoch %d was never seen in the catalog", epoch)
	return 0
}

// watchEpochs looks at the catalog until ctx ends, and returns when each epoch of a table was seen first.
func (s *stand) watchEpochs(ctx context.Context, database, name string) (seen []shown) {
	conn, err := s.target.Connect(ctx, database)
	if err != nil {
		s.Error(err)
		return nil
	}
	defer conn.Close(context.WithoutCancel(ctx))
	last := ""
	for harness.Pause(ctx, 5*time.Millisecond) == nil {
		var at string
		// There is no table before the first epoch with rows.
		if err := conn.QueryRow(ctx, pointer, pgx.QueryExecModeExec, "bench", name).Scan(&at); err != nil || at == last {
			continue
		}
		now := time.Now()
		n, err := epochOf(at)
		if err != nil {
			s.Error(err)
			return seen
		}
		last, seen = at, append(seen, shown{n, now})
	}
	return seen
}

// epochOf reads from a metadata file which epoch its table holds.
func epochOf(at string) (uint64, error) {
	data, err := os.ReadFile(strings.TrimPrefix(at, "file://"))
	if err != nil {
		return 0, err
	}
	var meta struct{ Properties map[string]string }
	if err := json.Unmarshal(data, &meta); err != nil {
		return 0, fmt.Errorf("read %s: %w", at, err)
	}
	return strconv.ParseUint(meta.Properties["weir.out.epoch"], 10, 64)
}
