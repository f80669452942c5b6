package cdc

import (
	"fmt"
	"slices"

	"weir.dev/weir/pkg/epoch"
)

// LogReader is the reader that is given the log.
const LogReader = 0

// Config is what an assigner is made with.
type Config struct {
	Mode Mode
	// Readers is the number of readers of this attempt; at least 1.
	Readers int
	// ChunkRows and ChunkBytes bound a chunk; 0 means the default.
	ChunkRows, ChunkBytes int64
}

// Effect is something that the caller of an assigner has to do, in the order given.
//
//sumtype:decl
type Effect interface{ effect() }

// Tell is a message to a reader, in band with the barriers.
type Tell struct {
	Reader  int
	Payload []byte
}

// AskBounds asks where the next chunks of a table begin: the key Rows rows behind After (nil: the first row), then the key
// Rows rows behind that, at most Max of them. The answer goes to [Assigner.Bounded], when the adapter has it; asking may be
// repeated. Bounds are keys that exist, in the order in which the ranges of chunks will select.
type AskBounds struct {
	Table TableID
	After Key
	Rows  int64
	Max   int
}

// Settle asks the adapter to wait until every transaction that ended before now, or was logged before now, is visible to
// whoever reads a chunk, and every transaction that was open when the log began, or when a table was added to it, has
// ended. [Assigner.Settled] answers, with the same round. Without it a transaction could be in neither the log behind the
// start nor any chunk.
type Settle struct{ Round int }

func (Tell) effect()      {}
func (AskBounds) effect() {}
func (Settle) effect()    {}

// Assigner is the enumerator's mind: it knows the tables, what of them was read, and what is to be done next. It is owned by
// one goroutine. Every method is quick; what takes time is asked for by effects.
type Assigner struct {
	cfg    Config
	stage  stage
	tables []*table

	queue   []work
	running map[ChunkID]assigned
	tail    []Finished // in no segment yet
	tailed  int        // bytes of tail, about
	sealed  []Segment

	again   []pausing // tables to be read again when the log next stands still
	pausing []pausing // those of them that the reader of the log was told
	log     []byte    // the log's state while no reader has it
	told    bool      // the log was handed out and not paused since
	begun   bool      // the log was handed out once
	next    uint32    // number of the next chunk

	// What the state does not have: it begins anew with every attempt.
	cover    epoch.ID // the first epoch that has what the stage waits for; 0 before its snapshot
	credit   []uint64 // chunks that each reader wants
	turn     int
	settling bool    // Settle was asked
	ended    bool    // the readers were told
	round    int     // how often
	asking   TableID // the table whose bounds were asked
	asked    bool
	outbox   []Effect
	assigned uint64 // chunks handed out
}

// table is one table and how far it is.
type table struct {
	Table
	split split
	after Key    // where the next chunk begins
	first uint32 // chunks below are of an earlier copy
	done  uint64 // finished chunks of this copy
	rows  uint64 // in them
	pure  bool   // every change in the log counts
	fresh bool   // never copied: its changes do not count yet
}

// split says how far a table is cut into chunks.
type split uint8

const (
	splitNone split = iota // nothing to be read
	splitWaiting
	splitRunning
	splitDone
)

type work struct {
	chunk  Chunk
	resume []byte
}

type assigned struct {
	work
	reader int
}

// NewAssigner begins a life. The order of tables is the order of reading.
func NewAssigner(cfg Config, tables []Table) *Assigner {
	a := newAssigner(cfg)
	a.stage = stageSettle
	if cfg.Mode == Never {
		a.stage = stageFollow
	}
	for _, t := range tables {
		n := &table{Table: t, pure: true}
		if cfg.Mode != Never {
			a.reset(n)
		}
		a.tables = append(a.tables, n)
	}
	return a
}

func newAssigner(cfg Config) *Assigner {
	if cfg.ChunkRows == 0 {
		cfg.ChunkRows = DefaultChunkRows
	}
	if cfg.ChunkBytes == 0 {
		cfg.ChunkBytes = DefaultChunkBytes
	}
	return &Assigner{cfg: cfg, running: make(map[ChunkID]assigned), credit: make([]uint64, cfg.Readers)}
}

// reset begins a new copy of a table.
func (a *Assigner) reset(t *table) {
	t.split, t.after, t.first, t.done, t.rows, t.pure, t.fresh = splitWaiting, nil, a.next, 0, 0, false, false
}

func (a *Assigner) chunk(t *table, low, high Key) Chunk {
	a.next++
	return Chunk{ChunkID: ChunkID{Table: t.ID, Number: a.next - 1}, Low: low, High: high}
}

func (a *Assigner) table(id TableID) *table {
	for _, t := range a.tables {
		if t.ID == id {
			return t
		}
	}
	return nil
}

// Effects returns what is to be done now, each thing once. It is called after every other method, before the enumerator
// waits.
func (a *Assigner) Effects() []Effect {
	a.advance()
	switch a.stage {
	case stageSettle:
		if !a.settling {
			a.settling = true
			a.round++
			a.outbox = append(a.outbox, Settle{Round: a.round})
		}
	case stageRead:
		a.ask()
		a.assign()
	default:
	}
	out := a.outbox
	a.outbox = nil
	return out
}

// advance takes the steps for which nothing has to come from outside.
func (a *Assigner) advance() {
	if a.stage == stageRead && a.copied() {
		a.stage, a.cover = stageCover, 0
	}
	if a.stage != stageFollow {
		return
	}
	if !a.told {
		a.handOver()
	}
	if len(a.again) > 0 {
		a.pause()
	}
	if a.Ended() && !a.ended {
		a.ended = true
		for i := range a.credit {
			a.tell(i, endMessage{})
		}
	}
}

