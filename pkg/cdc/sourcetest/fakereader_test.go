package sourcetest

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow/array"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/cdc/internal/minidb"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/source"
)

// event is what the fake log tells of a change.
type event struct{ xid, place uint64 }

// mark is the fake's mark, with the connector's fault in it.
type mark struct {
	*minidb.Visibility
	byLog bool
}

func (m mark) Contains(e event) bool {
	if m.byLog {
		return e.place <= m.Written
	}
	return m.Visibility.Contains(e.xid)
}

// logState is a place in the log: whole transactions, and changes of the next.
type logState struct{ End, Changes int }

type fakeReader struct {
	session
	fault    fault
	limit    int
	share    *cdc.Share
	chunk    *fakeChunk
	start    int
	at       *logState
	filter   *cdc.Filter[event, uint64]
	paused   bool
	only     bool
	draining bool
	end      int
	seq      uint64
	builders map[int]*rows.Builder
	input    bool
	first    bool // this reader is the one that may have the log
}

// fakeChunk is a chunk whose rows were selected and not emitted yet.
type fakeChunk struct {
	cdc.Work
	keys []int
	vals map[int]uint64
	mark minidb.Visibility
	n    uint64
}

func (c connector) OpenReader(_ context.Context, cfg source.Config) (source.Reader, error) {
	return &fakeReader{
		session: c.db.connect(), fault: c.fault, limit: cfg.MaxTransactionRows, share: cdc.NewShare(2),
		builders: make(map[int]*rows.Builder), first: cfg.Subtask.Index == cdc.LogReader,
	}, nil
}

func (r *fakeReader) Receive(payload []byte) error {
	start, n := binary.Uvarint(payload)
	r.start = int(start)
	return r.share.Receive(payload[n:])
}

func (r *fakeReader) Poll(ctx context.Context, out source.Output, wake <-chan struct{}) (source.Status, error) {
	for {
		worked, changed, err := r.work(ctx, out)
		if err != nil {
			return source.Status{}, err
		}
		for _, m := range r.share.Outbox() {
			if err := out.Tell(ctx, m); err != nil {
				return source.Status{}, err
			}
		}
		drained := r.drained()
		if worked || drained {
			return source.Status{Input: r.input, Drained: drained}, nil
		}
		select {
		case <-wake:
			return source.Status{Input: r.input}, nil
		case <-changed:
		case <-ctx.Done():
			return source.Status{}, context.Cause(ctx)
		}
	}
}

func (r *fakeReader) drained() bool {
	idle := r.chunk == nil && r.share.Waiting() == 0
	switch {
	case r.fault == earlyEnd:
		return r.draining || idle && r.share.Ended()
	case r.at != nil && r.only:
		return idle && r.filter.Done()
	case r.at != nil:
		return r.draining && idle && r.filter.Done() && r.at.End >= r.end
	}
	return idle && (r.draining && !r.first || r.share.Ended())
}

// work does one piece of work, if there is one.
func (r *fakeReader) work(ctx context.Context, out source.Output) (worked bool, changed <-chan struct{}, err error) {
	if split, ok := r.share.Follow(); ok {
		if err := r.follow(split); err != nil {
			return false, nil, err
		}
	}
	if r.chunk != nil {
		return true, nil, r.emitChunk(ctx, out)
	}
	if w, ok := r.share.Next(); ok {
		return true, nil, r.selectChunk(w)
	}
	if r.at != nil && !r.paused && (!r.only || !r.filter.Done()) {
		var txn *minidb.Txn
		if changed, err = r.look(func(db *minidb.DB) {
			if r.at.End < len(db.Log) {
				txn = db.Log[r.at.End]
			}
		}); err != nil || txn == nil {
			return false, changed, err
		}
		return true, nil, r.read(ctx, out, txn)
	}
	changed, err = r.look(func(*minidb.DB) {})
	return false, changed, err
}

