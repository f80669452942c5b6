package cdcmysql

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/mycodec"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/services/cdc-mysql/internal/core"
)

// copy emits a chunk that is at hand, whole, and gives the copier its next. done says that Poll is to return, so that a
// barrier can pass between two chunks.
func (r *reader) copy(ctx context.Context, out source.Output) (done bool, err error) {
	if r.copier == nil {
		return false, nil
	}
	if r.ready == nil {
		select {
		case r.ready = <-r.copier.done:
		default:
		}
	}
	r.feed()
	c := r.ready
	if c == nil {
		return false, nil
	}
	r.ready = nil
	if c.err != nil {
		return false, c.err
	}
	if c.bare {
		r.plans[c.Table] = c.plan
		return true, nil
	}
	switch c.step {
	case halves.Fill, halves.Filled:
		return true, r.keep(ctx, c)
	case halves.Fetched:
		return true, r.emitSegment(ctx, out, c)
	case halves.Whole:
	}
	if err := r.emitChunk(ctx, out, c); err != nil {
		return false, err
	}
	r.share.Finish(c.ChunkID, c.mark, c.rows(), c.cut)
	r.progress.read(c.String())
	return true, nil
}

// feed gives the copier a chunk when it has room.
func (r *reader) feed() {
	for len(r.copier.work) < cap(r.copier.work) {
		w, ok := r.spools.Next()
		if !ok {
			return
		}
		r.copier.work <- w
		r.progress.split(w.String())
	}
}

// emitChunk emits the rows of a chunk, or of a segment of it, as of its mark.
func (r *reader) emitChunk(ctx context.Context, out source.Output, c *copied) error {
	t := c.plan.table
	cells := make([][]byte, len(t.columns))
	emit := func(i uint64, cells [][]byte, decoders []mycodec.Decoder, size int) error {
		if err := t.put(cells, decoders); err != nil {
			return r.undecodable(err)
		}
		r.seq++
		t.EndRow(rows.Meta{Op: rows.OpRead, Seq: r.seq, Ts: rows.NoTs, Ord: uint32(c.first + i)})
		return r.batches.Grown(ctx, out, t.Gathering, size)
	}
	for i := range c.count {
		before := len(c.data)
		c.next(cells)
		if err := emit(i, cells, t.text, before-len(c.data)); err != nil {
			return err
		}
	}
	for i, row := range c.later {
		if err := emit(c.count+uint64(i), row, t.log, 0); err != nil {
			return err
		}
	}
	if err := r.batches.Flush(ctx, out, t.Gathering); err != nil {
		return err
	}
	r.copier.recycle(c)
	return nil
}

// heed does what the enumerator asks of the reader of the log: to stop, and to empty tables that are copied anew.
func (r *reader) heed(ctx context.Context, out source.Output) error {
	tables, asked := r.share.Pausing()
	if !asked || r.tracker == nil || !r.safe() {
		return nil
	}
	for _, id := range tables {
		if r.plans[id] == nil {
			select { // the answer ends a Poll, and the next one comes here again
			case r.copier.tell <- id:
			default:
			}
			return nil
		}
	}
	for _, id := range tables {
		if err := r.empty(ctx, out, r.plans[id].table, rows.Meta{Ts: rows.NoTs}); err != nil {
			return err
		}
	}
	r.paused, r.standing = true, false
	r.share.Paused()
	return nil
}

// empty emits the truncate of a table.
func (r *reader) empty(ctx context.Context, out source.Output, t *table, m rows.Meta) error {
	r.seq++
	m.Op, m.Seq = rows.OpTruncate, r.seq
	t.Truncate(m)
	return r.batches.Grown(ctx, out, t.Gathering, 0)
}

// follow takes the log, or takes it up again behind a pause.
func (r *reader) follow(split *cdc.LogSplit) error {
	captured := byID(r.source.Tables)
	order := func(id cdc.TableID) cdc.Order {
		if t := captured[id]; t != nil && !t.Collated && !t.Whole {
			return cdc.Bytewise{}
		}
		return nil
	}
	var marks core.Point // of no family while there are none
	filter, err := cdc.NewFilter(split, order, func(b []byte) (cdc.Mark[core.Txn, *core.Point], error) {
		m, err := core.ParseMark(b)
		if err == nil {
			marks.Family = m.At().Family
			marks.Join(m.At())
		}
		return m, err
	})
	if err != nil {
		return fault.Wrap(err, fault.SrcPosition, r.where, err.Error())
	}
	r.link.expect(marks)
	r.filter, r.only, r.locator = filter, split.Only, newLocator(r.opened, split, captured)
	if r.tracker == nil {
		if err := r.begin(split.Log); err != nil {
			return err
		}
	}
	for _, t := range r.tables {
		t.filter = r.filter.Table(t.captured.ID)
	}
	r.paused = false
	r.passed()
	r.tracker.Rewind()
	r.session++
	from := r.tracker.Before().Clone()
	if before := r.prepared.from(); before != nil {
		from, r.prepared.back = before.Clone(), true
	}
	r.link.open(r.source, r.session, from, newSeen(r.tracker.Before().Clone(), r.prepared.list), r.locator)
	return nil
}

