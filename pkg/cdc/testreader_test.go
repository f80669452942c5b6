package cdc

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"weir.dev/weir/pkg/cdc/internal/minidb"
)

// testReader is a reader: it reads chunks in steps, and one of the readers the log, change by change.
type testReader struct {
	w      *world
	index  int
	share  *Share
	chunk  *testChunk
	log    *testLog
	paused bool
}

// testChunk is a chunk being read.
type testChunk struct {
	Work
	rows  map[int]uint64
	mark  minidb.Visibility
	from  int // where the log was when reading began, for marks of the kind of MySQL
	phase int
	spool int // number of the spool; the rows emitted of it
	sent  int
}

// testLog is a position in the log and the filter behind it.
type testLog struct {
	end, changes int
	filter       *Filter[event, uint64]
}

func (r *testReader) emit(rows ...emitted) {
	r.w.out[r.index] = append(r.w.out[r.index], letter{rows: rows})
}

// step is a Poll.
func (r *testReader) step() error {
	defer func() {
		for _, m := range r.share.Outbox() {
			r.w.up = append(r.w.up, note{r.index, m})
		}
	}()
	if split, ok := r.share.Follow(); ok {
		if err := r.follow(split); err != nil {
			return err
		}
	}
	if truncate, asked := r.share.Pausing(); asked && r.log != nil {
		for _, t := range truncate {
			r.emit(emitted{table: int(t) - 100, op: opTruncate})
		}
		r.share.Paused()
		r.paused = true
		r.w.stats["pauses"]++
	}
	if r.log != nil && !r.paused && r.w.pick(3) > 0 {
		return r.change()
	}
	if r.chunk == nil {
		work, ok := r.share.Next()
		if !ok {
			return nil
		}
		r.chunk = &testChunk{Work: work}
	}
	if r.table() == keylessTable {
		r.spool()
		return nil
	}
	if r.w.gtid {
		r.readExecuted()
	} else {
		r.readVisible()
	}
	return nil
}

func (r *testReader) table() int { return int(r.chunk.Table) - 100 }

// selected are the rows of the chunk's range that are visible now.
func (r *testReader) selected() map[int]uint64 {
	rows := make(map[int]uint64)
	for k, v := range r.w.db.Rows[r.table()] {
		if r.table() == keylessTable || inRange(r.table(), k, r.chunk.Chunk) {
			rows[k] = v
		}
	}
	return rows
}

// readVisible is how PostgreSQL is read: a snapshot, later its end of the log, then the rows.
func (r *testReader) readVisible() {
	c, db := r.chunk, r.w.db
	if c.phase == 0 {
		c.rows = r.selected()
		c.mark.Running, c.mark.Next = db.Running()
		c.phase = 1
		return
	}
	c.mark.Written = uint64(len(db.Log))
	r.finish(c.mark.Bytes())
}

// readExecuted is how MySQL is read: wait for what is in the log, select, merge what was logged meanwhile.
func (r *testReader) readExecuted() {
	c, db := r.chunk, r.w.db
	switch c.phase {
	case 0:
		c.from, c.phase = len(db.Log), 1
	case 1:
		for _, t := range db.Log[:c.from] {
			if slices.Contains(db.Unseen, t) {
				return
			}
		}
		c.rows, c.phase = r.selected(), 2
	default:
		upto := len(db.Log)
		all := minidb.New(tableKinds).Rows
		all[r.table()] = c.rows
		if r.w.mutant != noBackfill {
			for _, t := range db.Log[c.from:upto] {
				minidb.Apply(all, t.Changes)
			}
		}
		maps.DeleteFunc(c.rows, func(k int, _ uint64) bool { return !inRange(r.table(), k, c.Chunk) })
		r.finish((&minidb.Executed{Upto: uint64(upto)}).Bytes())
	}
}

// finish emits the chunk, or its first rows, or gives it back.
func (r *testReader) finish(mark []byte) {
	c, table := r.chunk, r.table()
	keys := slices.SortedFunc(maps.Keys(c.rows), func(a, b int) int { return ordered(table, a, b) })
	r.chunk = nil
	var cut Key
	if len(keys) > 1 && r.w.pick(5) == 0 {
		at := 1 + r.w.pick(len(keys)-1)
		if cut = keyOf(table, keys[at]); r.w.pick(2) == 0 {
			r.share.Halve(c.ChunkID, cut)
			return
		}
		keys = keys[:at]
	}
	var rows []emitted
	for _, k := range keys {
		rows = append(rows, emitted{table: table, op: opRead, key: k, after: c.rows[k]})
	}
	r.emit(rows...)
	if r.w.mutant == droppedTail {
		cut = nil
	}
	r.share.Finish(c.ChunkID, mark, uint64(len(rows)), cut)
}

// spool reads a table without a key at once, keeps the rows, and emits them over several polls.
func (r *testReader) spool() {
	c, w := r.chunk, r.w
	if c.phase == 0 {
		if c.Resume != nil {
			n, k := binary.Uvarint(c.Resume)
			sent, _ := binary.Uvarint(c.Resume[k:])
			c.spool, c.sent = int(n), int(sent)
		} else {
			c.rows = r.selected()
			c.mark.Running, c.mark.Next = w.db.Running()
			c.mark.Written = uint64(len(w.db.Log))
			c.spool = len(w.spools)
			var data []byte
			data = binary.AppendUvarint(data, uint64(len(c.mark.Bytes())))
			data = append(data, c.mark.Bytes()...)
			for _, k := range slices.Sorted(maps.Keys(c.rows)) {
				data = binary.AppendUvarint(binary.AppendUvarint(data, uint64(k)), c.rows[k])
			}
			w.spools = append(w.spools, data)
		}
		c.phase = 1
	}
	data := w.spools[c.spool]
	n, k := binary.Uvarint(data)
	mark, data := data[k:k+int(n)], data[k+int(n):]
	var rows []emitted
	for len(data) > 0 {
		key, a := binary.Uvarint(data)
		v, b := binary.Uvarint(data[a:])
		data = data[a+b:]
		rows = append(rows, emitted{table: keylessTable, op: opRead, key: int(key), after: v})
	}
	if c.sent < len(rows) {
		r.emit(rows[c.sent])
		c.sent++
		r.share.Spool(c.ChunkID, binary.AppendUvarint(binary.AppendUvarint(nil, uint64(c.spool)), uint64(c.sent)))
		return
	}
	r.chunk = nil
	r.share.Finish(c.ChunkID, mark, uint64(len(rows)), nil)
}

