package cdc

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"weir.dev/weir/pkg/cdc/internal/minidb"
	"weir.dev/weir/pkg/epoch"
)

// The world of the property test: a database, an enumerator, readers, the channels between them, and a sink that aligns
// barriers. What happens next is drawn; the sink refuses every row that it should not get.

// The tables of the world, one of each kind of key.
const (
	plainTable = iota
	compositeTable
	serverTable // its order is known to the server only
	keylessTable
	tableKinds
)

const keySpace = 12

func tableOf(i int) Table {
	return Table{ID: TableID(100 + i), Name: fmt.Sprint("t", i), Keyless: i == keylessTable}
}

// keyOf is the key of a row in the adapter's form.
func keyOf(table, k int) Key {
	switch table {
	case plainTable:
		return Key{AppendInt(nil, int64(k-keySpace/2))}
	case compositeTable:
		return Key{AppendInt(nil, int64(k/3)), AppendInt(nil, int64(k%3))}
	case serverTable:
		return Key{fmt.Appendf(nil, "%c", 'a'+k)}
	}
	return nil
}

// ordered compares keys as the server does: those of serverTable the other way round.
func ordered(table, a, b int) int {
	if table == serverTable {
		return b - a
	}
	return a - b
}

func keyNumber(table int, key Key) int {
	for k := range keySpace {
		if keyOf(table, k).Equal(key) {
			return k
		}
	}
	panic("a bound that no row had")
}

func inRange(table, k int, c Chunk) bool {
	return (c.Low == nil || ordered(table, keyNumber(table, c.Low), k) <= 0) &&
		(c.High == nil || ordered(table, k, keyNumber(table, c.High)) < 0)
}

// mutant is a fault planted in the world.
type mutant string

const (
	sound            mutant = ""
	flippedMark      mutant = "a mark contains what it should not, and nothing else"
	logOrder         mutant = "a mark goes by the order of the log instead of visibility"
	earlyPass        mutant = "a table ends its catch-up at once"
	noSettle         mutant = "chunks are read before what the log is past is visible"
	noCover          mutant = "the log is handed out before an epoch has the chunks"
	wholeMove        mutant = "a change of the key is judged by the new key alone"
	lostReports      mutant = "reports that the enumerator may not have are not in the reader's part"
	exclusiveBound   mutant = "a key that is a bound is sought in the chunk below"
	noBackfill       mutant = "what was logged while a chunk was read is not merged in"
	truncatedAlike   mutant = "a truncate between two chunks is emitted and nothing read again"
	droppedTail      mutant = "the rest of a chunk that ended early is not read"
	forgottenOrdinal mutant = "a restart inside a transaction begins it anew"
	unnamedSpools    mutant = "an epoch does not name the spools that the enumerator has not handed out"
)

// event is what the log tells of a change.
type event struct{ xid, place uint64 }

// testMark adapts both kinds of marks.
type testMark struct {
	contains func(event) bool
	passed   func(uint64) bool
}

func (m testMark) Contains(e event) bool    { return m.contains(e) }
func (m testMark) PassedBy(end uint64) bool { return m.passed(end) }

// op is what an emitted row says.
type op uint8

const (
	opRead op = iota + 1
	opInsert
	opUpdate
	opDelete
	opTruncate
)

type emitted struct {
	table         int
	op            op
	key           int
	before, after uint64
}

// letter is what a channel holds: a message, rows or a barrier.
type letter struct {
	payload []byte
	rows    []emitted
	barrier epoch.ID
}

// note is a message to the enumerator.
type note struct {
	reader  int
	payload []byte
}

// sinkTables is a sink, by table and key.
type sinkTables []map[int]uint64

func (s sinkTables) clone() sinkTables {
	c := make(sinkTables, len(s))
	for i := range s {
		c[i] = maps.Clone(s[i])
	}
	return c
}

// apply refuses what cannot be: a row that is there already, a change of a row that is not as the change says.
func (s sinkTables) apply(r emitted) error {
	at, ok := s[r.table][r.key]
	switch {
	case r.op == opTruncate:
		clear(s[r.table])
		return nil
	case (r.op == opRead || r.op == opInsert) && ok:
		return fmt.Errorf("%+v: the row is there already, with value %d", r, at)
	case (r.op == opUpdate || r.op == opDelete) && (!ok || at != r.before):
		return fmt.Errorf("%+v: the row is %d, there %t", r, at, ok)
	}
	if r.op == opDelete {
		delete(s[r.table], r.key)
	} else {
		s[r.table][r.key] = r.after
	}
	return nil
}