// begin places the reader where the log was left, or at its beginning.
func (r *reader) begin(log []byte) error {
	from := core.Position{Before: r.source.Start}
	var waiting []pending
	if log != nil {
		last, err := decodeReaderState(log, r.where)
		if err != nil {
			return err
		}
		r.schemas, from, waiting = last.Schemas, last.Position, last.Pending
	}
	if r.schemas == nil {
		r.schemas = make(map[rows.TableID]schemaVersion)
	}
	for _, t := range r.source.Tables {
		id := rows.TableID(t.String())
		last, ok := r.schemas[id]
		if !ok || last.Version < t.Number {
			last = schemaVersion{Version: t.Number, Fingerprint: t.Fingerprint}
		}
		if last.Columns == nil && last.Fingerprint == t.Fingerprint {
			last.Columns = slices.Sorted(maps.Keys(t.sourceTypes()))
		}
		r.schemas[id] = last
	}
	r.tracker = core.NewTracker(core.Position{Before: from.Before.Clone(), Torn: from.Torn})
	r.prepared = newPrepared(waiting)
	r.progress.start(from.Public())
	return nil
}

// passed tells the filter how far the log is, between two transactions.
func (r *reader) passed() {
	if r.filter == nil || r.tracker.Open() {
		return
	}
	done := r.filter.Passed(r.tracker.Before())
	r.share.Passed(done...)
	r.locator.passed(done)
	if !r.filter.Done() {
		r.progress.lifecycle(report.CatchUp)
		return
	}
	r.filter = nil
	r.link.expect(core.Point{})
	for _, t := range r.tables {
		t.filter = nil
	}
	r.progress.lifecycle(report.Incremental)
	r.stopped = r.only
}

// described binds a table as the log describes it: in the schema version sent before when nothing differs, else in the next.
// nil is a table of which no change counts.
func (r *reader) described(ctx context.Context, out source.Output, d *described) (*table, error) {
	t := r.tables[d.captured.ID]
	switch {
	case t != nil && t.described == d:
		return t, nil
	case d.err != nil:
		return nil, d.err
	case t != nil && slices.Equal(t.columns, d.columns):
		t.described = d
		return t, nil
	case t != nil:
		if err := r.batches.Flush(ctx, out, t.Gathering); err != nil { // the rows of the version before go first
			return nil, err
		}
	}
	last := r.schemas[d.id()]
	now := schemaVersion{Version: max(last.Version, firstVersion), Columns: d.names(), Filled: last.Filled}
	t, err := r.bind(d, now.Version, now.Filled)
	if err != nil {
		return nil, err
	}
	if last.Fingerprint != "" && t.Schema().Fingerprint().String() != last.Fingerprint {
		now.Version++
		if now.Filled, err = r.filled(ctx, d, &last); err != nil {
			return nil, err
		}
		if t, err = r.bind(d, now.Version, now.Filled); err != nil {
			return nil, err
		}
	}
	now.Fingerprint = t.Schema().Fingerprint().String()
	r.schemas[d.id()] = now
	if r.filter != nil {
		t.filter = r.filter.Table(d.captured.ID)
	}
	r.tables[d.captured.ID] = t
	return t, nil
}

// undecodable makes the fault of a log, or a copy, that does not read as it should; nil stays nil.
func (r *reader) undecodable(err error) error {
	if err == nil {
		return nil
	}
	return fault.Wrap(err, fault.MYDecode, r.where, err.Error())
}

// judge decides about a change of a row with a key: whether the copy does not have it.
func (r *reader) judge(t *table, key cdc.Key, places []int, at int) (bool, error) {
	if r.filter == nil {
		return true, nil
	}
	txn, _ := r.tracker.Transaction()
	v := t.filter.Judge(txn, key)
	if v == cdc.Locate {
		if at >= len(places) {
			return false, fmt.Errorf("table %s: a key that was not located: %w", t.name, fault.Bug)
		}
		v = t.filter.JudgeAt(txn, places[at])
	}
	return v == cdc.Emit, nil
}
