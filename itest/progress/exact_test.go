package progress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/progress"
	"weir.dev/weir/pkg/report"
)

// recomputed are the fields that may be EXACT while a job follows its logs: each is computed again below, from the databases, the
// manifests and the head record. A field that is not here fails the test until it is.
var recomputed = map[string]func(*settled, *progress.Source, *progress.Reader) error{
	"epoch.delay.took": nil, "epoch.delay.snapshot": nil, "epoch.delay.stage": nil, "epoch.delay.commit": nil,
	"sources.summary.total": nil, "sources.summary.rows": nil, "sources.tables.rows": nil, "sources.tables.copied": nil,
	"sources.enumerator.assigned": nil, "sources.enumerator.completed": nil, "sources.enumerator.running": nil,
	"sources.enumerator.preparedUnsent": nil, "sources.enumerator.tablesNotChunked": nil, "sources.enumerator.handedOut": nil,
	"sources.enumerator.tables.rows": nil, "sources.readers.tables.rows": nil, "sources.readers.rows": nil,
	"sources.readers.activeSplit": (*settled).activeSplit, "sources.readers.consumed": (*settled).consumed, "sources.readers.restored": (*settled).startup,
	"sources.readers.lastChange": (*settled).lastChange, "sources.readers.lastEvent": (*settled).lastEvent,
	"sources.readers.durable": (*settled).cuts, "sources.readers.completed": (*settled).cuts,
	"sources.readers.restore.position": (*settled).restore, "sources.readers.restore.first": (*settled).restore,
	"sources.readers.beat": (*settled).beat, "sources.readers.roundTrip": (*settled).beat, "sources.readers.pending": (*settled).beat,
}

// marker is a row that was committed at the source at a moment.
type marker struct {
	id int
	at time.Time
}

// script is one run of changes, with what it has done.
type script struct {
	*scene

	random     *rand.Rand
	look, sees *pgx.Conn // to the source and to the target
	nextRow    int
	markers    []marker
	restored   map[epoch.Ref]*epoch.Manifest
	beats      map[string]int // seen, by reader
}

// settled is what is shown of a job at rest between two epochs, with what it is held against.
type settled struct {
	s         *script
	d         progress.Detail
	head      job.Head
	committed *epoch.Manifest
	restored  *epoch.Manifest // nil in a first attempt
	// ends is where each source's log was before and after the detail was read.
	ends [2]map[string]position.Position
	// event is when the last change of each source was committed, at the earliest and at the latest.
	event map[string][2]time.Time
	last  *settled // the one before
}

// Whatever is shown EXACT is what can be computed again of sources, manifests and head record, after any changes. The script of
// changes is drawn by WEIR_EXACT_SEED; WEIR_EXACT_ROUNDS is how long it is.
func (s *scene) exact(t *testing.T) {
	seed, rounds := number("WEIR_EXACT_SEED", 1), number("WEIR_EXACT_ROUNDS", 3)
	rec := s.mesh.Records(t)
	run := &script{
		scene: s, random: rand.New(rand.NewPCG(uint64(seed), 0)), restored: make(map[epoch.Ref]*epoch.Manifest), beats: make(map[string]int),
		look: connect(t, s.pg), sees: connect(t, s.target),
	}
	last := run.settle(rec, nil)
	run.nextRow = 100_000 * int(last.d.Fence) // no run touches the rows of another
	for round := range rounds {
		want, event := run.change()
		s.mesh.CaughtUp(t, "shop")
		now := run.settle(rec, last)
		now.event = event
		if err := now.judge(want); err != nil {
			t.Errorf("round %d of seed %d: %v", round, seed, err)
		}
		last = now
	}
}

