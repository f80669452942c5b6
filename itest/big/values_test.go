package big

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/services/weir/verify/audit"
)

const valuesSpec = `apiVersion: weir/v1
job: big
epoch: {interval: 250ms}
sources:
  db:
    type: postgres
    url: ${SOURCE_URL}
    tables: ["public.t"]
    snapshot: {mode: initial}
sinks:
  copy: {from: [db], type: postgres, url: "${TARGET_URL}", schema: copy, mode: upsert}
`

// O48: a value of 60 MB, or of nearly as much as is carried, where a message of the bus carries 1 MB: it passes by the copy and by
// the log, whole.
func TestValueOfManyMegabytes(t *testing.T) {
	size := 60
	if large() {
		size = 250
	}
	s := setting(t)
	s.exec(t, s.source, "CREATE TABLE t (id int PRIMARY KEY, v text); ALTER TABLE t ALTER v SET STORAGE EXTERNAL")
	s.exec(t, s.source, "INSERT INTO t SELECT 1, repeat(md5('a'), $1::int * 31250)", size)
	s.exec(t, s.source, "INSERT INTO t SELECT g, repeat('x', (1 << 20) - g * 1024) FROM generate_series(2, 20) g") // about max_payload
	source := watch(t, s.Of(mesh.CDCPostgres)[0].PID())
	sink := watch(t, s.Of(mesh.Sink)[0].PID())
	s.Submit(t, job, valuesSpec)
	s.CaughtUp(t, job)
	s.exec(t, s.source, "INSERT INTO t SELECT 101, repeat(md5('b'), $1::int * 31250)", size)
	s.exec(t, s.source, "INSERT INTO t SELECT 100 + g, repeat('y', (1 << 20) - 16384 + g * 1024) FROM generate_series(2, 20) g")
	s.CaughtUp(t, job)
	for who, w := range map[string]*watched{"source": source, "sink": sink} {
		median, peak := w.end(t)
		t.Logf("value of %d MB; resident memory of the %s: median %.0f MiB, peak %.0f MiB", size, who, median, peak)
		if peak > float64(10*size) {
			t.Errorf("the %s had %.0f MiB", who, peak)
		}
	}
	s.same(t, "t")
	s.Verify(t, job)
}

// same compares tables with their copies.
func (s *scene) same(t *testing.T, tables ...string) {
	t.Helper()
	var pairs []audit.TablePair
	for _, table := range tables {
		pairs = append(pairs, audit.TablePair{Source: "public." + table, Target: "copy." + table})
	}
	outcomes, err := audit.CompareTables(t.Context(), audit.CompareConfig{
		SourceURL: s.source.URL("postgres"), TargetURL: s.target.URL("postgres"), Tables: pairs,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range outcomes {
		if !c.Equal() || c.SourceRows == 0 {
			t.Error(c)
		}
	}
}

// A row that cannot be carried stops the job, with a code that a person can act on. What lies before it is at the target,
// what lies behind it is not.
func TestRowThatCannotPass(t *testing.T) {
	cases := []unfit{
		{"above our limit by the log", 270 << 20, false, []string{"public.t (key id)", "the limit is 268435456"}},
	}
	if large() {
		cases = append(cases,
			unfit{"above our limit by the copy", 270 << 20, true, []string{"public.t (key id)", "the limit is 268435456"}},
			unfit{"a field of 1 GB by the log", maxField, false, []string{"public.t (key id)", "the limit is 268435456"}},
			unfit{"a field of 1 GB by the copy", maxField, true, []string{"public.t"}}, // the server's limit or ours
		)
	}
	for _, c := range cases {
		t.Run(c.name, c.run)
	}
}

// maxField is about as much as PostgreSQL takes into one field.
const maxField = 1<<30 - 64

// unfit is a text value of so many bytes, there before the job or written later, and what the reason has to say.
type unfit struct {
	name   string
	bytes  int
	before bool
	says   []string
}

func (c unfit) run(t *testing.T) {
	s := setting(t)
	s.exec(t, s.source, "CREATE TABLE t (id int PRIMARY KEY, v text); ALTER TABLE t ALTER v SET STORAGE EXTERNAL; INSERT INTO t VALUES (1, 'a'), (2, 'b')")
	write := func() {
		s.exec(t, s.source, "INSERT INTO t SELECT 3, repeat('x', $1::int)", c.bytes)
		s.exec(t, s.source, "INSERT INTO t VALUES (4, 'd')")
	}
	if c.before {
		write()
	}
	s.Must(t, "job", "submit", s.File(t, "big.yaml", valuesSpec))
	if !c.before {
		s.CaughtUp(t, job)
		write()
	}
	records := s.Records(t)
	harness.Await(t, 2*time.Minute, "the job to fail", func(ctx context.Context) error {
		head, err := records.Now(ctx, job)
		if err == nil && !head.Phase.AtRest() {
			err = fmt.Errorf("it is %s: %s %s", head.Phase, head.Reason.Code, head.Reason.Text)
		}
		return err
	})
	reason := s.Status(t, job).Reason
	if reason.Code != string(fault.SrcTooBig) {
		t.Errorf("the reason is %+v", reason)
	}
	for _, part := range c.says {
		if !strings.Contains(reason.Text, part) {
			t.Errorf("%q is not in %q", part, reason.Text)
		}
	}
	t.Logf("%s %s", reason.Code, reason.Text)
	if c.before {
		return
	}
	if got := ask[string](t, s.target, "SELECT string_agg(id::text, ' ' ORDER BY id) FROM copy.t"); got != "1 2" {
		t.Errorf("at the target are the rows %s", got)
	}
}
