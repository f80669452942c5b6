package generator

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
)

// Name is the word for the type in specs and reports.
const Name = "generator"

// Capability is what a node offers that can run it.
const Capability = "source:" + Name

// pace is how long a reader with a rate lets rows gather before it emits them.
const pace = 5 * time.Millisecond

// Connector opens generators. The zero value is ready.
type Connector struct{}

// OpenEnumerator returns an enumerator that has nothing to hand out: the readers share the indexes by themselves.
func (Connector) OpenEnumerator(context.Context, source.Config) (source.Enumerator, error) {
	return &enumerator{}, nil
}

// OpenReader returns a reader at the restored position.
func (Connector) OpenReader(_ context.Context, cfg source.Config) (source.Reader, error) {
	g, ok := cfg.Source.Config.(*spec.GeneratorSource)
	if !ok {
		return nil, fmt.Errorf("source %s is of type %s, not a generator", cfg.Source.Name, cfg.Source.Type)
	}
	r := &reader{
		seq: NewSequence(*g), index: cfg.Subtask.Index, rate: float64(g.Rate) / float64(g.Readers),
		batch: cfg.Batch, per: int64(g.TransactionRows), torn: int64(cfg.MaxTransactionRows), end: -1,
	}
	if r.torn <= 0 {
		r.torn = r.per
	}
	if cfg.Restore != nil {
		var st state
		err := json.Unmarshal(cfg.Restore, &st)
		switch {
		case err != nil:
			return nil, fault.Wrap(err, fault.SrcPosition, "sources."+cfg.Source.Name, "the saved state is not a generator's")
		case st.Readers != g.Readers:
			return nil, fault.New(fault.SrcPosition, "sources."+cfg.Source.Name, fmt.Sprintf(
				"the state was saved by %d readers, there are %d now", st.Readers, g.Readers))
		}
		r.next = st.Next
		r.restored = report.ExactOf(r.at())
	}
	for i := range g.Tables {
		t, err := newTable(i, g.Columns)
		if err != nil {
			return nil, err
		}
		r.tables = append(r.tables, t)
	}
	r.began, r.from = time.Now(), r.next
	r.publish(time.Time{})
	return r, nil
}

// Release has nothing to drop.
func (Connector) Release(context.Context, source.Config) error { return nil }

// state is a reader's saved state.
type state struct {
	Next    int64 `json:"next"`
	Readers int   `json:"readers"`
}

// reader makes one reader's rows.
type reader struct {
	seq    Sequence
	index  int
	tables []*table
	// next is the number of the reader's next row; end is where a drain has fixed the end, or negative.
	next, end int64
	input     bool
	batch     int64
	// per is the size of a transaction, torn the size from which it may be cut.
	per, torn int64
	// rate is in rows per second, zero for no limit; it counts from row from, made at began.
	rate     float64
	began    time.Time
	from     int64
	rows     uint64
	restored report.Value[position.Position]
	report   atomic.Pointer[report.Reader]
	// looks counts observations of the source's head: every look at the report is one, as the generator is its own log.
	looks atomic.Uint64
	// passed is the epoch of the last barrier.
	passed atomic.Uint64
}

// Poll makes what is due, at most a few batches, and ends between two transactions.
func (r *reader) Poll(ctx context.Context, out source.Output, wake <-chan struct{}) (source.Status, error) {
	if last := r.last(); last >= 0 && r.next >= last {
		return source.Status{Input: r.input, Drained: true}, nil
	}
	due, err := r.due(ctx, wake)
	if err != nil {
		return source.Status{}, err
	}
	if due > r.next {
		if err := r.emit(ctx, out, due); err != nil {
			return source.Status{}, err
		}
		r.input = true
		r.publish(time.Now())
	}
	return source.Status{Input: r.input}, nil
}

// last is the number after the reader's last row, negative without an end.
func (r *reader) last() int64 {
	if r.end >= 0 {
		return r.end
	}
	return r.seq.Len(r.index)
}