// saved is a durable epoch.
type saved struct {
	epoch epoch.ID
	state State
	parts [][]byte
	named [][]byte // spools whose objects are kept
	sink  sinkTables
}

// world is everything. pick draws a number below n.
type world struct {
	pick   func(n int) int
	mutant mutant
	gtid   bool
	mode   Mode
	db     *minidb.DB
	start  int // where the log begins
	tables []Table
	gone   map[int]bool

	epoch   epoch.ID
	durable *saved
	sink    sinkTables
	spools  [][]byte // the state stream

	// The attempt.
	a       *Assigner
	readers []*testReader
	up      []note
	down    [][]letter
	out     [][]letter
	aligned []bool
	flight  *saved
	commits []epoch.ID
	asks    []AskBounds
	settles []settleAsk
	stats   map[string]int
}

type settleAsk struct {
	round int
	for_  []*minidb.Txn
}

func newWorld(pick func(int) int, m mutant) (*world, error) {
	w := &world{
		pick: pick, mutant: m, db: minidb.New(tableKinds), gone: make(map[int]bool), stats: make(map[string]int),
		mode: []Mode{Initial, Initial, Initial, Only, Never}[pick(5)],
	}
	for range tableKinds {
		w.sink = append(w.sink, make(map[int]uint64))
	}
	kinds := tableKinds
	if w.gtid = pick(2) == 1; w.gtid {
		kinds = keylessTable // rows without a key cannot be merged
	}
	for i := range kinds {
		if pick(2) == 0 {
			w.tables = append(w.tables, tableOf(i))
		}
	}
	if len(w.tables) == 0 {
		w.tables = append(w.tables, tableOf(pick(kinds)))
	}
	if w.mode != Never {
		for range 20 + pick(80) {
			w.write()
		}
	}
	return w, w.begin()
}

// begin starts an attempt, from the durable epoch if there is one.
func (w *world) begin() error {
	n := 1 + w.pick(3)
	cfg := Config{Mode: w.mode, Readers: n, ChunkRows: int64(1 + w.pick(4))}
	if w.durable == nil {
		w.a = NewAssigner(cfg, w.tables)
		w.start = len(w.db.Log) // a slot of its own
		if w.mode == Never {
			w.start = 0
		}
		for i := range w.sink {
			clear(w.sink[i])
		}
	} else {
		head, segments, err := OpenInline(w.durable.state.Inline())
		if err != nil {
			return err
		}
		if w.a, err = RestoreAssigner(cfg, head, segments, w.durable.parts); err != nil {
			return err
		}
		w.a.Tables(w.tables)
		w.sink = w.durable.sink.clone()
		for _, spool := range w.a.Spools() {
			w.stats["resumed"]++
			if !slices.ContainsFunc(w.durable.named, func(n []byte) bool { return bytes.Equal(n, spool) }) {
				return fmt.Errorf("spool %x goes on, but epoch %s did not name it: its objects may be gone", spool, w.durable.epoch)
			}
		}
	}
	w.readers, w.up, w.asks, w.settles, w.flight, w.commits = nil, nil, nil, nil, nil, nil
	w.down, w.out, w.aligned = make([][]letter, n), make([][]letter, n), make([]bool, n)
	for i := range n {
		w.readers = append(w.readers, &testReader{w: w, index: i, share: NewShare(1 + w.pick(2))})
	}
	return nil
}

// write takes one step of the database.
func (w *world) write() {
	db := w.db
	switch w.pick(10) {
	case 0, 1:
		if len(db.Open) < 3 {
			db.Begin()
		}
	case 2:
		if len(db.Open) > 0 {
			db.Commit(db.Open[w.pick(len(db.Open))])
		}
	case 3:
		if len(db.Unseen) > 0 {
			db.Show(db.Unseen[w.pick(len(db.Unseen))])
		}
	default:
		if len(db.Open) == 0 {
			return
		}
		t := db.Open[w.pick(len(db.Open))]
		c := minidb.Change{Table: int(w.tables[w.pick(len(w.tables))].ID) - 100, Old: w.pick(keySpace), New: w.pick(keySpace)}
		switch n := w.pick(30); {
		case n < 12:
			c.Op = minidb.Insert
		case n < 18:
			c.Op, c.New = minidb.Update, c.Old
		case n < 23:
			c.Op = minidb.Update
		case n < 26:
			c.Op = minidb.Delete
		default:
			c.Op = minidb.Truncate
		}
		db.Write(t, c)
	}
}

