package rows

import "bytes"

// Splitter divides batches over the channels of a HASH edge. It is owned by one goroutine.
type Splitter struct {
	owner  [KeyGroups]int
	keyer  *Keyer
	hashes []uint64
	index  [][]int32
	parts  []*Batch
}

// NewSplitter makes a splitter over n >= 1 channels.
func NewSplitter(n int) *Splitter {
	s := &Splitter{index: make([][]int32, n), parts: make([]*Batch, n)}
	for g := range s.owner {
		s.owner[g] = Owner(g, n)
	}
	return s
}

// Split gives the part of b for each channel, nil where there is none. Rows keep their order; a key always goes to the
// owner of its group; a truncate goes to every channel, in its place; a table without a key goes whole to one channel.
// The slice is reused by the next call, the batches are not.
func (s *Splitter) Split(b *Batch) []*Batch {
	clear(s.parts)
	if b.n == 0 {
		return s.parts
	}
	truncates := bytes.IndexByte(b.op.Uint8Values(), byte(OpTruncate)) >= 0
	if len(s.parts) == 1 {
		s.parts[0] = b
		return s.parts
	}
	if s.keyer == nil || s.keyer.schema != b.schema {
		s.keyer = NewKeyer(b.schema)
	}
	s.hashes = s.keyer.Hashes(s.hashes[:0], b)
	for p := range s.index {
		s.index[p] = s.index[p][:0]
	}
	for i, h := range s.hashes {
		if truncates && b.Op(i) == OpTruncate {
			for p := range s.index {
				s.index[p] = append(s.index[p], int32(i))
			}
			continue
		}
		p := s.owner[GroupOf(h)]
		s.index[p] = append(s.index[p], int32(i))
	}
	for p, idx := range s.index {
		switch len(idx) {
		case 0:
		case b.n:
			s.parts[p] = b
		default:
			s.parts[p] = b.Gather(idx)
		}
	}
	return s.parts
}
