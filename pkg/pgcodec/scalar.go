package pgcodec

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow/array"
)

// badCell says which form of which type the bytes are not, without showing them.
func badCell(typ string, cell []byte) error {
	return fmt.Errorf("%w: %d bytes are no %s", ErrCell, len(cell), typ)
}

func decodeBool(out *array.BooleanBuilder, binary bool) Decoder {
	yes, no := byte('t'), byte('f')
	if binary {
		yes, no = 1, 0
	}
	return func(cell []byte) error {
		if len(cell) != 1 || (cell[0] != yes && cell[0] != no) {
			return badCell("boolean", cell)
		}
		out.Append(cell[0] == yes)
		return nil
	}
}

func decodeInt[T int16 | int32 | int64, B interface{ Append(T) }](out B, binaryForm bool, size int) Decoder {
	if binaryForm {
		return func(cell []byte) error {
			v, ok := beInt(cell, size)
			if !ok {
				return badCell("integer", cell)
			}
			out.Append(T(v))
			return nil
		}
	}
	return func(cell []byte) error {
		v, ok := parseInt(cell)
		if !ok || int64(T(v)) != v {
			return badCell("integer", cell)
		}
		out.Append(T(v))
		return nil
	}
}

func decodeOID(out *array.Uint32Builder, binaryForm bool) Decoder {
	return func(cell []byte) error {
		var v int64
		var ok bool
		if binaryForm {
			v, ok = beInt(cell, 4)
			v = int64(uint32(v))
		} else {
			v, ok = parseInt(cell)
		}
		if !ok || int64(uint32(v)) != v {
			return badCell("oid", cell)
		}
		out.Append(uint32(v))
		return nil
	}
}

// beInt reads a big-endian two's complement integer of exactly size bytes.
func beInt(cell []byte, size int) (int64, bool) {
	if len(cell) != size {
		return 0, false
	}
	switch size {
	case 2:
		return int64(int16(binary.BigEndian.Uint16(cell))), true
	case 4:
		return int64(int32(binary.BigEndian.Uint32(cell))), true
	default:
		return int64(binary.BigEndian.Uint64(cell)), true
	}
}

// parseInt reads a decimal integer as the server prints it: an optional minus and digits.
func parseInt(s []byte) (int64, bool) {
	negative := len(s) > 0 && s[0] == '-'
	if negative {
		s = s[1:]
	}
	if len(s) == 0 || len(s) > 19 {
		return 0, false
	}
	var v uint64 // 19 digits always fit
	for _, c := range s {
		d := c - '0'
		if d > 9 {
			return 0, false
		}
		v = v*10 + uint64(d)
	}
	if negative {
		return -int64(v), v <= 1<<63
	}
	return int64(v), v < 1<<63
}

func decodeFloat32(out *array.Float32Builder, binaryForm bool) Decoder {
	return func(cell []byte) error {
		if binaryForm {
			v, ok := beInt(cell, 4)
			if !ok {
				return badCell("real", cell)
			}
			out.Append(oneNaN32(math.Float32frombits(uint32(v))))
			return nil
		}
		v, err := strconv.ParseFloat(string(cell), 32)
		if err != nil {
			return badCell("real", cell)
		}
		out.Append(oneNaN32(float32(v)))
		return nil
	}
}

func decodeFloat64(out *array.Float64Builder, binaryForm bool) Decoder {
	return func(cell []byte) error {
		if binaryForm {
			v, ok := beInt(cell, 8)
			if !ok {
				return badCell("double precision", cell)
			}
			out.Append(oneNaN64(math.Float64frombits(uint64(v))))
			return nil
		}
		v, err := strconv.ParseFloat(string(cell), 64)
		if err != nil {
			return badCell("double precision", cell)
		}
		out.Append(oneNaN64(v))
		return nil
	}
}

// oneNaN64 and oneNaN32 give NaN the bits the server gives it; strconv's differ.
func oneNaN64(v float64) float64 {
	if v != v {
		return math.Float64frombits(0x7ff8000000000000)
	}
	return v
}

func oneNaN32(v float32) float32 {
	if v != v {
		return math.Float32frombits(0x7fc00000)
	}
	return v
}

func decodeText(out *array.StringBuilder) Decoder {
	return func(cell []byte) error {
		out.BinaryBuilder.Append(cell)
		return nil
	}
}

// decodeJSONB skips the version that jsonb's binary form begins with.
func decodeJSONB(out *array.StringBuilder) Decoder {
	return func(cell []byte) error {
		if len(cell) < 2 || cell[0] != 1 {
			return badCell("jsonb", cell)
		}
		out.BinaryBuilder.Append(cell[1:])
		return nil
	}
}

func decodeBytes(out *array.BinaryBuilder, binaryForm bool) Decoder {
	if binaryForm {
		return func(cell []byte) error {
			out.Append(cell)
			return nil
		}
	}
	var raw []byte
	return func(cell []byte) error {
		if len(cell) < 2 || cell[0] != '\\' || cell[1] != 'x' {
			return badCell("bytea in hex", cell)
		}
		var err error
		if raw, err = hex.AppendDecode(raw[:0], cell[2:]); err != nil {
			return badCell("bytea in hex", cell)
		}
		out.Append(raw)
		return nil
	}
}

func decodeUUID(out *array.FixedSizeBinaryBuilder, binaryForm bool) Decoder {
	var raw [16]byte
	return func(cell []byte) error {
		if binaryForm {
			if len(cell) != 16 {
				return badCell("uuid", cell)
			}
			out.Append(cell)
			return nil
		}
		if !parseUUID(&raw, cell) {
			return badCell("uuid", cell)
		}
		out.Append(raw[:])
		return nil
	}
}

func parseUUID(raw *[16]byte, s []byte) bool {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return false
	}
	at := 0
	for _, from := range [...]int{0, 9, 14, 19, 24} {
		to := from + 4
		switch from {
		case 0:
			to = 8
		case 24:
			to = 36
		}
		n, err := hex.Decode(raw[at:], s[from:to])
		if err != nil {
			return false
		}
		at += n
	}
	return true
}
