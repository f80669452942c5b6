package cdc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrMalformed is in the chain of every error about bytes that this package did not write.
var ErrMalformed = errors.New("malformed cdc state")

// writer writes the binary form of states and messages: uvarints, byte strings with their length, and nothing that could
// be written in two ways.
type writer struct{ b []byte }

func (w *writer) byte(v byte)     { w.b = append(w.b, v) }
func (w *writer) uint(v uint64)   { w.b = binary.AppendUvarint(w.b, v) }
func (w *writer) table(t TableID) { w.uint(uint64(t)) }

func (w *writer) bool(v bool) {
	if v {
		w.byte(1)
	} else {
		w.byte(0)
	}
}

func (w *writer) bytes(v []byte) {
	w.uint(uint64(len(v)))
	w.b = append(w.b, v...)
}

func (w *writer) key(k Key) {
	if k == nil {
		w.uint(0)
		return
	}
	w.uint(uint64(len(k)) + 1)
	for _, cell := range k {
		w.bytes(cell)
	}
}

func (w *writer) id(c ChunkID) {
	w.table(c.Table)
	w.uint(uint64(c.Number))
}

func (w *writer) chunk(c Chunk) {
	w.id(c.ChunkID)
	w.key(c.Low)
	w.key(c.High)
}

// reader reads what a writer wrote. After the first error everything reads as zero.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrMalformed, what)
	}
	r.b = nil
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.fail("ends early")
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *reader) bool() bool {
	v := r.byte()
	if v > 1 {
		r.fail("a flag that is neither 0 nor 1")
	}
	return v == 1
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || (n > 1 && r.b[n-1] == 0) { // a second spelling ends with a zero
		r.fail("a number that ends early, is too large or is spelt too long")
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) uint32() uint32 {
	v := r.uint()
	if v > math.MaxUint32 {
		r.fail("a number above 32 bits")
		return 0
	}
	return uint32(v)
}

func (r *reader) size() int64 {
	v := r.uint()
	if v > math.MaxInt64 {
		r.fail("a size above 63 bits")
		return 0
	}
	return int64(v)
}

// count reads the number of things to come, each of which takes at least one byte.
func (r *reader) count() int {
	v := r.uint()
	if v > uint64(len(r.b)) {
		r.fail("more items than bytes")
		return 0
	}
	return int(v)
}

// bytes returns a copy; nil when empty.
func (r *reader) bytes() []byte {
	n := r.count()
	if n == 0 {
		return nil
	}
	v := append([]byte(nil), r.b[:n]...)
	r.b = r.b[n:]
	return v
}

func (r *reader) table() TableID { return TableID(r.uint()) }

func (r *reader) key() Key {
	n := r.countNil()
	if n == 0 {
		return nil
	}
	k := make(Key, n-1)
	for i := range k {
		k[i] = r.bytes()
	}
	return k
}

// countNil reads a number of things plus one, 0 for nil.
func (r *reader) countNil() int {
	v := r.uint()
	if v > uint64(len(r.b))+1 {
		r.fail("more items than bytes")
		return 0
	}
	return int(v)
}

func (r *reader) id() ChunkID { return ChunkID{Table: r.table(), Number: r.uint32()} }

func (r *reader) chunk() Chunk { return Chunk{ChunkID: r.id(), Low: r.key(), High: r.key()} }

// end checks that nothing is left.
func (r *reader) end() error {
	if r.err == nil && len(r.b) > 0 {
		r.fail("bytes behind the end")
	}
	return r.err
}
