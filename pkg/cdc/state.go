package cdc

import (
	"cmp"
	"fmt"
	"slices"

	"weir.dev/weir/pkg/epoch"
)

const (
	stateVersion  = 1
	inlineVersion = 1
)

// State is an assigner's state: a head, which changes, and segments, which never do. A caller with a store keeps each
// segment once, by its digest; one without uses [State.Inline].
type State struct {
	Head     []byte
	Segments []Segment
}

// Inline is the whole state as one string of bytes, for [OpenInline].
func (s State) Inline() []byte {
	w := writer{b: []byte{inlineVersion}}
	w.bytes(s.Head)
	w.uint(uint64(len(s.Segments)))
	for _, x := range s.Segments {
		w.bytes(x.Data)
	}
	return w.b
}

// inline is a state read from one string of bytes.
type inline map[Digest][]byte

// Segment implements Segments.
func (s inline) Segment(d Digest) ([]byte, error) {
	data, ok := s[d]
	if !ok {
		return nil, fmt.Errorf("%w: segment %s is missing", ErrMalformed, d)
	}
	return data, nil
}

// OpenInline takes apart what Inline wrote.
func OpenInline(data []byte) (head []byte, segments Segments, err error) {
	r := reader{b: data}
	if v := r.byte(); v != inlineVersion && r.err == nil {
		return nil, nil, fmt.Errorf("%w: version %d, this build reads %d", ErrMalformed, v, inlineVersion)
	}
	head = r.bytes()
	all := make(inline)
	for range r.count() {
		x := r.bytes()
		all[digestOf(x)] = x
	}
	return head, all, r.end()
}

// Snapshot returns the state for an epoch. It is what source.Enumerator's Snapshot stores.
func (a *Assigner) Snapshot(e epoch.ID) State {
	if a.stage == stageRead && a.copied() {
		a.stage, a.cover = stageCover, 0
	}
	if (a.stage == stageCover || a.stage == stageClear) && a.cover == 0 {
		a.cover = e
	}
	return State{Head: a.head(), Segments: slices.Clone(a.sealed)}
}

// Waits reports whether the next step waits for an epoch that has not been taken yet: the caller may ask for one.
func (a *Assigner) Waits() bool {
	return (a.stage == stageCover || a.stage == stageClear) && a.cover == 0
}

func (a *Assigner) head() []byte {
	var w writer
	w.byte(stateVersion)
	w.byte(byte(a.stage))
	w.bool(a.begun)
	w.bool(a.told)
	w.bytes(a.log)
	w.uint(uint64(a.next))
	w.uint(uint64(len(a.tables)))
	for _, t := range a.tables {
		w.table(t.ID)
		w.bytes([]byte(t.Name))
		w.bool(t.Keyless)
		w.uint(uint64(max(t.RowBytes, 0)))
		w.byte(byte(t.split))
		w.key(t.after)
		w.uint(uint64(t.first))
		w.uint(t.done)
		w.uint(t.rows)
		w.bool(t.pure)
		w.bool(t.fresh)
	}
	w.pausing(a.again)
	w.pausing(a.pausing)
	open := a.open()
	w.uint(uint64(len(open)))
	for _, o := range open {
		w.chunk(o.chunk)
		w.bytes(o.resume)
	}
	w.uint(uint64(len(a.sealed)))
	for _, s := range a.sealed {
		w.bytes([]byte(s.Digest))
	}
	w.bytes(encodeSegment(a.tail))
	return w.b
}

// open lists the chunks that are not finished: those handed out first, since they have waited longest.
func (a *Assigner) open() []work {
	open := make([]work, 0, len(a.running)+len(a.queue))
	for _, r := range a.running {
		open = append(open, r.work)
	}
	slices.SortFunc(open, func(a, b work) int { return cmp.Compare(a.chunk.Number, b.chunk.Number) })
	return append(open, a.queue...)
}

func (w *writer) pausing(v []pausing) {
	w.uint(uint64(len(v)))
	for _, p := range v {
		w.table(p.table)
		w.bool(p.truncate)
	}
}

func (r *reader) pausing() []pausing {
	n := r.count()
	var v []pausing
	for range n {
		v = append(v, pausing{table: r.table(), truncate: r.bool()})
	}
	return v
}