// enumerate is a Poll of the enumerator.
func (w *world) enumerate() {
	if w.mutant == noCover && w.a.stage == stageRead && w.a.copied() {
		w.a.stage = stageFollow
	}
	for _, e := range w.a.Effects() {
		switch e := e.(type) {
		case Tell:
			w.down[e.Reader] = append(w.down[e.Reader], letter{payload: e.Payload})
		case AskBounds:
			w.asks = append(w.asks, e)
		case Settle:
			s := settleAsk{round: e.Round, for_: slices.Clone(w.db.Unseen)}
			if w.mutant == noSettle {
				s.for_ = nil
			}
			w.settles = append(w.settles, s)
		}
	}
}

// answer answers what the enumerator asked, as the database is by now.
func (w *world) answer() error {
	if len(w.settles) > 0 {
		s := w.settles[0]
		if !slices.ContainsFunc(s.for_, func(t *minidb.Txn) bool { return slices.Contains(w.db.Unseen, t) }) {
			w.settles = w.settles[1:]
			w.a.Settled(s.round)
		}
	}
	if len(w.asks) == 0 {
		return nil
	}
	q := w.asks[0]
	w.asks = w.asks[1:]
	table := int(q.Table) - 100
	keys := slices.SortedFunc(maps.Keys(w.db.Rows[table]), func(a, b int) int { return ordered(table, a, b) })
	if q.After != nil {
		after := keyNumber(table, q.After)
		keys = slices.DeleteFunc(keys, func(k int) bool { return ordered(table, k, after) <= 0 })
	}
	var bounds []Key
	for i := int(q.Rows); i < len(keys) && len(bounds) < 1+w.pick(3); i += int(q.Rows) {
		bounds = append(bounds, keyOf(table, keys[i]))
	}
	return w.a.Bounded(q.Table, q.After, bounds, len(bounds) == 0 || w.pick(4) == 0)
}

// barrier begins an epoch when none is under way.
func (w *world) barrier() {
	if w.flight != nil {
		return
	}
	w.epoch++
	w.flight = &saved{epoch: w.epoch, state: w.a.Snapshot(w.epoch), parts: make([][]byte, len(w.readers)), named: w.a.Spools()}
	if w.mutant == unnamedSpools {
		w.flight.named = nil
	}
	for i := range w.down {
		w.down[i] = append(w.down[i], letter{barrier: w.epoch})
	}
}

// deliver takes a message from the enumerator to a reader, or from a reader to the enumerator.
func (w *world) deliver() error {
	i := w.pick(len(w.down) + 1)
	if i == len(w.down) {
		if len(w.up) == 0 {
			return nil
		}
		l := w.up[0]
		w.up = w.up[1:]
		return w.a.Receive(l.reader, l.payload)
	}
	if len(w.down[i]) == 0 {
		return nil
	}
	l := w.down[i][0]
	w.down[i] = w.down[i][1:]
	if l.barrier == 0 {
		return w.readers[i].share.Receive(l.payload)
	}
	w.flight.parts[i] = w.readers[i].state()
	w.flight.named = append(w.flight.named, w.readers[i].share.Spools()...)
	w.out[i] = append(w.out[i], letter{barrier: l.barrier})
	return nil
}

// consume takes a message into the sink. A channel whose barrier has come waits for the others.
func (w *world) consume() error {
	i := w.pick(len(w.out))
	if w.aligned[i] || len(w.out[i]) == 0 {
		return nil
	}
	l := w.out[i][0]
	w.out[i] = w.out[i][1:]
	for _, r := range l.rows {
		if w.gone[r.table] {
			continue
		}
		if err := w.sink.apply(r); err != nil {
			return fmt.Errorf("reader %d: %w", i, err)
		}
	}
	if l.barrier == 0 {
		return nil
	}
	w.aligned[i] = true
	if slices.Contains(w.aligned, false) {
		return nil
	}
	clear(w.aligned)
	f := w.flight
	w.flight = nil
	if w.pick(6) == 0 { // skipped: a late ack
		return nil
	}
	f.sink = w.sink.clone()
	w.durable = f
	w.commits = append(w.commits, f.epoch)
	return nil
}