// copied reports whether nothing is left to read.
func (a *Assigner) copied() bool {
	return len(a.queue) == 0 && len(a.running) == 0 &&
		!slices.ContainsFunc(a.tables, func(t *table) bool { return t.split == splitWaiting || t.split == splitRunning })
}

// assign hands chunks to the readers that want them, in turn.
func (a *Assigner) assign() {
	for idle := 0; len(a.queue) > 0 && idle < len(a.credit); a.turn = (a.turn + 1) % len(a.credit) {
		if a.credit[a.turn] == 0 {
			idle++
			continue
		}
		idle = 0
		a.credit[a.turn]--
		w := a.queue[0]
		a.queue = a.queue[1:]
		a.running[w.chunk.ChunkID] = assigned{w, a.turn}
		a.assigned++
		a.tell(a.turn, readMessage(w))
	}
}

func (a *Assigner) tell(reader int, m message) {
	a.outbox = append(a.outbox, Tell{Reader: reader, Payload: encodeMessage(m)})
}

// Settled answers Settle. An answer to an older round is ignored.
func (a *Assigner) Settled(round int) {
	if a.stage == stageSettle && a.settling && round == a.round {
		a.stage, a.settling = stageRead, false
	}
}

// Committed says that an epoch is committed at every sink; it is called with what source.Enumerator's Confirm names. Rows
// emitted before that epoch have left every channel, so what now comes from other readers cannot overtake them.
func (a *Assigner) Committed(e epoch.ID) {
	if a.cover == 0 || e < a.cover {
		return
	}
	a.cover = 0
	switch a.stage {
	case stageCover:
		a.stage = stageFollow
	case stageClear:
		a.stage = stageSettle
	default: // nothing waits
	}
}

// Receive takes a message from a reader.
func (a *Assigner) Receive(reader int, payload []byte) error {
	if reader < 0 || reader >= len(a.credit) {
		return fmt.Errorf("receive from reader %d of %d", reader, len(a.credit))
	}
	m, err := decodeMessage(payload)
	if err != nil {
		return fmt.Errorf("receive from reader %d: %w", reader, err)
	}
	switch m := m.(type) {
	case wantMessage:
		a.credit[reader] += m.n
	case finishMessage:
		a.credit[reader]++
		if err := a.finish(m.report); err != nil {
			return fmt.Errorf("receive from reader %d: %w", reader, err)
		}
		a.tell(reader, acceptMessage{m.report.chunk})
	case halveMessage:
		a.credit[reader]++
		return a.halve(m.chunk, m.at)
	case passedMessage:
		for _, id := range m.tables {
			a.passed(id)
		}
	case pausedMessage:
		a.paused(m.tables)
	case readMessage, acceptMessage, marksMessage, followMessage, pauseMessage, endMessage:
		return fmt.Errorf("%w: reader %d sent a message of the enumerator, kind %d", ErrMalformed, reader, m.kind())
	}
	return nil
}

// finish notes a finished chunk. One that is not open was reported before, or its table was removed.
func (a *Assigner) finish(r report) error {
	w, ok := a.take(r.chunk)
	if !ok {
		return nil
	}
	t := a.table(r.chunk.Table)
	done := Finished{Chunk: w.chunk, Mark: r.mark, Rows: r.rows}
	if r.cut != nil {
		if err := inside(w.chunk, r.cut); err != nil {
			return err
		}
		done.High = r.cut
		a.queue = slices.Insert(a.queue, 0, work{chunk: a.chunk(t, r.cut, w.chunk.High)})
	}
	t.done++
	t.rows += r.rows
	a.keep(done)
	return nil
}

// halve puts both parts of a chunk back.
func (a *Assigner) halve(id ChunkID, at Key) error {
	w, ok := a.take(id)
	if !ok {
		return nil
	}
	if err := inside(w.chunk, at); err != nil {
		return err
	}
	low, high := w.chunk, a.chunk(a.table(id.Table), at, w.chunk.High)
	low.High = at
	a.queue = slices.Insert(a.queue, 0, work{chunk: low}, work{chunk: high})
	return nil
}

// inside refuses a key that would make an empty part, as far as bytes can tell.
func inside(c Chunk, at Key) error {
	if at == nil || at.Equal(c.Low) || at.Equal(c.High) {
		return fmt.Errorf("%w: chunk %s is cut at one of its own bounds", ErrMalformed, c.ChunkID)
	}
	return nil
}

// take removes an open chunk from those running, or from the queue where a report of an earlier attempt finds it.
func (a *Assigner) take(id ChunkID) (work, bool) {
	if r, ok := a.running[id]; ok {
		delete(a.running, id)
		return r.work, true
	}
	for i, w := range a.queue {
		if w.chunk.ChunkID == id {
			a.queue = slices.Delete(a.queue, i, i+1)
			return w, true
		}
	}
	return work{}, false
}

// keep adds a finished chunk to the tail and seals the tail when it is full.
func (a *Assigner) keep(f Finished) {
	a.tail = append(a.tail, f)
	a.tailed += f.size()
	if len(a.tail) < segmentChunks && a.tailed < segmentBytes {
		return
	}
	data := encodeSegment(a.tail)
	a.sealed = append(a.sealed, Segment{Digest: digestOf(data), Data: data})
	a.tail, a.tailed = nil, 0
}
