package halves

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
	// SpoolSegments bounds a spool, since every epoch names its segments.
	SpoolSegments = 2048
	// SpoolBytes is how much that is, with segments of the size that the runtime has; for people who ask beforehand.
	SpoolBytes = SpoolSegments * 16 << 20
)

const spoolVersion = 1

// Spool is a table on its way through the state stream; it is also the state of a chunk, see [cdc.Share.Spool].
type Spool struct {
	Version int `json:"version"`
	// Form is what the cells of its rows are, see [SpoolForm].
	Form string `json:"form"`
	// Mark is that of the statement, in the adapter's encoding.
	Mark []byte `json:"mark"`
	// Emitted counts the rows of the segments that are done with; Segments are the others, in order.
	Emitted  uint64    `json:"emitted"`
	Segments []Segment `json:"segments"`
}

// Segment is a run of rows in the state stream.
type Segment struct {
	epoch.Object

	Rows uint64 `json:"rows"`
}

// SpoolForm tells spools apart whose cells would be read otherwise: how is what the statement selects, and in which forms.
func SpoolForm(how string) string {
	sum := sha256.Sum256([]byte(how))
	return hex.EncodeToString(sum[:])
}

// DecodeSpool reads the state of a chunk; where is the path of the source, for the error of one that is not readable.
func DecodeSpool(data []byte, where string) (*Spool, error) {
	var s Spool
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fault.Wrap(err, fault.SrcPosition, where, "the saved state of a spool is not readable")
	}
	if s.Version != spoolVersion || len(s.Segments) == 0 {
		return nil, fault.New(fault.SrcPosition, where, fmt.Sprintf(
			"the saved state of a spool has version %d and %d segments, this build reads %d", s.Version, len(s.Segments), spoolVersion))
	}
	return &s, nil
}

// encode writes a spool, which always can be.
func (s *Spool) encode() []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic("halves: a spool cannot be written: " + err.Error())
	}
	return b
}

func (s *Spool) objects(more []epoch.Object) []epoch.Object {
	for _, g := range s.Segments {
		more = append(more, g.Object)
	}
	return more
}

// Spooled lists the objects that the spools of some chunks need. Spools that cannot be read need none: reading them stops the
// job.
func Spooled(states [][]byte) []epoch.Object {
	var objects []epoch.Object
	for _, state := range states {
		s, err := DecodeSpool(state, "")
		if err != nil {
			continue
		}
		objects = s.objects(objects)
	}
	return objects
}

// Fetch reads a spool back, segment by segment, for the copier. first is how many rows of the spool were before each. What each
// is given may be kept, and own too: one for all, whose segments the reader takes off, see [Spooling.Emitted].
func (s *Spool) Fetch(ctx context.Context, store source.Store, each func(data []byte, rows, first uint64, own *Spool) error) error {
	own, first := *s, s.Emitted
	for _, g := range s.Segments {
		data, err := store.Get(ctx, g.Object)
		if err != nil {
			return fmt.Errorf("fetch %s: %w", g.Subject, err)
		}
		if err := each(data, g.Rows, first, &own); err != nil {
			return err
		}
		first += g.Rows
	}
	return nil
}

// Step is what a piece of a chunk is to a spool.
type Step uint8

// The steps of pieces.
const (
	// Whole is a chunk that is none of a spool.
	Whole Step = iota
	// Fill is a segment to be stored, Filled the last of them.
	Fill
	Filled
	// Fetched is a segment that was stored, to be emitted.
	Fetched
)

// Piece is a segment that a copier has filled.
type Piece struct {
	Chunk cdc.Chunk
	// Step is Fill or, when the statement has ended, Filled; then Mark is its mark. Part counts the pieces from 0.
	Step Step
	Part int
	Mark []byte
	// Form is that of the rows in Data.
	Form string
	Data []byte
	Rows uint64
}

// Spooling is a reader's side of the spools under way. It belongs to the reader's loop.
type Spooling struct {
	store  source.Store
	share  *cdc.Share
	filled *Spool      // the one being filled
	ended  []spoolWork // filled, and not given to the copier again
}

type spoolWork struct {
	cdc.Work

	named bool // by a cut
}

// NewSpooling is for a reader with this part of the copy.
func NewSpooling(store source.Store, share *cdc.Share) *Spooling {
	return &Spooling{store: store, share: share}
}

// Keep stores a segment. The first one begins a spool; if the copier's connection broke in the midst of another, that one is
// forgotten. The caller has to ask for an epoch: nothing is emitted, or outlives the reader, before one has it.
func (s *Spooling) Keep(ctx context.Context, p Piece) error {
	if p.Part == 0 {
		s.filled = &Spool{Version: spoolVersion, Form: p.Form}
	}
	if len(p.Data) > 0 || p.Rows > 0 {
		o, err := s.store.Put(ctx, p.Data)
		if err != nil {
			return fmt.Errorf("spool segment %d of chunk %s: %w", p.Part, p.Chunk.ChunkID, err)
		}
		s.filled.Segments = append(s.filled.Segments, Segment{o, p.Rows})
	}
	if p.Step != Filled {
		return nil
	}
	s.filled.Mark = p.Mark
	work := cdc.Work{Chunk: p.Chunk, Resume: s.filled.encode()}
	s.share.Spool(p.Chunk.ChunkID, work.Resume)
	s.ended, s.filled = append(s.ended, spoolWork{Work: work}), nil
	return nil
}

// Next gives the copier's next work: a spool that a cut has named, to be fetched, else a chunk of the reader's share.
func (s *Spooling) Next() (w cdc.Work, ok bool) {
	if len(s.ended) == 0 || !s.ended[0].named {
		return s.share.Next()
	}
	w = s.ended[0].Work
	s.ended = s.ended[1:]
	return w, true
}

// Cut notes that a cut names everything that was filled, and returns what it has to name.
func (s *Spooling) Cut() []epoch.Object {
	for i := range s.ended {
		s.ended[i].named = true
	}
	objects := Spooled(s.share.Spools())
	if s.filled != nil {
		objects = s.filled.objects(objects)
	}
	return objects
}

// Emitted notes that the rows of the first segment of a spool that was fetched are emitted. With the last one the chunk is
// finished.
func (s *Spooling) Emitted(id cdc.ChunkID, own *Spool, rows uint64) {
	own.Emitted += rows
	own.Segments = own.Segments[1:]
	if len(own.Segments) == 0 {
		s.share.Finish(id, own.Mark, own.Emitted, nil)
		return
	}
	s.share.Spool(id, own.encode())
}