// due waits until rows may be made and returns the number up to which. It is at most next when there is nothing to do.
func (r *reader) due(ctx context.Context, wake <-chan struct{}) (int64, error) {
	last := r.last()
	more := last < 0 || r.next < last
	to := r.next + 1<<20
	if r.rate > 0 {
		to = r.from + int64(time.Since(r.began).Seconds()*r.rate)
	}
	if more && to > r.next {
		if last >= 0 {
			to = min(to, last)
		}
		return to, nil
	}
	var timer <-chan time.Time
	if more {
		t := time.NewTimer(pace)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-wake: // the caller looks at everything after a poll, so its signal is not lost
	case <-timer:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	return r.next, nil
}

// emit makes rows up to a number, or up to a few batches, whichever comes first.
func (r *reader) emit(ctx context.Context, out source.Output, to int64) error {
	budget := r.batch * int64(min(len(r.tables), 8))
	for r.next < to || r.inside() {
		row := r.seq.At(r.index, r.next)
		t := r.tables[row.Table]
		r.next++
		r.rows++
		t.add(r.seq, row, uint64(r.next))
		if n := int64(t.b.Bytes()); n >= r.batch {
			if err := r.flush(ctx, out, t); err != nil {
				return err
			}
			budget -= n
		}
		if budget <= 0 && !r.inside() {
			break
		}
	}
	for _, t := range r.tables {
		if err := r.flush(ctx, out, t); err != nil {
			return err
		}
	}
	return nil
}

// inside reports whether the next row belongs to a transaction that has begun and may not be cut here. The end of a
// bounded generator ends its last transaction.
func (r *reader) inside() bool {
	done := r.next % r.per
	if last := r.seq.Len(r.index); last >= 0 && r.next >= last {
		return false
	}
	return done != 0 && done < r.torn
}

func (r *reader) flush(ctx context.Context, out source.Output, t *table) error {
	if t.b.Rows() == 0 {
		return nil
	}
	b, err := t.b.Flush()
	if err != nil {
		return err
	}
	return out.Emit(ctx, *b, r.at())
}

func (r *reader) at() position.Position {
	return position.New(position.Generator, map[string]string{
		"reader": strconv.Itoa(r.index), "next": strconv.FormatInt(r.next, 10),
	})
}

// Snapshot is the number of the next row.
func (r *reader) Snapshot(e epoch.ID) (source.Cut, error) {
	r.passed.Store(uint64(e))
	b, err := json.Marshal(state{Next: r.next, Readers: int(r.seq.readers)})
	r.input = false
	last := r.seq.Len(r.index)
	return source.Cut{State: b, Position: r.at(), Torn: r.next%r.per != 0 && r.next != last}, err
}

// Receive is never called: the enumerator has nothing to say.
func (r *reader) Receive([]byte) error { return fmt.Errorf("a generator's reader takes no messages") }

// Confirm has nothing to forget.
func (r *reader) Confirm(epoch.ID, source.Cut) {}

// Drain ends the sequence at the rows made so far.
func (r *reader) Drain(context.Context) error {
	r.end = r.next
	return nil
}

// Report is the latest progress.
func (r *reader) Report() report.Reader {
	after := r.passed.Load() // before the report: what was emitted up to that barrier is in it
	v := *r.report.Load()
	if at, ok := v.Consumed.Get(); ok {
		v.Head = report.ExactOf(report.SourceHead{Position: at, At: time.Now().UTC(), Sequence: r.looks.Add(1), After: after})
	}
	return v
}

// Close has nothing to free.
func (r *reader) Close() error { return nil }

// publish makes a new report.
func (r *reader) publish(at time.Time) {
	v := report.Reader{
		Connector: Name, Lifecycle: report.Incremental, ActiveSplit: report.UnsupportedOf[string](),
		Consumed: report.ExactOf(r.at()), Restored: r.restored, Rows: report.ExactOf(r.rows),
		LastEvent:     report.UnsupportedOf[time.Time](),
		RetainedBytes: report.UnsupportedOf[int64](),
	}
	if !at.IsZero() {
		v.LastChange = report.ExactOf(at.UTC())
	}
	r.report.Store(&v)
}

// enumerator decides nothing.
type enumerator struct{ draining bool }

func (e *enumerator) Poll(ctx context.Context, _ source.Directory, wake <-chan struct{}) (source.Status, error) {
	if e.draining {
		return source.Status{Drained: true}, nil
	}
	select {
	case <-wake:
	case <-ctx.Done():
		return source.Status{}, context.Cause(ctx)
	}
	return source.Status{}, nil
}

func (e *enumerator) Snapshot(epoch.ID) (source.Cut, error) { return source.Cut{}, nil }
func (e *enumerator) Receive(int, []byte) error {
	return fmt.Errorf("a generator's enumerator takes no messages")
}
func (e *enumerator) Confirm(epoch.ID, source.Cut) {}
func (e *enumerator) Durable(epoch.ID)             {}

func (e *enumerator) Drain(context.Context) error {
	e.draining = true
	return nil
}

func (e *enumerator) Report() report.Enumerator {
	return report.Enumerator{Connector: Name, Assignment: report.NotApplicable}
}
func (e *enumerator) Close() error { return nil }