func (r *fakeReader) selectChunk(w cdc.Work) error {
	c := &fakeChunk{Work: w, vals: make(map[int]uint64)}
	t := r.db.tables[w.Table]
	_, err := r.look(func(db *minidb.DB) {
		for n, v := range db.Rows[t.number] {
			if t.kind == NoKey || t.in(n, w.Chunk) {
				c.vals[n] = v
			}
		}
		c.mark.Running, c.mark.Next = db.Running()
	})
	c.keys = slices.SortedFunc(maps.Keys(c.vals), t.compare)
	r.chunk = c
	return err
}

func (r *fakeReader) emitChunk(ctx context.Context, out source.Output) error {
	c := r.chunk
	if _, err := r.look(func(db *minidb.DB) { c.mark.Written = uint64(len(db.Log)) }); err != nil {
		return err
	}
	keys := c.keys
	if r.fault == tornChunks && len(keys) > 1 {
		keys = keys[:len(keys)/2]
	}
	r.db.mu.Lock()
	for _, n := range keys {
		r.add(int(c.Table), rows.OpRead, n, c.vals[n], 0, 0)
	}
	r.db.mu.Unlock()
	c.n += uint64(len(keys))
	if c.keys = c.keys[len(keys):]; len(c.keys) == 0 {
		r.share.Finish(c.ChunkID, c.mark.Bytes(), c.n, nil)
		r.chunk = nil
	}
	return r.flush(ctx, out, position.Position{})
}

func (r *fakeReader) follow(split *cdc.LogSplit) error {
	switch {
	case len(split.Log) > 0:
		r.at = &logState{}
		if err := json.Unmarshal(split.Log, r.at); err != nil {
			return err
		}
		if r.fault == positionBehind {
			r.at.Changes = 0
		}
	case r.at == nil:
		r.at = &logState{End: r.start}
	}
	r.paused, r.only = false, split.Only
	if r.fault == noFilter {
		for i := range split.Tables {
			split.Tables[i].Chunks = nil
		}
	}
	order := func(id cdc.TableID) cdc.Order {
		if r.db.tables[id].kind == TextKey {
			return nil
		}
		return cdc.Bytewise{}
	}
	var err error
	if r.filter, err = cdc.NewFilter(split, order, func(b []byte) (cdc.Mark[event, uint64], error) {
		v, err := minidb.ParseVisibility(b)
		return mark{v, r.fault == marksByLog}, err
	}); err != nil {
		return err
	}
	r.share.Passed(r.filter.Passed(uint64(r.at.End))...)
	if r.fault == noFilter {
		for _, t := range split.Tables {
			r.share.Passed(t.ID)
		}
	}
	return nil
}

// read applies the next changes of a transaction, all of it unless it is wide.
func (r *fakeReader) read(ctx context.Context, out source.Output, txn *minidb.Txn) error {
	from := r.at.Changes
	to := len(txn.Changes)
	if to > r.limit {
		to = min(to, from+r.limit)
	}
	place := r.at.End + 1
	r.db.mu.Lock()
	for i := from; i < to; i++ {
		r.judge(event{txn.XID, uint64(place)}, txn.Changes[i], uint64(place), uint32(2*i))
	}
	r.db.mu.Unlock()
	r.at.Changes = to
	if to == len(txn.Changes) {
		*r.at = logState{End: place}
		r.share.Passed(r.filter.Passed(uint64(place))...)
	}
	r.input = true
	return r.flush(ctx, out, r.public())
}

func (r *fakeReader) public() position.Position {
	if r.at == nil {
		return position.Position{}
	}
	return position.New(position.Generator, map[string]string{"next": strconv.Itoa(r.at.End)})
}

