package cdcpostgres

import (
	"context"
	"fmt"
	"slices"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/services/cdc-postgres/internal/core"
	"weir.dev/weir/services/cdc-postgres/internal/pgoutput"
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
		r.plans[c.Table] = c.plan.table
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
	r.share.Finish(c.ChunkID, c.mark.Encode(), c.rows, c.cut)
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
	for i := range c.rows {
		rest, err := c.plan.scan.Put(c.data)
		if err != nil {
			return r.undecodable(err)
		}
		size := len(c.data) - len(rest)
		c.data = rest
		r.seq++
		t.builder.EndRow(rows.Meta{Op: rows.OpRead, Seq: r.seq, Ts: rows.NoTs, Txn: uint64(c.mark.End), Ord: uint32(c.first + i)})
		if err := r.batches.Grown(ctx, out, t.builder, size); err != nil {
			return err
		}
	}
	if err := r.batches.Flush(ctx, out, t.builder); err != nil {
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
	at := r.tracker.Position()
	for _, id := range tables {
		t := r.plans[id]
		r.seq++
		t.builder.Truncate(rows.Meta{Op: rows.OpTruncate, Seq: r.seq, Ts: rows.NoTs, Txn: uint64(at.End)})
		if err := r.batches.Grown(ctx, out, t.builder, 0); err != nil {
			return err
		}
	}
	r.paused, r.standing = true, false
	r.progress.lifecycle(report.Snapshot)
	r.share.Paused()
	return nil
}

// follow takes the log, or takes it up again behind a pause.
func (r *reader) follow(split *cdc.LogSplit) error {
	filter, err := cdc.NewFilter(split, r.order, func(b []byte) (cdc.Mark[uint32, position.LSN], error) { return core.ParseMark(b) })
	if err != nil {
		return fault.Wrap(err, fault.SrcPosition, r.where, err.Error())
	}
	r.filter, r.only = filter, split.Only
	if r.tracker == nil {
		if err := r.begin(split.Log); err != nil {
			return err
		}
	}
	for _, t := range r.tables {
		if t.builder == nil {
			continue
		}
		if err := r.sieve(t); err != nil {
			return err
		}
	}
	r.passedAt(r.tracker.Position().End)
	r.paused, r.reopen, r.locator = false, false, nil
	if r.filter != nil {
		if r.locator, err = newLocator(split, r.source.Tables); err != nil {
			return fault.Wrap(err, fault.SrcPosition, r.where, err.Error())
		}
	}
	r.again(r.filter != nil)
	return nil
}

// begin places the reader where the log was left, or at its beginning.
func (r *reader) begin(log []byte) error {
	var last *readerState
	if log != nil {
		var err error
		if last, err = decodeReaderState(log, r.where); err != nil {
			return err
		}
		r.schemas = last.Schemas
	}
	for i := range r.source.Tables {
		t := &r.source.Tables[i]
		r.schemas[rows.TableID(t.String())] = t.sent(last)
	}
	from := r.source.position(last)
	r.tracker = core.NewTracker(from)
	r.progress.start(from)
	return nil
}

func (r *reader) captured(id cdc.TableID) *capturedTable {
	i := slices.IndexFunc(r.source.Tables, func(t capturedTable) bool { return t.id() == id })
	if i < 0 {
		return nil
	}
	return &r.source.Tables[i]
}

// order is how the keys of a table compare; nil when only the server knows.
func (r *reader) order(id cdc.TableID) cdc.Order {
	t := r.captured(id)
	if t == nil {
		return nil
	}
	return core.KeyOrder(t.forms())
}

// sieve gives a bound table its part of the filter.
func (r *reader) sieve(t *table) error {
	if r.filter == nil {
		return nil
	}
	id := cdc.TableID(t.relation.OID)
	t.filter, t.forms = r.filter.Table(id), nil
	c := r.captured(id)
	if t.filter == nil || c == nil {
		return nil
	}
	if len(t.key) < len(c.Key) {
		return columnsChanged(r.where, c)
	}
	now := r.schemas[t.id()].Columns
	for i, k := range c.Key { // under whatever name, in a form that is compared alike
		at := t.key[i]
		column := t.relation.Columns[at]
		if now.List[at].Number != c.Version.NumberOf(k.Name) ||
			(k.Form == core.KeyInt) != (core.KeyFormOf(column.TypeOID, false) == core.KeyInt) {
			return columnsChanged(r.where, c)
		}
	}
	t.forms = c.forms()
	return nil
}

// keyBuffer holds the key of the row being judged.
type keyBuffer struct {
	key  cdc.Key
	data []byte
	ends []int
}

// keyHalf is which of a change's rows a key is from.
type keyHalf bool

const (
	oldKey keyHalf = false
	newKey keyHalf = true
)

// counts judges a change of the row with the key in cells: whether the copy does not have it.
func (r *reader) counts(t *table, cells []pgoutput.Cell, half keyHalf) (bool, error) {
	if r.filter == nil {
		return true, nil
	}
	_, xid, _ := r.tracker.Transaction()
	key, err := r.keyOf(t, cells)
	if err != nil {
		return false, err
	}
	v := t.filter.Judge(xid, key)
	if v == cdc.Locate {
		at := r.place.new
		if half == oldKey {
			at = r.place.old
		}
		if at == unlocated {
			return false, fmt.Errorf("table %s: a key that was not located: %w", t.id(), fault.Bug)
		}
		v = t.filter.JudgeAt(xid, int(at))
	}
	return v == cdc.Emit, nil
}

// had reports whether every chunk of a table has the open transaction: what it did to the table is not looked at, in
// whatever form the table was then.
func (r *reader) had(oid uint32) bool {
	if r.filter == nil {
		return false
	}
	f := r.filter.Table(cdc.TableID(oid))
	_, xid, _ := r.tracker.Transaction()
	return f != nil && f.Truncate(xid) == cdc.Drop
}

// find takes what was located for the message at an offset of the chunk.
func (r *reader) find(at int) {
	for len(r.located) > 0 && r.located[0].at < at {
		r.located = r.located[1:]
	}
	r.place = located{old: unlocated, new: unlocated}
	if len(r.located) > 0 && r.located[0].at == at {
		r.place = r.located[0]
	}
}

// keyOf is the key of a row in the log, valid until the next one. The log is read in text form while it catches up.
func (r *reader) keyOf(t *table, cells []pgoutput.Cell) (cdc.Key, error) {
	b := &r.key
	b.data, b.ends = b.data[:0], b.ends[:0]
	for i, form := range t.forms {
		c := &cells[t.key[i]]
		if c.Kind != pgoutput.CellText {
			return nil, fmt.Errorf("table %s, column %q: a key cell of kind %q", t.id(), t.columns[t.key[i]].Name, c.Kind)
		}
		var err error
		if b.data, err = form.Cell(b.data, c.Data); err != nil {
			return nil, fmt.Errorf("table %s, column %q: %w", t.id(), t.columns[t.key[i]].Name, err)
		}
		b.ends = append(b.ends, len(b.data))
	}
	b.key = b.key[:0]
	from := 0
	for _, end := range b.ends {
		b.key = append(b.key, b.data[from:end:end])
		from = end
	}
	return b.key, nil
}

// passed tells the filter how far the log is, between two transactions.
func (r *reader) passed() {
	if r.filter != nil && !r.tracker.Open() {
		r.passedAt(r.tracker.Position().End)
	}
}

func (r *reader) passedAt(at position.LSN) {
	r.share.Passed(r.filter.Passed(at)...)
	if !r.filter.Done() {
		r.progress.lifecycle(report.CatchUp)
		return
	}
	r.filter, r.locator = nil, nil
	r.progress.lifecycle(report.Incremental)
	if r.standing {
		r.progress.lifecycle(report.Snapshot) // what it stands for is still to be copied
	}
	if r.only {
		r.stopped = true
		return
	}
	r.reopen = true // now that no key has to be known, every value may come in binary form
}