// decodeHead fills an assigner from a head, with the digests of its segments.
func (a *Assigner) decodeHead(head []byte) (digests []Digest, err error) {
	r := reader{b: head}
	if v := r.byte(); v != stateVersion && r.err == nil {
		return nil, fmt.Errorf("%w: version %d, this build reads %d", ErrMalformed, v, stateVersion)
	}
	a.stage = stage(r.byte())
	if a.stage < stageSettle || a.stage > stageClear {
		r.fail("an unknown stage")
	}
	a.begun, a.told, a.log, a.next = r.bool(), r.bool(), r.bytes(), r.uint32()
	for range r.count() {
		t := &table{
			Table: Table{ID: r.table(), Name: string(r.bytes()), Keyless: r.bool(), RowBytes: r.size()},
			split: split(r.byte()), after: r.key(), first: r.uint32(), done: r.uint(), rows: r.uint(), pure: r.bool(), fresh: r.bool(),
		}
		if t.split > splitDone || r.err == nil && a.table(t.ID) != nil {
			r.fail("a table twice, or of an unknown state")
		}
		a.tables = append(a.tables, t)
	}
	a.again, a.pausing = r.pausing(), r.pausing()
	for range r.count() {
		w := work{chunk: r.chunk(), resume: r.bytes()}
		if r.err == nil && a.table(w.chunk.Table) == nil {
			r.fail("a chunk without its table")
		}
		a.queue = append(a.queue, w)
	}
	for range r.count() {
		digests = append(digests, Digest(r.bytes()))
	}
	tail := r.bytes()
	if err := r.end(); err != nil {
		return nil, err
	}
	if a.tail, err = decodeSegment(tail); err != nil {
		return nil, err
	}
	for _, f := range a.tail {
		a.tailed += f.size()
	}
	return digests, nil
}

// RestoreAssigner goes on from a durable epoch: its state and the parts of all readers, see [Share.State], in any number.
// Whatever was not finished is handed out anew; the readers of the new attempt begin empty.
func RestoreAssigner(cfg Config, head []byte, segments Segments, parts [][]byte) (*Assigner, error) {
	a := newAssigner(cfg)
	digests, err := a.decodeHead(head)
	if err != nil {
		return nil, fmt.Errorf("restore the enumerator: %w", err)
	}
	var sealed []Segment
	for _, d := range digests {
		data, err := segments.Segment(d)
		if err == nil && digestOf(data) != d {
			err = fmt.Errorf("%w: segment %s has another digest", ErrMalformed, d)
		}
		if err != nil {
			return nil, fmt.Errorf("restore the enumerator: %w", err)
		}
		sealed = append(sealed, Segment{Digest: d, Data: data})
	}
	a.sealed = sealed
	var paused []TableID
	stands, there := false, a.log != nil
	for i, p := range parts {
		part, err := decodePart(p)
		if err != nil {
			return nil, fmt.Errorf("restore reader %d: %w", i, err)
		}
		if part.following {
			if there {
				return nil, fmt.Errorf("restore reader %d: %w: the log is there twice", i, ErrMalformed)
			}
			there, a.log, stands, paused = true, part.log, part.paused, part.tables
		}
		for _, s := range part.spools {
			a.resume(s)
		}
		for _, f := range part.reports {
			if err := a.finish(f); err != nil {
				return nil, fmt.Errorf("restore reader %d: %w", i, err)
			}
		}
	}
	if a.begun && !there {
		return nil, fmt.Errorf("restore the enumerator: %w: no reader has the log", ErrMalformed)
	}
	a.begun = a.log != nil
	a.settle(stands, paused)
	return a, nil
}

// Log is the adapter's state of the log while no reader has it: after a restore, what the log will be handed out with. Nil
// when the log was not begun, or is with a reader.
func (a *Assigner) Log() []byte { return a.log }

// settle brings the stage to what a new attempt begins with. Everything in the restored epoch is covered by it.
func (a *Assigner) settle(stands bool, paused []TableID) {
	// A log that stands since before it was last handed out, which its reader had not yet heard of, is no news.
	if stands && a.told {
		a.paused(paused)
	}
	switch a.stage {
	case stageRead:
		if a.copied() {
			a.stage = stageFollow
		}
	case stageCover:
		a.stage = stageFollow
	case stageClear:
		a.stage = stageSettle
	case stagePause:
		// The reader that was told is gone. What it had emptied is copied first; the rest waits for the log.
		a.again, a.pausing = append(a.again, a.pausing...), nil
		a.stage = stageFollow
		if !a.copied() {
			a.stage = stageSettle
		}
	case stageSettle, stageFollow:
	}
	a.told, a.cover, a.outbox = false, 0, nil
}

// Spools returns what readers of earlier attempts had spooled of chunks that no reader of this one has yet: the objects that
// these name are in use. Those of chunks that were handed out are in [Share.Spools].
func (a *Assigner) Spools() [][]byte {
	var states [][]byte
	for _, w := range a.queue {
		if w.resume != nil {
			states = append(states, w.resume)
		}
	}
	return states
}

// resume keeps what a reader had spooled of a chunk.
func (a *Assigner) resume(s spooled) {
	for i := range a.queue {
		if a.queue[i].chunk.ChunkID == s.chunk {
			a.queue[i].resume = s.state
		}
	}
}