func connect(t *testing.T, to *harness.Postgres) *pgx.Conn {
	t.Helper()
	conn, err := to.Connect(t.Context(), "postgres")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// watermarks holds those of splits that are read against what they have to be: exact, and each with no lower one.
func (s *scene) watermarks(src *progress.Source) {
	if src.Enumerator == nil {
		return
	}
	for _, one := range src.Enumerator.Read {
		high, err := exactly(one.High)
		if err != nil || high == "" || one.Low.Accuracy() != report.Unsupported {
			s.t.Errorf("split %s of %s: watermark %q, %v", one.ID, one.Table, high, err)
		}
	}
}

func number(variable string, fallback int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return fallback
}

// change makes random changes and returns how many rows of each table went into the logs.
func (s *script) change() (rows map[string]uint64, event map[string][2]time.Time) {
	rows, event = make(map[string]uint64), make(map[string][2]time.Time)
	for _, source := range []string{"pg", "my"} {
		began := time.Now()
		for range 1 + s.random.IntN(3) {
			s.statement(source, s.random.IntN(3), 1+s.random.IntN(40), rows)
		}
		event[source] = [2]time.Time{began, time.Now()}
	}
	began, id := time.Now(), s.nextRow
	s.nextRow++
	s.source(fmt.Sprintf("INSERT INTO canary_a VALUES (%d, 'marker')", id))
	s.markers = append(s.markers, marker{id, time.Now()})
	event["pg"] = [2]time.Time{began, time.Now()}
	rows["public.canary_a"]++
	return rows, event
}

// statement makes n rows, which no other statement touches, and changes or removes them when kind says so.
func (s *script) statement(source string, kind, n int, rows map[string]uint64) {
	from := s.nextRow
	s.nextRow += n
	run, table, counts := s.source, "canary_b", "public.canary_b"
	values := fmt.Sprintf("SELECT i, 's' FROM generate_series(%d, %d) i", from, from+n-1)
	if source == "my" {
		run, table, counts = func(sql string) { s.mysql("canary", sql) }, "goods_b", "canary.goods_b"
		values = fmt.Sprintf("WITH RECURSIVE n AS (SELECT %d AS i UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT i, 's' FROM n", from, from+n-1)
	}
	where := fmt.Sprintf(" WHERE id BETWEEN %d AND %d", from, from+n-1)
	run("INSERT INTO " + table + " " + values)
	rows[counts] += uint64(n)
	switch kind {
	case 1:
		run("UPDATE " + table + " SET v = 'u'" + where)
		rows[counts] += uint64(n)
	case 2:
		run("DELETE FROM " + table + where)
		rows[counts] += uint64(n)
	}
}

// settle waits until everything shown is of one moment between two epochs.
func (s *script) settle(rec *mesh.Records, last *settled) *settled {
	s.t.Helper()
	out := &settled{s: s, last: last}
	since := time.Now()
	out.ends[0] = s.logEnds()
	harness.Await(s.t, 30*time.Second, "reports of a moment between two epochs", func(ctx context.Context) error {
		before, err := rec.Now(ctx, "shop")
		if err != nil {
			return err
		}
		if out.d, err = s.detail(ctx); err != nil {
			return err
		}
		if out.head, err = rec.Now(ctx, "shop"); err != nil {
			return err
		}
		h := &out.head
		if h.Durable == nil || h.InFlight != nil || before.Durable == nil || h.Durable.Ref != before.Durable.Ref ||
			h.Committed != h.Durable.Epoch || out.d.Epoch.InFlight != 0 || out.d.Epoch.Committed != uint64(h.Committed) || out.d.Fence != uint64(h.Fence) {
			return fmt.Errorf("committed epoch %d, shown %d", h.Committed, out.d.Epoch.Committed)
		}
		for i := range out.d.Sources {
			src := &out.d.Sources[i]
			if src.Lifecycle != report.Incremental || src.Enumerator == nil || src.Summary.Missing > 0 {
				return fmt.Errorf("%s is %s", src.Name, src.Lifecycle)
			}
			for _, r := range src.Readers {
				if r.Observed.Before(since) {
					return errors.New(r.Subtask + " has not reported since")
				}
			}
		}
		if out.committed, err = rec.Manifest(ctx, "shop", h.Durable.Ref); err != nil {
			return err
		}
		if from := h.Plan.Restore; from != nil && s.restored[from.Ref] == nil {
			m, err := rec.Manifest(ctx, "shop", from.Ref)
			if err != nil { // the newest ten are kept: the epoch still has to be the plan's
				s.t.Logf("manifest of the restored epoch: %v", err)
				m = &epoch.Manifest{Epoch: from.Epoch}
			}
			s.restored[from.Ref] = m
		}
		if from := h.Plan.Restore; from != nil {
			out.restored = s.restored[from.Ref]
		}
		return nil
	})
	out.ends[1] = s.logEnds()
	s.judge(&out.d)
	return out
}

// logEnds asks both servers where their logs are.
func (s *script) logEnds() map[string]position.Position {
	s.t.Helper()
	var lsn string
	if err := s.look.QueryRow(s.t.Context(), "SELECT pg_current_wal_insert_lsn()::text").Scan(&lsn); err != nil {
		s.t.Fatal(err)
	}
	gtids, err := s.my.Text(s.t.Context(), "", "SELECT @@GLOBAL.gtid_executed")
	if err != nil {
		s.t.Fatal(err)
	}
	return map[string]position.Position{
		"pg": position.New(position.PostgresLSN, map[string]string{"lsn": lsn}),
		"my": position.New(position.MySQLGTID, map[string]string{position.FieldGTIDs: strings.ReplaceAll(gtids, "\n", "")}),
	}
}

// judge computes everything again that is EXACT.
func (x *settled) judge(changed map[string]uint64) error {
	var errs []error
	for _, path := range exactPaths(&x.d) {
		if _, known := recomputed[path]; !known {
			errs = append(errs, fmt.Errorf("%s is EXACT, and nothing computes it again", path))
		}
	}
	errs = append(errs, x.delay())
	for i := range x.d.Sources {
		src := &x.d.Sources[i]
		errs = append(errs, x.counts(src), x.rows(src, &x.last.d.Sources[i], changed))
		for k := range src.Readers {
			r := &src.Readers[k]
			for path, again := range recomputed {
				if again == nil || r.Copies {
					continue
				}
				if err := again(x, src, r); err != nil {
					errs = append(errs, fmt.Errorf("%s of %s: %w", path, r.Subtask, err))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// exactPaths are the fields of a detail that are EXACT, without their indices.
func exactPaths(d *progress.Detail) []string {
	raw, _ := json.Marshal(d.Status)
	var v any
	_ = json.Unmarshal(raw, &v)
	found := make(map[string]bool)
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				walk(path, one)
			}
		case map[string]any:
			if v["accuracy"] == string(report.Exact) {
				found[path] = true
			}
			for k, one := range v {
				walk(strings.TrimPrefix(path+"."+k, "."), one)
			}
		}
	}
	walk("", v)
	var all []string
	for p := range found {
		all = append(all, p)
	}
	slices.Sort(all)
	return all
}

// exactly is the value of a field that has to be EXACT.
func exactly[T any](v report.Value[T]) (T, error) {
	got, ok := v.Get()
	if !ok || v.Accuracy() != report.Exact {
		return got, fmt.Errorf("%v is %s", got, v.Accuracy())
	}
	return got, nil
}

func (x *settled) cut(m *epoch.Manifest, r *progress.Reader) position.Position {
	id, err := plan.ParseSubtask(r.Subtask)
	if err != nil || m == nil {
		return position.Position{}
	}
	return m.Subtasks[id].Position
}
