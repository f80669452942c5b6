package cdc

import "fmt"

// message is what enumerator and readers tell each other. Its bytes are a kind and the fields.
//
//	enumerator -> reader: read, accept, marks, follow, pause, end   in band with the barriers
//	reader -> enumerator: want, finish, halve, passed, paused       outside of alignment
//
//sumtype:decl
type message interface {
	kind() byte
	write(w *writer)
}

type (
	// readMessage hands out a chunk. resume is what an earlier reader had spooled of it.
	readMessage struct {
		chunk  Chunk
		resume []byte
	}
	// acceptMessage says that a report is in the enumerator's state, of this and every later epoch.
	acceptMessage struct{ chunk ChunkID }
	// marksMessage carries a segment of finished chunks; followMessage ends them.
	marksMessage struct{ segment []byte }
	// followMessage gives or gives back the log.
	followMessage struct {
		log    []byte
		only   bool
		tables []followed
	}
	// pauseMessage asks the reader of the log to stop and to empty tables at the sinks.
	pauseMessage struct{ tables []pausing }
	// endMessage says that nothing more is to come.
	endMessage struct{}

	// wantMessage asks for chunks.
	wantMessage struct{ n uint64 }
	// finishMessage reports a chunk. With a cut the reader ended early: [cut, high) is still to be read.
	finishMessage struct{ report report }
	// halveMessage gives a chunk back, unread, to be split at a key.
	halveMessage struct {
		chunk ChunkID
		at    Key
	}
	// passedMessage says that tables have ended their catch-up.
	passedMessage struct{ tables []TableID }
	// pausedMessage says that the log stands still and the tables have been emptied at the sinks.
	pausedMessage struct{ tables []TableID }
)

// followed is a table of the log. Chunks with a number below first are of an earlier copy and do not count.
type followed struct {
	table TableID
	pure  bool
	first uint32
}

type pausing struct {
	table    TableID
	truncate bool
}

// report is a finished chunk as its reader tells it.
type report struct {
	chunk ChunkID
	mark  []byte
	rows  uint64
	cut   Key
}

const (
	kindRead byte = iota + 1
	kindAccept
	kindMarks
	kindFollow
	kindPause
	kindWant
	kindFinish
	kindHalve
	kindPassed
	kindPaused
	kindEnd
)

func (readMessage) kind() byte   { return kindRead }
func (acceptMessage) kind() byte { return kindAccept }
func (marksMessage) kind() byte  { return kindMarks }
func (followMessage) kind() byte { return kindFollow }
func (pauseMessage) kind() byte  { return kindPause }
func (endMessage) kind() byte    { return kindEnd }
func (wantMessage) kind() byte   { return kindWant }
func (finishMessage) kind() byte { return kindFinish }
func (halveMessage) kind() byte  { return kindHalve }
func (passedMessage) kind() byte { return kindPassed }
func (pausedMessage) kind() byte { return kindPaused }

func (m readMessage) write(w *writer) {
	w.chunk(m.chunk)
	w.bytes(m.resume)
}
func (m acceptMessage) write(w *writer) { w.id(m.chunk) }
func (m marksMessage) write(w *writer)  { w.bytes(m.segment) }

func (m followMessage) write(w *writer) {
	w.bytes(m.log)
	w.bool(m.only)
	w.uint(uint64(len(m.tables)))
	for _, t := range m.tables {
		w.table(t.table)
		w.bool(t.pure)
		w.uint(uint64(t.first))
	}
}

func (m pauseMessage) write(w *writer) {
	w.uint(uint64(len(m.tables)))
	for _, t := range m.tables {
		w.table(t.table)
		w.bool(t.truncate)
	}
}
func (endMessage) write(*writer)        {}
func (m wantMessage) write(w *writer)   { w.uint(m.n) }
func (m finishMessage) write(w *writer) { w.report(m.report) }

func (m halveMessage) write(w *writer) {
	w.id(m.chunk)
	w.key(m.at)
}
func (m passedMessage) write(w *writer) { w.tables(m.tables) }
func (m pausedMessage) write(w *writer) { w.tables(m.tables) }

func (w *writer) report(v report) {
	w.id(v.chunk)
	w.bytes(v.mark)
	w.uint(v.rows)
	w.key(v.cut)
}

func (r *reader) report() report {
	return report{chunk: r.id(), mark: r.bytes(), rows: r.uint(), cut: r.key()}
}

func (w *writer) tables(v []TableID) {
	w.uint(uint64(len(v)))
	for _, t := range v {
		w.table(t)
	}
}

func (r *reader) tables() []TableID {
	n := r.count()
	var v []TableID
	for range n {
		v = append(v, r.table())
	}
	return v
}

func encodeMessage(m message) []byte {
	w := writer{b: []byte{m.kind()}}
	m.write(&w)
	return w.b
}

func decodeMessage(data []byte) (message, error) {
	r := reader{b: data}
	var m message
	switch k := r.byte(); k {
	case kindRead:
		m = readMessage{chunk: r.chunk(), resume: r.bytes()}
	case kindAccept:
		m = acceptMessage{chunk: r.id()}
	case kindMarks:
		m = marksMessage{segment: r.bytes()}
	case kindFollow:
		f := followMessage{log: r.bytes(), only: r.bool()}
		for range r.count() {
			f.tables = append(f.tables, followed{table: r.table(), pure: r.bool(), first: r.uint32()})
		}
		m = f
	case kindPause:
		var p pauseMessage
		for range r.count() {
			p.tables = append(p.tables, pausing{table: r.table(), truncate: r.bool()})
		}
		m = p
	case kindWant:
		m = wantMessage{n: r.uint()}
	case kindFinish:
		m = finishMessage{report: r.report()}
	case kindHalve:
		m = halveMessage{chunk: r.id(), at: r.key()}
	case kindPassed:
		m = passedMessage{tables: r.tables()}
	case kindPaused:
		m = pausedMessage{tables: r.tables()}
	case kindEnd:
		m = endMessage{}
	default:
		return nil, fmt.Errorf("%w: message of kind %d", ErrMalformed, k)
	}
	return m, r.end()
}
