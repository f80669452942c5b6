package cdc

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// A segment ends with the chunk that makes one of these full.
const (
	segmentChunks = 1000
	segmentBytes  = 256 << 10
)

// Digest names a segment by its content: sha256 in hex.
type Digest string

// Segment is an immutable run of finished chunks.
type Segment struct {
	Digest Digest
	Data   []byte
}

// Segments reads segments back.
type Segments interface {
	// Segment returns the bytes with that digest; the caller checks them.
	Segment(d Digest) ([]byte, error)
}

// size is about what the chunk adds to a segment.
func (f Finished) size() int {
	n := len(f.Mark) + 16
	for _, cell := range f.Low {
		n += len(cell)
	}
	for _, cell := range f.High {
		n += len(cell)
	}
	return n
}

func digestOf(data []byte) Digest {
	sum := sha256.Sum256(data)
	return Digest(hex.EncodeToString(sum[:]))
}

const segmentVersion = 1

// encodeSegment writes chunks with their marks, equal marks once.
func encodeSegment(chunks []Finished) []byte {
	var w writer
	w.byte(segmentVersion)
	place := make(map[string]uint64)
	var marks []string
	for _, c := range chunks {
		m := string(c.Mark)
		if _, ok := place[m]; !ok {
			place[m] = uint64(len(marks))
			marks = append(marks, m)
		}
	}
	w.uint(uint64(len(marks)))
	for _, m := range marks {
		w.bytes([]byte(m))
	}
	w.uint(uint64(len(chunks)))
	for _, c := range chunks {
		w.chunk(c.Chunk)
		w.uint(place[string(c.Mark)])
		w.uint(c.Rows)
	}
	return w.b
}

// decodeSegment reads a segment. Chunks with equal marks share the bytes of the mark.
func decodeSegment(data []byte) ([]Finished, error) {
	r := reader{b: data}
	if v := r.byte(); v != segmentVersion && r.err == nil {
		return nil, fmt.Errorf("%w: segment version %d, this build reads %d", ErrMalformed, v, segmentVersion)
	}
	marks := make([][]byte, r.count())
	seen := make(map[string]bool, len(marks))
	for i := range marks {
		marks[i] = r.bytes()
		if seen[string(marks[i])] {
			r.fail("a mark twice")
		}
		seen[string(marks[i])] = true
	}
	chunks := make([]Finished, r.count())
	used := uint64(0) // marks stand in the order of their first use
	for i := range chunks {
		chunks[i].Chunk = r.chunk()
		at := r.uint()
		if r.err == nil && (at >= uint64(len(marks)) || at > used) {
			r.fail("a mark that is not there")
		}
		if r.err == nil {
			chunks[i].Mark = marks[at]
			used = max(used, at+1)
		}
		chunks[i].Rows = r.uint()
	}
	if used != uint64(len(marks)) {
		r.fail("a mark without a chunk")
	}
	return chunks, r.end()
}
