package cdcpostgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/services/cdc-postgres/internal/core"
)

// A table without a key can only be read by one statement under one mark. What of it is more than a segment goes to the
// state stream, segment by segment, while the statement runs:
//
//	statement ──► segment ──► Store.Put ─ … ─► last segment, mark ──► named by a cut ──► Store.Get ──► emitted ─ … ─► finished
//	                                          a crash up to here reads anew              a crash from here on goes on
//
// The reader's loop stores, between two barriers, so that the next cut names the object and it is never garbage; the copier
// reads and fetches. At most three segments are in memory: one being filled, one waiting, one in the loop.

const (
	// spoolSegments bounds a spool, since every epoch names its segments.
	spoolSegments = 2048
	// spoolBytes is how much that is, with segments of the size that the runtime has; for people who ask beforehand.
	spoolBytes = spoolSegments * 16 << 20
)

const spoolVersion = 2

// spool is a table on its way through the state stream; it is also the state of a chunk, see [cdc.Share.Spool].
type spool struct {
	Version int `json:"version"`
	// Form is what the cells of its tuples are: the columns and the form of each.
	Form string `json:"form"`
	// Mark is that of the statement.
	Mark []byte `json:"mark"`
	// Emitted counts the rows of the segments that are done with; Segments are the others, in order.
	Emitted  uint64    `json:"emitted"`
	Segments []segment `json:"segments"`
}

// segment is a run of rows in the state stream.
type segment struct {
	epoch.Object

	Rows uint64 `json:"rows"`
}

func decodeSpool(data []byte, where string) (*spool, error) {
	var s spool
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fault.Wrap(err, fault.SrcPosition, where, "the saved state of a spool is not readable")
	}
	if s.Version != spoolVersion || len(s.Segments) == 0 {
		return nil, fault.New(fault.SrcPosition, where, fmt.Sprintf(
			"the saved state of a spool has version %d and %d segments, this build reads %d", s.Version, len(s.Segments), spoolVersion))
	}
	return &s, nil
}

// spoolForm tells spools apart whose cells would be read otherwise.
func (p *copyPlan) spoolForm() string {
	sum := sha256.Sum256([]byte(p.scan.List()))
	return hex.EncodeToString(sum[:])
}

// spooled lists the objects that the spools of some chunks need. Spools that cannot be read need none: reading them stops
// the job.
func spooled(states [][]byte, where string) []epoch.Object {
	var objects []epoch.Object
	for _, state := range states {
		s, err := decodeSpool(state, where)
		if err != nil {
			continue
		}
		objects = s.objects(objects)
	}
	return objects
}

func (s *spool) objects(more []epoch.Object) []epoch.Object {
	for _, g := range s.Segments {
		more = append(more, g.Object)
	}
	return more
}

// step is what a piece of a chunk is to a spool.
type step uint8

const (
	whole  step = iota // the chunk is none of a spool
	fill               // a segment to be stored
	filled             // the last of them
	fetched
)

// spooling is a reader's side of the spools under way.
type spooling struct {
	store  source.Store
	filled *spool      // the one being filled
	ended  []spoolWork // filled, and not given to the copier again
}

type spoolWork struct {
	cdc.Work

	named bool // by a cut
}

// keep stores a segment. The first one begins a spool; if the copier's connection broke in the midst of another, that one is
// forgotten.
func (r *reader) keep(ctx context.Context, c *copied) error {
	s := &r.spools
	if c.part == 0 {
		s.filled = &spool{Version: spoolVersion, Form: c.plan.spoolForm()}
	}
	if len(c.data) > 0 || c.rows > 0 {
		o, err := s.store.Put(ctx, c.data)
		if err != nil {
			return fmt.Errorf("spool segment %d of table %s: %w", c.part, c.plan.id(), err)
		}
		s.filled.Segments = append(s.filled.Segments, segment{o, c.rows})
	}
	r.copier.recycle(c)
	if c.step != filled {
		return nil
	}
	s.filled.Mark = c.mark.Encode()
	work := cdc.Work{Chunk: c.Chunk, Resume: mustMarshal(s.filled)}
	r.share.Spool(c.ChunkID, work.Resume)
	s.ended, s.filled = append(s.ended, spoolWork{Work: work}), nil
	r.input = true // nothing of it is emitted before an epoch has it
	return nil
}

// next gives a spool that a cut has named.
func (s *spooling) next() (w cdc.Work, ok bool) {
	if len(s.ended) == 0 || !s.ended[0].named {
		return w, false
	}
	w = s.ended[0].Work
	s.ended = s.ended[1:]
	return w, true
}

// cut notes that a cut names everything that was filled, and returns what it has to name.
func (r *reader) spoolCut() []epoch.Object {
	s := &r.spools
	for i := range s.ended {
		s.ended[i].named = true
	}
	objects := spooled(r.share.Spools(), r.where)
	if s.filled != nil {
		objects = s.filled.objects(objects)
	}
	return objects
}

// emitSegment emits a segment of a spool, and the spool is over with the last one.
func (r *reader) emitSegment(ctx context.Context, out source.Output, c *copied) error {
	rows := c.rows
	if err := r.emitChunk(ctx, out, c); err != nil {
		return err
	}
	s := c.spool
	s.Emitted += rows
	s.Segments = s.Segments[1:]
	if len(s.Segments) == 0 {
		r.share.Finish(c.ChunkID, s.Mark, s.Emitted, nil)
		return nil
	}
	r.share.Spool(c.ChunkID, mustMarshal(s))
	return nil
}

// fetch reads the rest of a spool back, segment by segment.
func (c *copier) fetch(ctx context.Context, w cdc.Work) error {
	s, err := decodeSpool(w.Resume, c.target.Where())
	if err != nil {
		return err
	}
	t, plan, err := c.plan(ctx, w.Table)
	if err != nil {
		return c.target.Fault(err)
	}
	if plan.spoolForm() != s.Form {
		return columnsChanged(c.target.Where(), t)
	}
	mark, err := core.ParseMark(s.Mark)
	if err != nil {
		return fault.Wrap(err, fault.SrcPosition, c.target.Where(), err.Error())
	}
	// The reader takes segments off its spool while this goes through the list.
	own, first := *s, s.Emitted
	for _, g := range s.Segments {
		data, err := c.store.Get(ctx, g.Object)
		if err != nil {
			return fmt.Errorf("fetch %s: %w", g.Subject, err)
		}
		got := &copied{Work: w, plan: plan, data: data, rows: g.Rows, mark: mark, step: fetched, first: first, spool: &own}
		if !c.send(ctx, got) {
			return ctx.Err()
		}
		first += g.Rows
	}
	return nil
}
