package cdc

import (
	"fmt"
	"slices"
)

// Share is one reader's part in a snapshot and, for one of them, in the log: what it was told, what it has to read, and what
// of it the enumerator does not know for certain. It is owned by one goroutine. Every reader of an attempt begins with an
// empty one, whatever it is restored from; the enumerator is given all parts and hands out anew.
type Share struct {
	outbox  [][]byte
	waiting []Work
	open    []Work // taken by Next and not finished
	reports []report

	segments  [][]byte
	following bool // the log is this reader's
	split     *LogSplit
	toPause   []pausing
	asked     bool // to pause
	paused    bool
	emptied   []TableID
	ended     bool
}

// Work is a chunk to be read.
type Work struct {
	Chunk
	// Resume is what an earlier reader had spooled of it, see [Share.Spool].
	Resume []byte
}

// NewShare begins an attempt. ahead is how many chunks are to be at the reader, the one being read included: 2 keeps it
// busy while the next is under way.
func NewShare(ahead int) *Share {
	s := &Share{}
	s.send(wantMessage{uint64(ahead)})
	return s
}

func (s *Share) send(m message) { s.outbox = append(s.outbox, encodeMessage(m)) }

// Outbox returns messages for the enumerator, each once, in order. They are sent before Poll returns.
func (s *Share) Outbox() [][]byte {
	out := s.outbox
	s.outbox = nil
	return out
}

// Receive takes a message from the enumerator.
func (s *Share) Receive(payload []byte) error {
	m, err := decodeMessage(payload)
	if err != nil {
		return fmt.Errorf("receive from the enumerator: %w", err)
	}
	switch m := m.(type) {
	case readMessage:
		s.waiting = append(s.waiting, Work{m.chunk, m.resume})
	case acceptMessage:
		s.reports = slices.DeleteFunc(s.reports, func(r report) bool { return r.chunk == m.chunk })
	case marksMessage:
		s.segments = append(s.segments, m.segment)
	case followMessage:
		split, err := newLogSplit(m, s.segments)
		if err != nil {
			return fmt.Errorf("receive the log: %w", err)
		}
		s.split, s.segments, s.following = split, nil, true
		s.paused, s.emptied = false, nil
	case pauseMessage:
		s.toPause, s.asked = append(s.toPause, m.tables...), true
	case endMessage:
		s.ended = true
	case wantMessage, finishMessage, halveMessage, passedMessage, pausedMessage:
		return fmt.Errorf("%w: the enumerator sent a message of a reader, kind %d", ErrMalformed, m.kind())
	}
	return nil
}

// Next takes the chunk to be read next. A reader may take several and read them beside each other, but emits their rows one
// whole chunk after the other, each within one Poll (I2).
func (s *Share) Next() (Work, bool) {
	if len(s.waiting) == 0 {
		return Work{}, false
	}
	w := s.waiting[0]
	s.waiting = s.waiting[1:]
	s.open = append(s.open, w)
	return w, true
}

// Ended reports that nothing more is to come, in mode Only: the reader is drained when it has done what it has.
func (s *Share) Ended() bool { return s.ended }

// Waiting counts the chunks that Next would give.
func (s *Share) Waiting() int { return len(s.waiting) }

// Finish says that all rows of a chunk were emitted, in this Poll, as of the mark. With a cut the reader has ended early, and
// [cut, high) becomes a chunk of its own: for rows read in the order of the key, when they have become too many bytes.
func (s *Share) Finish(id ChunkID, mark []byte, rows uint64, cut Key) {
	if !s.close(id) {
		return
	}
	r := report{chunk: id, mark: slices.Clone(mark), rows: rows, cut: cut.Clone()}
	s.reports = append(s.reports, r)
	s.send(finishMessage{r})
}

// Halve gives a chunk back of which nothing was emitted, to be read in two parts that meet at a key.
func (s *Share) Halve(id ChunkID, at Key) {
	if s.close(id) {
		s.send(halveMessage{id, at.Clone()})
	}
}

// Spool keeps the adapter's state of an open chunk that is emitted over several epochs: the names of its segments in the
// state stream, the mark of its statement, and how much of it was emitted. Only a chunk whose rows are all spooled may be
// emitted so, since it cannot be read again under the same mark.
func (s *Share) Spool(id ChunkID, state []byte) {
	for i := range s.open {
		if s.open[i].ChunkID == id {
			s.open[i].Resume = slices.Clone(state)
		}
	}
}

// Spools returns what was spooled of the chunks that are not finished, those not begun among them: the objects that these
// name are in use.
func (s *Share) Spools() [][]byte {
	var states [][]byte
	for _, w := range slices.Concat(s.open, s.waiting) {
		if w.Resume != nil {
			states = append(states, w.Resume)
		}
	}
	return states
}

func (s *Share) close(id ChunkID) bool {
	i := slices.IndexFunc(s.open, func(w Work) bool { return w.ChunkID == id })
	if i < 0 {
		return false
	}
	s.open = slices.Delete(s.open, i, i+1)
	return true
}

// Follow returns the log, once each time it is handed out: the first time in the attempt with the state to begin from, after
// a pause without one.
func (s *Share) Follow() (*LogSplit, bool) {
	split := s.split
	s.split = nil
	return split, split != nil
}

// Following reports whether the log is this reader's, be it paused.
func (s *Share) Following() bool { return s.following }

// Pausing reports whether the reader of the log has to stop, at the next place where a barrier could pass, and which tables
// it has to empty at the sinks with a truncate there. Then it calls Paused. It looks here before every change of the log, and
// when it stands still already too.
func (s *Share) Pausing() (truncate []TableID, asked bool) {
	for _, p := range s.toPause {
		if p.truncate {
			truncate = append(truncate, p.table)
		}
	}
	return truncate, s.asked
}

// Paused says that the log stands still until Follow, and that the tables asked for, and more, were emptied. A reader calls
// it unasked when a truncate of a table cannot be told from its chunks, see [Again]: it emits the truncate and goes no
// further.
func (s *Share) Paused(more ...TableID) {
	tables := slices.Clone(more)
	for _, p := range s.toPause {
		tables = append(tables, p.table)
	}
	s.toPause, s.asked, s.paused = nil, false, true
	s.emptied = append(s.emptied, tables...)
	s.send(pausedMessage{tables})
}

// Passed says which tables have ended their catch-up, see [Filter.Passed].
func (s *Share) Passed(tables ...TableID) {
	if len(tables) > 0 {
		s.send(passedMessage{tables})
	}
}

// State is the reader's part of an epoch. log is the adapter's state of the log, nil when it has not opened it.
func (s *Share) State(log []byte) []byte {
	p := part{reports: s.reports, following: s.following, paused: s.paused, tables: s.emptied}
	switch {
	case !s.following:
	case s.split != nil && s.split.Log != nil: // not taken yet
		p.log = s.split.Log
	default:
		p.log = log
	}
	for _, w := range slices.Concat(s.open, s.waiting) {
		if w.Resume != nil {
			p.spools = append(p.spools, spooled{w.ChunkID, w.Resume})
		}
	}
	return p.encode()
}
