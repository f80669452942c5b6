package cdc

import "encoding/binary"

// maxWords bounds the keys that are sought as numbers: four integers, or two of them and a uuid.
const maxWords = 4

// wordIndex holds bounds whose cells have one shape of whole words of 8 bytes: one behind the other, to be compared as
// numbers, which is how Bytewise compares them.
type wordIndex struct {
	cells []int // words of each cell
	n     int   // words of a bound
	words []uint64
}

// newWordIndex returns nil for bounds of other shapes.
func newWordIndex(bounds []Key) *wordIndex {
	if len(bounds) == 0 {
		return nil
	}
	x := &wordIndex{}
	for _, cell := range bounds[0] {
		if len(cell) == 0 || len(cell)%8 != 0 {
			return nil
		}
		x.cells = append(x.cells, len(cell)/8)
		x.n += len(cell) / 8
	}
	if x.n > maxWords {
		return nil
	}
	for _, b := range bounds {
		w, ok := x.read(b)
		if !ok {
			return nil
		}
		x.words = append(x.words, w[:x.n]...)
	}
	return x
}

// read takes a key of the index's shape apart.
func (x *wordIndex) read(key Key) (w [maxWords]uint64, ok bool) {
	if len(key) != len(x.cells) {
		return w, false
	}
	n := 0
	for i, cell := range key {
		if len(cell) != 8*x.cells[i] {
			return w, false
		}
		for ; len(cell) > 0; cell = cell[8:] {
			w[n] = binary.BigEndian.Uint64(cell)
			n++
		}
	}
	return w, true
}

// seek counts the bounds at or below a key; ok is false for a key of another shape.
func (x *wordIndex) seek(key Key) (at int, ok bool) {
	w, ok := x.read(key)
	if !ok {
		return 0, false
	}
	lo, hi := 0, len(x.words)/x.n
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if x.below(mid, &w) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, true
}

// below reports whether a bound is at or below a key.
func (x *wordIndex) below(at int, w *[maxWords]uint64) bool {
	for i, b := range x.words[at*x.n : (at+1)*x.n] {
		if b != w[i] {
			return b < w[i]
		}
	}
	return true
}
