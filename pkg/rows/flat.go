package rows

import (
	"encoding/binary"
	"errors"
)

// errFlat is any reference of a flatbuffer that leads out of it.
var errFlat = errors.New("message metadata: reference out of bounds")

// flatTable reads a flatbuffer table. Arrow's own reader panics on references out of bounds and allocates what a
// compressed body claims to need; the data plane reads what others wrote, so it reads the one message it needs by hand.
type flatTable struct {
	buf []byte
	pos int
}

// flatRoot is the table at the root of buf.
func flatRoot(buf []byte) (flatTable, error) {
	if len(buf) < 4 {
		return flatTable{}, errFlat
	}
	return flatAt(buf, int(binary.LittleEndian.Uint32(buf)))
}

func flatAt(buf []byte, pos int) (flatTable, error) {
	if pos < 0 || pos > len(buf)-4 {
		return flatTable{}, errFlat
	}
	return flatTable{buf, pos}, nil
}

// field is the position of field number n with size bytes there, or 0 when the table does not have it.
func (t flatTable) field(n, size int) (int, error) {
	vtable := t.pos - int(int32(binary.LittleEndian.Uint32(t.buf[t.pos:])))
	if vtable < 0 || vtable > len(t.buf)-4 {
		return 0, errFlat
	}
	slot := 4 + 2*n
	if slot+2 > int(binary.LittleEndian.Uint16(t.buf[vtable:])) {
		return 0, nil
	}
	if vtable+slot+2 > len(t.buf) {
		return 0, errFlat
	}
	off := int(binary.LittleEndian.Uint16(t.buf[vtable+slot:]))
	if off == 0 {
		return 0, nil
	}
	if t.pos+off > len(t.buf)-size {
		return 0, errFlat
	}
	return t.pos + off, nil
}

func (t flatTable) byte(n int) (byte, error) {
	at, err := t.field(n, 1)
	if err != nil || at == 0 {
		return 0, err
	}
	return t.buf[at], nil
}

func (t flatTable) int64(n int) (int64, error) {
	at, err := t.field(n, 8)
	if err != nil || at == 0 {
		return 0, err
	}
	return int64(binary.LittleEndian.Uint64(t.buf[at:])), nil
}

func (t flatTable) table(n int) (flatTable, bool, error) {
	at, err := t.field(n, 4)
	if err != nil || at == 0 {
		return flatTable{}, false, err
	}
	sub, err := flatAt(t.buf, at+int(binary.LittleEndian.Uint32(t.buf[at:])))
	return sub, err == nil, err
}

// vector is where the elements of a vector begin and how many there are, all within the buffer.
func (t flatTable) vector(n, size int) (at, count int, err error) {
	at, err = t.field(n, 4)
	if err != nil || at == 0 {
		return 0, 0, err
	}
	at += int(binary.LittleEndian.Uint32(t.buf[at:]))
	if at < 0 || at > len(t.buf)-4 {
		return 0, 0, errFlat
	}
	count = int(binary.LittleEndian.Uint32(t.buf[at:]))
	at += 4
	if count > (len(t.buf)-at)/size {
		return 0, 0, errFlat
	}
	return at, count, nil
}

// tables reads a vector of tables.
func (t flatTable) tables(n int) ([]flatTable, error) {
	at, count, err := t.vector(n, 4)
	if err != nil {
		return nil, err
	}
	out := make([]flatTable, count)
	for i := range out {
		ref := at + 4*i
		if out[i], err = flatAt(t.buf, ref+int(binary.LittleEndian.Uint32(t.buf[ref:]))); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// pairs reads a vector of structs of two int64.
func (t flatTable) pairs(n int) ([][2]int64, error) {
	at, count, err := t.vector(n, 16)
	if err != nil || count == 0 {
		return nil, err
	}
	out := make([][2]int64, count)
	for i := range out {
		out[i][0] = int64(binary.LittleEndian.Uint64(t.buf[at+16*i:]))
		out[i][1] = int64(binary.LittleEndian.Uint64(t.buf[at+16*i+8:]))
	}
	return out, nil
}