func (w *world) commit() {
	if len(w.commits) > 0 {
		w.a.Committed(w.commits[0])
		w.commits = w.commits[1:]
	}
}

// crash ends the attempt.
func (w *world) crash() error {
	w.stats["crashes"]++
	if w.mode == Initial && w.durable != nil && w.pick(3) == 0 {
		kinds := tableKinds
		if w.gtid {
			kinds = keylessTable
		}
		switch i := w.pick(kinds); {
		case !w.gone[i] && !slices.Contains(w.tables, tableOf(i)):
			w.tables = append(w.tables, tableOf(i))
		case len(w.tables) > 1 && w.pick(3) == 0:
			w.tables = slices.DeleteFunc(slices.Clone(w.tables), func(t Table) bool { return t.ID == tableOf(i).ID })
			w.gone[i] = true
		}
	}
	return w.begin()
}

// run takes steps and then lets everything come to rest.
func (w *world) run(steps int) error {
	for range steps {
		if err := w.step(); err != nil {
			return err
		}
	}
	for len(w.db.Open) > 0 {
		w.db.Commit(w.db.Open[0])
	}
	for len(w.db.Unseen) > 0 {
		w.db.Show(w.db.Unseen[0])
	}
	for range 4000 {
		if w.atRest() {
			return w.compare()
		}
		if err := w.progress(w.pick(6)); err != nil {
			return err
		}
		for _, r := range w.readers {
			if err := r.step(); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("does not come to rest: stage %d, %+v", w.a.stage, w.a.Counts())
}

func (w *world) step() error {
	switch n := w.pick(1000); {
	case n < 250:
		w.write()
		return nil
	case n < 500:
		return w.readers[w.pick(len(w.readers))].step()
	case n < 505:
		return w.crash()
	case n < 520:
		if w.mode == Initial {
			w.a.Again(w.tables[w.pick(len(w.tables))].ID)
		}
		return nil
	default:
		return w.progress(w.pick(6))
	}
}

// progress takes one step of the mesh.
func (w *world) progress(which int) error {
	if which != 4 && which != 2 && w.pick(2) == 0 { // messages are more often than barriers and rows
		which = 3
	}
	switch which {
	case 0:
		w.enumerate()
		return nil
	case 1:
		return w.answer()
	case 2:
		w.barrier()
		return nil
	case 3:
		return w.deliver()
	case 4:
		return w.consume()
	default:
		w.commit()
		return nil
	}
}

func (w *world) empty() bool {
	for i := range w.out {
		if len(w.out[i]) > 0 || len(w.down[i]) > 0 {
			return false
		}
	}
	return len(w.up) == 0
}

func (w *world) atRest() bool {
	if !w.empty() || w.a.Lifecycle() != Incremental || len(w.a.again) > 0 || len(w.a.pausing) > 0 || !w.a.told {
		return false
	}
	for _, r := range w.readers {
		if r.log != nil && !r.paused {
			return r.log.filter.Done() && (w.mode == Only || r.log.end == len(w.db.Log))
		}
	}
	return false
}

// compare holds the sink against the log.
func (w *world) compare() error {
	w.stats["changes"] += len(w.db.Log)
	want := minidb.New(tableKinds).Rows
	for _, r := range w.readers {
		if r.log == nil {
			continue
		}
		for _, t := range w.db.Log[:r.log.end] {
			minidb.Apply(want, t.Changes)
		}
		minidb.Apply(want, w.partial(r.log))
	}
	for _, t := range w.tables {
		i := int(t.ID) - 100
		if !maps.Equal(w.sink[i], want[i]) {
			return fmt.Errorf("table %s is %v at the sink, %v at the source", t.Name, w.sink[i], want[i])
		}
	}
	return nil
}

func (w *world) partial(l *testLog) []minidb.Change {
	if l.end == len(w.db.Log) {
		return nil
	}
	return w.db.Log[l.end].Changes[:l.changes]
}
