package cdc

import (
	"bytes"
	"encoding/binary"
)

// Key is the key of a row as a tuple of cells, in the order of the key's columns. A cell is the adapter's canonical form:
// equal values have equal bytes, whatever path they came by. The cells of one table are always as many. A nil Key is no
// key: the missing bound of a first or last chunk.
type Key [][]byte

// Equal reports whether both are the same tuple of cells.
func (k Key) Equal(o Key) bool {
	if len(k) != len(o) || (k == nil) != (o == nil) {
		return false
	}
	for i := range k {
		if !bytes.Equal(k[i], o[i]) {
			return false
		}
	}
	return true
}

// Clone copies the tuple and its cells.
func (k Key) Clone() Key {
	if k == nil {
		return nil
	}
	c := make(Key, len(k))
	for i := range k {
		c[i] = append([]byte{}, k[i]...)
	}
	return c
}

// append writes an unambiguous form of the tuple.
func (k Key) append(dst []byte) []byte {
	for _, cell := range k {
		dst = binary.AppendUvarint(dst, uint64(len(cell)))
		dst = append(dst, cell...)
	}
	return dst
}

// Order compares two keys of one table exactly as the database orders them. A nil Order is one that only the server knows.
type Order interface {
	// Compare is negative, zero or positive.
	Compare(a, b Key) int
}

// Bytewise orders keys cell by cell, each by its bytes. It is the database's order when the cells are written so:
// [AppendInt] and [AppendUint] for integers and for temporal types counted from an instant, the bytes themselves for uuid,
// bytea and columns of a binary collation. It is the fastest order to filter by.
type Bytewise struct{}

// Compare implements Order.
func (Bytewise) Compare(a, b Key) int {
	for i := range min(len(a), len(b)) {
		if c := bytes.Compare(a[i], b[i]); c != 0 {
			return c
		}
	}
	return len(a) - len(b)
}

// AppendInt writes a cell of 8 bytes that orders bytewise as v does.
func AppendInt(dst []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(v)^(1<<63))
}

// Int reads what AppendInt wrote; ok is false for cells of another width.
func Int(cell []byte) (v int64, ok bool) {
	if len(cell) != 8 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(cell) ^ (1 << 63)), true
}
