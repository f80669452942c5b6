package progress

import (
	"errors"
	"fmt"
	"time"

	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/progress"
	"weir.dev/weir/pkg/report"
)

// copied are the rows and chunks that the first copy has read of each table: a chunk has 100 rows, and an empty table one chunk.
var copied = map[string]map[string][2]uint64{
	"pg": {"public.canary_a": {rowsBefore, 80}, "public.canary_b": {900, 9}, "public.canary_empty": {0, 1}},
	"my": {"canary.goods_a": {900, 9}, "canary.goods_b": {900, 9}},
}

// counts computes the splits again from the rows that there were.
func (x *settled) counts(src *progress.Source) error {
	var chunks uint64
	var errs []error
	for _, t := range src.Tables {
		want := copied[src.Name][t.Name]
		chunks += want[1]
		if n, err := exactly(t.Copied); err != nil || n != want[0] {
			errs = append(errs, fmt.Errorf("%d rows of %s are copied, want %d: %w", n, t.Name, want[0], err))
		}
	}
	handed := chunks
	if x.restored != nil { // everything was read before this attempt
		handed = 0
	}
	e := src.Enumerator
	for _, c := range []struct {
		what string
		got  report.Value[uint64]
		want uint64
	}{
		{"assigned", e.Assigned, chunks},
		{"completed", e.Completed, chunks},
		{"running", e.Running, 0},
		{"prepared", e.PreparedUnsent, 0},
		{"tables not cut", e.TablesNotChunked, 0},
		{"handed out", e.HandedOut, handed},
		{"total", src.Summary.Total, chunks},
	} {
		if n, err := exactly(c.got); err != nil || n != c.want {
			errs = append(errs, fmt.Errorf("%s of %s is %d, want %d: %w", c.what, src.Name, n, c.want, err))
		}
	}
	if len(e.Read) > 0 {
		errs = append(errs, fmt.Errorf("watermarks of %s that the log has passed: %+v", src.Name, e.Read))
	}
	return errors.Join(errs...)
}

// rows holds what came since the last moment against what was changed meanwhile.
func (x *settled) rows(src, before *progress.Source, changed map[string]uint64) error {
	var errs []error
	all := uint64(0)
	for i, t := range src.Tables {
		n, ok := t.Rows.Get()
		old, _ := before.Tables[i].Rows.Get()
		if ok && (t.Rows.Accuracy() != report.Exact || before.Tables[i].Name != t.Name) || n-old != changed[t.Name] {
			errs = append(errs, fmt.Errorf("%d rows of %s more (%s), %d were changed", n-old, t.Name, t.Rows.Accuracy(), changed[t.Name]))
		}
		all += changed[t.Name]
	}
	sum := uint64(0)
	for _, r := range src.Readers {
		n, err := exactly(r.Rows)
		sum += n
		errs = append(errs, err)
	}
	n, err := exactly(src.Summary.Rows)
	old, _ := before.Summary.Rows.Get()
	if err != nil || n-old != all || n != sum {
		errs = append(errs, fmt.Errorf("%d rows of %s more, %d were changed; its readers have %d of %d: %w", n-old, src.Name, all, sum, n, err))
	}
	return errors.Join(errs...)
}

func (x *settled) activeSplit(_ *progress.Source, r *progress.Reader) error {
	if split, err := exactly(r.ActiveSplit); err != nil || split != "log" {
		return fmt.Errorf("%q: %w", split, err)
	}
	return nil
}

// consumed lies between the ends of the log before and after it was read: everything was read, and nobody else writes.
func (x *settled) consumed(src *progress.Source, r *progress.Reader) error {
	at, err := exactly(r.Consumed)
	if err != nil {
		return err
	}
	low, ok1 := position.Compare(x.ends[0][src.Name], at)
	high, ok2 := position.Compare(at, x.ends[1][src.Name])
	if src.Name == "pg" { // the end moves without a change
		low, ok1 = -1, true
	}
	if !ok1 || !ok2 || low > 0 || high > 0 {
		return fmt.Errorf("%s is not within %s and %s", at, x.ends[0][src.Name], x.ends[1][src.Name])
	}
	if done, ok := position.Compare(x.cut(x.committed, r), at); !ok || done > 0 {
		return fmt.Errorf("%s is before the committed cut %s", at, x.cut(x.committed, r))
	}
	return nil
}

// startup is where the log was begun: at the restored cut, or before anything that was read.
func (x *settled) startup(_ *progress.Source, r *progress.Reader) error {
	at, err := exactly(r.Restored)
	if err != nil {
		return err
	}
	if want := x.cut(x.restored, r); !want.IsZero() && !at.Equal(want) {
		return fmt.Errorf("%s, the restored cut is %s", at, want)
	}
	consumed, _ := r.Consumed.Get()
	if order, ok := position.Compare(at, consumed); !ok || order > 0 {
		return fmt.Errorf("%s is behind %s", at, consumed)
	}
	return nil
}

// lastChange changes with the position, and only with it.
func (x *settled) lastChange(src *progress.Source, r *progress.Reader) error {
	at, err := exactly(r.LastChange)
	if err != nil {
		return err
	}
	for i := range x.last.d.Sources {
		for _, old := range x.last.d.Sources[i].Readers {
			if old.Subtask != r.Subtask {
				continue
			}
			before, was := old.LastChange.Get()
			a, _ := r.Consumed.Get()
			b, _ := old.Consumed.Get()
			if moved := !a.Equal(b); moved && was && !at.After(before) || !moved && !at.Equal(before) || at.After(r.Observed) {
				return fmt.Errorf("%s after %s, from %s to %s", at, before, b, a)
			}
		}
	}
	return nil
}

