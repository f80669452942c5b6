package cdcpostgres

import (
	"testing"
	"time"

	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/report"
)

// O50: a time that is not known is unavailable, never 0, negative or of 1970, and none is made up by reading on: not by a
// job that has just begun, not by a copy, whose rows have no time of their own, not by heartbeats, and not by what belongs to
// no captured table. Being up to date is a matter of positions, so that neither idleness nor a clock can hide it.
func TestReportsNoTimeThatIsNotKnown(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.t").copying(100)
	j.exec(t, "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE other (id int); INSERT INTO t VALUES (1)")
	began := time.Now().Add(-time.Minute) // the two clocks are one machine's
	a := j.start(t)
	check := func(when string, known bool) {
		t.Helper()
		r := a.reader.Report()
		if at, ok := r.LastEvent.Get(); ok != known || ok && (at.Before(began) || at.After(time.Now().Add(time.Minute))) {
			t.Errorf("%s: the last event is reported as %v, %s", when, at, r.LastEvent.Accuracy())
		}
		if at, ok := r.LastChange.Get(); ok && at.Before(began) {
			t.Errorf("%s: the last change is reported as %v", when, at)
		}
		if head, ok := r.Head.Get(); ok && head.At.Before(began) {
			t.Errorf("%s: the head is reported as of %v", when, head.At)
		}
		if n, ok := r.RetainedBytes.Get(); ok && n < 0 {
			t.Errorf("%s: %d bytes are retained", when, n)
		}
	}
	check("just begun", false)
	a.take(t, 1)
	check("behind the copy", false)
	level := func(when string) {
		t.Helper()
		// The head has to be observed behind the call.
		head, _ := a.reader.Report().Head.Get()
		eventually(t, when+": the head is reached", func() bool {
			a.confirm(t, a.takeEpoch(t))
			r := a.reader.Report()
			h, ok := r.Head.Get()
			consumed, there := r.Consumed.Get()
			return ok && there && h.Sequence > head.Sequence+1 && reached(t, consumed.Fields["lsn"], h.Position.Fields["lsn"])
		})
	}
	j.exec(t, "SELECT pg_logical_emit_message(true, 'weir', ''); INSERT INTO other VALUES (1); ALTER TABLE other ADD v int")
	level("idle")
	check("idle, with messages and other tables", false)
	if r := a.reader.Report(); r.Lifecycle != report.Incremental {
		t.Errorf("idle: it is %s", r.Lifecycle)
	}
	j.exec(t, "INSERT INTO t VALUES (2)")
	a.take(t, 1)
	check("behind a row of the log", true)
	before, _ := a.reader.Report().LastEvent.Get()
	j.exec(t, "INSERT INTO other VALUES (2); SELECT pg_logical_emit_message(true, 'weir', '')")
	level("idle again")
	if after, ok := a.reader.Report().LastEvent.Get(); !ok || !after.Equal(before) {
		t.Errorf("the last event moved from %v to %v without one", before, after)
	}
}

// reached reports whether a position lies at another or behind it.
func reached(t *testing.T, at, goal string) bool {
	t.Helper()
	var lsn [2]position.LSN
	for i, text := range []string{at, goal} {
		var err error
		if lsn[i], err = position.ParseLSN(text); err != nil {
			t.Fatal(err)
		}
	}
	return lsn[0] >= lsn[1]
}