func (r *fakeReader) judge(e event, c minidb.Change, txn uint64, ord uint32) {
	t := r.db.tables[c.Table]
	filter := r.filter.Table(cdc.TableID(c.Table))
	keep := func(n int) bool {
		v := filter.Judge(e, t.key(n))
		if v == cdc.Locate {
			at := 0
			for _, b := range filter.Bounds() {
				if t.compare(t.bound(b), n) <= 0 {
					at++
				}
			}
			v = filter.JudgeAt(e, at)
		}
		return v == cdc.Emit
	}
	switch {
	case c.Op == minidb.Insert:
		if keep(c.New) {
			r.add(c.Table, rows.OpInsert, c.New, c.After, txn, ord)
		}
	case c.Op == minidb.Delete:
		if keep(c.Old) {
			r.add(c.Table, rows.OpDelete, c.Old, c.Before, txn, ord)
		}
	case c.Old == c.New:
		if keep(c.New) {
			if t.kind == NoKey {
				r.add(c.Table, rows.OpUpdateBefore, c.Old, c.Before, txn, ord)
			}
			r.add(c.Table, rows.OpUpdateAfter, c.New, c.After, txn, ord)
		}
	default:
		from, to := keep(c.Old), keep(c.New)
		if r.fault == movesByNew {
			from = to
		}
		if from {
			r.add(c.Table, rows.OpDelete, c.Old, c.Before, txn, ord)
		}
		if to {
			r.add(c.Table, rows.OpInsert, c.New, c.After, txn, ord+1)
		}
	}
}

// add puts a row into the batch of its table. A delete of a keyed table carries the key only. The database is locked.
func (r *fakeReader) add(table int, op rows.Op, n int, v, txn uint64, ord uint32) {
	t := r.db.tables[table]
	b := r.builders[table]
	if b == nil {
		b = rows.NewBuilder(t.schema)
		r.builders[table] = b
	}
	for i, c := range t.schema.Columns() {
		switch {
		case c.Name == "n" && op == rows.OpDelete && t.kind != NoKey, c.Name == "val" && op == rows.OpDelete:
			b.Absent(i)
		case c.Name == "n":
			b.Column(i).(*array.Int64Builder).Append(int64(n))
		case c.Name == "val":
			b.Column(i).(*array.Int64Builder).Append(t.vals[v])
		default:
			cell := t.key(n)[c.KeyPos-1]
			if v, ok := cdc.Int(cell); ok && c.Type == rows.Of(rows.KindInt64) {
				b.Column(i).(*array.Int64Builder).Append(v)
			} else {
				b.Column(i).(*array.StringBuilder).Append(strconv.QuoteToASCII(string(cell)))
			}
		}
	}
	r.seq++
	b.EndRow(rows.Meta{Op: op, Seq: r.seq, Ts: rows.NoTs, Txn: txn, Ord: ord})
}

func (r *fakeReader) flush(ctx context.Context, out source.Output, at position.Position) error {
	for _, i := range slices.Sorted(maps.Keys(r.builders)) {
		if r.builders[i].Rows() == 0 {
			continue
		}
		b, err := r.builders[i].Flush()
		if err != nil {
			return err
		}
		if err := out.Emit(ctx, *b, at); err != nil {
			return err
		}
	}
	return nil
}

func (r *fakeReader) Snapshot(epoch.ID) (source.Cut, error) {
	r.input = false
	var log []byte
	if r.at != nil {
		at := *r.at
		if r.fault == positionAhead {
			at.End++
			at.Changes = 0
		}
		var err error
		if log, err = json.Marshal(at); err != nil {
			return source.Cut{}, err
		}
	}
	share := r.share
	if r.fault == noReports && r.at == nil {
		share = cdc.NewShare(1)
	}
	return source.Cut{State: share.State(log), Position: r.public(), Torn: r.at != nil && r.at.Changes > 0}, nil
}

func (r *fakeReader) Drain(context.Context) error {
	r.draining = true
	_, err := r.look(func(db *minidb.DB) { r.end = len(db.Log) })
	return err
}

func (r *fakeReader) Confirm(epoch.ID, source.Cut) {}
func (r *fakeReader) Report() report.Reader        { return report.Reader{} }
func (r *fakeReader) Close() error                 { return nil }