// lastEvent is when the last change was committed, between two looks at the clock. MySQL logs whole seconds, or microseconds.
func (x *settled) lastEvent(src *progress.Source, r *progress.Reader) error {
	at, err := exactly(r.LastEvent)
	e := x.event[src.Name]
	if err != nil || at.Before(e[0].Truncate(time.Second)) || at.After(e[1]) || src.Name == "pg" && at.Before(e[0]) {
		return fmt.Errorf("%s is not within %s and %s: %w", at, e[0], e[1], err)
	}
	return nil
}

func (x *settled) cuts(_ *progress.Source, r *progress.Reader) error {
	durable, err1 := exactly(r.Durable)
	completed, err2 := exactly(r.Completed)
	if want := x.cut(x.committed, r); want.IsZero() || !durable.Equal(want) || !completed.Equal(want) {
		return fmt.Errorf("durable %s, completed %s; the manifest has %s", durable, completed, want)
	}
	return errors.Join(err1, err2)
}

func (x *settled) restore(src *progress.Source, r *progress.Reader) error {
	if x.restored == nil {
		if r.Restore != nil || src.Recovery != (progress.Recovery{State: report.Steady}) {
			return fmt.Errorf("a first attempt is restored: %+v, %+v", r.Restore, src.Recovery)
		}
		return nil
	}
	if r.Restore == nil || r.Restore.Epoch != uint64(x.restored.Epoch) || src.Recovery.Epoch != r.Restore.Epoch {
		return fmt.Errorf("%+v, the plan restores epoch %d", r.Restore, x.restored.Epoch)
	}
	from, err := exactly(r.Restore.Position)
	begun, _ := r.Restored.Get()
	if want := x.cut(x.restored, r); err != nil || !from.Equal(begun) || !want.IsZero() && !from.Equal(want) {
		return fmt.Errorf("from %s, the manifest has %s, the log was begun at %s: %w", from, want, begun, err)
	}
	first, err := exactly(r.Restore.First)
	if err != nil {
		return err
	}
	consumed, _ := r.Consumed.Get()
	a, ok1 := position.Compare(from, first)
	b, ok2 := position.Compare(first, consumed)
	if !ok1 || !ok2 || a > 0 || b > 0 {
		return fmt.Errorf("first %s, from %s, consumed %s", first, from, consumed)
	}
	return nil
}

// beat: whatever was committed at the source before it began is visible at the target, and its epoch has it.
func (x *settled) beat(src *progress.Source, r *progress.Reader) error {
	if p, ok := r.Pending.Get(); ok && (r.UnderWay == nil || r.UnderWay.Quiet || p != r.Observed.Sub(r.UnderWay.Began)) {
		return fmt.Errorf("pending %s of %+v", p, r.UnderWay)
	}
	b, ok := r.Beat.Get()
	if !ok {
		if _, whole := r.RoundTrip.Get(); whole || x.s.beats[r.Subtask] > 0 && x.last.d.Fence == x.d.Fence {
			return errors.New("the beat is gone")
		}
		return nil
	}
	x.s.beats[r.Subtask]++
	whole, err := exactly(r.RoundTrip)
	if err != nil || whole != b.Whole() || b.Back().After(r.Observed) || b.Epoch > uint64(x.committed.Epoch) {
		return fmt.Errorf("%s of %+v, reported at %s, committed is epoch %d: %w", whole, b, r.Observed, x.committed.Epoch, err)
	}
	if src.Name != "pg" {
		return nil
	}
	for _, m := range x.s.markers {
		if !m.at.Before(b.Began) {
			continue
		}
		var there bool
		if err := x.s.sees.QueryRow(x.s.t.Context(), "SELECT EXISTS (SELECT FROM copy.canary_a WHERE id = $1)", m.id).Scan(&there); err != nil {
			return err
		}
		if !there {
			return fmt.Errorf("marker %d, committed before %s, is not at the target", m.id, b.Began)
		}
	}
	return nil
}

// delay computes the parts of the committed epoch again from its manifest.
func (x *settled) delay() error {
	d, m := x.d.Epoch.Delay, x.committed
	if d == nil || d.Epoch != uint64(m.Epoch) {
		return fmt.Errorf("delays of %+v, committed is epoch %d", d, m.Epoch)
	}
	slowest := map[string]int64{}
	for _, s := range m.Subtasks {
		for phase, n := range s.Nanos {
			slowest[phase] = max(slowest[phase], n)
		}
	}
	took, err1 := exactly(d.Took)
	snapshot, err2 := exactly(d.Snapshot)
	stage, err3 := exactly(d.Stage)
	commit, err4 := exactly(d.Commit)
	if took != m.Completed.Sub(m.Triggered) || int64(snapshot) != slowest["snapshot"] || int64(stage) != slowest["stage"] || commit <= 0 || commit > time.Since(m.Triggered) {
		return fmt.Errorf("took %s, snapshot %s, stage %s, commit %s of %+v", took, snapshot, stage, commit, slowest)
	}
	return errors.Join(err1, err2, err3, err4)
}