// follow opens the log.
func (r *testReader) follow(split *LogSplit) error {
	w := r.w
	switch {
	case len(split.Log) > 0:
		end, n := binary.Uvarint(split.Log)
		changes, _ := binary.Uvarint(split.Log[n:])
		r.log = &testLog{end: int(end) - 1, changes: int(changes)}
		if w.mutant == forgottenOrdinal {
			r.log.changes = 0
		}
	case r.log == nil:
		r.log = &testLog{end: w.start}
	}
	r.paused = false
	order := func(id TableID) Order {
		switch {
		case id == TableID(100+serverTable):
			return nil
		case w.mutant == exclusiveBound:
			return lowerBound{}
		}
		return Bytewise{}
	}
	var err error
	if r.log.filter, err = NewFilter(split, order, r.mark); err != nil {
		return err
	}
	r.share.Passed(r.log.filter.Passed(uint64(r.log.end))...)
	return nil
}

// lowerBound seeks a key that is a bound below it.
type lowerBound struct{}

func (lowerBound) Compare(a, b Key) int {
	if c := (Bytewise{}).Compare(a, b); c != 0 {
		return c
	}
	return 1
}

// mark reads a mark, with the world's fault in it.
func (r *testReader) mark(b []byte) (Mark[event, uint64], error) {
	var m testMark
	if r.w.gtid {
		v, err := minidb.ParseExecuted(b)
		if err != nil {
			return nil, err
		}
		m = testMark{func(e event) bool { return v.Contains(e.place) }, v.PassedBy}
	} else {
		v, err := minidb.ParseVisibility(b)
		if err != nil {
			return nil, err
		}
		m = testMark{func(e event) bool { return v.Contains(e.xid) }, v.PassedBy}
		if r.w.mutant == logOrder {
			m.contains = func(e event) bool { return e.place <= v.Written }
		}
	}
	if contains := m.contains; r.w.mutant == flippedMark {
		m.contains = func(e event) bool { return !contains(e) }
	}
	if r.w.mutant == earlyPass {
		m.passed = func(uint64) bool { return true }
	}
	return m, nil
}

// change reads one change of the log. A barrier may pass between any two.
func (r *testReader) change() error {
	w, l := r.w, r.log
	if w.mode == Only && l.filter.Done() || l.end == len(w.db.Log) {
		return nil
	}
	txn := w.db.Log[l.end]
	if l.changes < len(txn.Changes) {
		c := txn.Changes[l.changes]
		l.changes++
		return r.judge(event{txn.XID, uint64(l.end + 1)}, c)
	}
	l.end, l.changes = l.end+1, 0
	r.share.Passed(l.filter.Passed(uint64(l.end))...)
	return nil
}

func (r *testReader) judge(e event, c minidb.Change) error {
	t := r.log.filter.Table(TableID(100 + c.Table))
	keep := func(k int) bool {
		v := t.Judge(e, keyOf(c.Table, k))
		if v == Locate {
			r.w.stats["located"]++
			n := 0
			for _, b := range t.Bounds() {
				if ordered(c.Table, keyNumber(c.Table, b), k) <= 0 {
					n++
				}
			}
			v = t.JudgeAt(e, n)
		}
		r.w.stats[fmt.Sprint("verdict ", v)]++
		return v == Emit
	}
	switch {
	case c.Op == minidb.Truncate:
		switch t.Truncate(e) {
		case Emit:
			r.emit(emitted{table: c.Table, op: opTruncate})
		case Again:
			r.emit(emitted{table: c.Table, op: opTruncate})
			r.w.stats["again"]++
			if r.w.mutant == truncatedAlike {
				return nil
			}
			r.share.Paused(TableID(100 + c.Table))
			r.paused = true
		case Drop, Locate:
		}
	case c.Op == minidb.Insert:
		if keep(c.New) {
			r.emit(emitted{table: c.Table, op: opInsert, key: c.New, after: c.After})
		}
	case c.Op == minidb.Delete:
		if keep(c.Old) {
			r.emit(emitted{table: c.Table, op: opDelete, key: c.Old, before: c.Before})
		}
	case c.Old == c.New:
		if keep(c.New) {
			r.emit(emitted{table: c.Table, op: opUpdate, key: c.New, before: c.Before, after: c.After})
		}
	default:
		from, to := keep(c.Old), keep(c.New)
		if r.w.mutant == wholeMove {
			from = to
		}
		if from {
			r.emit(emitted{table: c.Table, op: opDelete, key: c.Old, before: c.Before})
		}
		if to {
			r.emit(emitted{table: c.Table, op: opInsert, key: c.New, after: c.After})
		}
	}
	return nil
}

// state is the reader's part at a barrier.
func (r *testReader) state() []byte {
	if r.w.mutant == lostReports {
		r.share.reports = nil
	}
	if r.log == nil {
		return r.share.State(nil)
	}
	return r.share.State(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(r.log.end)+1), uint64(r.log.changes)))
}
