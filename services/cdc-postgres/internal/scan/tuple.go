package scan

import "encoding/binary"

// Cells appends the cells of a tuple to dst, nil for null. They are parts of the tuple.
func Cells(dst [][]byte, tuple []byte) ([][]byte, error) {
	if len(tuple) < 2 {
		return dst, errTorn
	}
	n := int(binary.BigEndian.Uint16(tuple))
	tuple = tuple[2:]
	for range n {
		if len(tuple) < 4 {
			return dst, errTorn
		}
		size := int(int32(binary.BigEndian.Uint32(tuple)))
		tuple = tuple[4:]
		switch {
		case size < 0:
			dst = append(dst, nil)
			continue
		case size > len(tuple):
			return dst, errTorn
		}
		dst, tuple = append(dst, tuple[:size:size]), tuple[size:]
	}
	return dst, nil
}

// AppendTuple appends a tuple of cells, nil for null.
func AppendTuple(dst []byte, cells [][]byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(cells)))
	for _, c := range cells {
		if c == nil {
			dst = append(dst, 0xff, 0xff, 0xff, 0xff)
			continue
		}
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(c)))
		dst = append(dst, c...)
	}
	return dst
}
