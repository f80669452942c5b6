package mycodec

import (
	"encoding/hex"
	"net/netip"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow/array"
)

// address is the value of a UUID, INET4 or INET6 in its bytes. The log leaves out zeros at the end.
func (c Codec) address(cell []byte, log bool) ([]byte, bool) {
	if log {
		if len(cell) > c.bytes {
			return nil, false
		}
		return append(append(make([]byte, 0, c.bytes), cell...), make([]byte, c.bytes-len(cell))...), true
	}
	if c.kind == kUUID {
		return readUUID(cell)
	}
	a, err := netip.ParseAddr(string(cell))
	if err != nil || a.Zone() != "" || a.Is4() != (c.bytes == 4) {
		return nil, false
	}
	return a.AsSlice(), true
}

// readUUID reads 8-4-4-4-12 hexadecimal digits.
func readUUID(cell []byte) ([]byte, bool) {
	if len(cell) != 36 {
		return nil, false
	}
	digits := make([]byte, 0, 32)
	for i, d := range cell {
		switch i {
		case 8, 13, 18, 23:
			if d != '-' {
				return nil, false
			}
		default:
			digits = append(digits, d)
		}
	}
	raw := make([]byte, 16)
	_, err := hex.Decode(raw, digits)
	return raw, err == nil
}

func (c Codec) uuids(out *array.FixedSizeBinaryBuilder, log bool) Decoder {
	return func(cell []byte) error {
		raw, ok := c.address(cell, log)
		if !ok {
			return c.bad()
		}
		out.Append(raw)
		return nil
	}
}

func (c Codec) addresses(out *array.StringBuilder, log bool) Decoder {
	var buf []byte
	return func(cell []byte) error {
		raw, ok := c.address(cell, log)
		if !ok {
			return c.bad()
		}
		buf = appendAddress(buf[:0], raw)
		out.BinaryBuilder.Append(buf)
		return nil
	}
}

// appendAddress writes an address as MariaDB does: the first of the longest runs of zeros, also one of a single group, is
// left out, and what can hold an address of the fourth version shows it.
func appendAddress(dst, raw []byte) []byte {
	if len(raw) == 4 {
		return netip.AddrFrom4([4]byte(raw)).AppendTo(dst)
	}
	group := func(i int) uint64 { return big(raw[2*i : 2*i+2]) }
	gap, length := -1, 0
	for i := 0; i < 8; i++ {
		n := 0
		for i+n < 8 && group(i+n) == 0 {
			n++
		}
		if n > length {
			gap, length = i, n
		}
		i += n
	}
	for i := 0; i < 8; i++ {
		if i == gap {
			dst = append(dst, ':', ':')
			i += length - 1
			continue
		}
		if i > 0 && i != gap+length {
			dst = append(dst, ':')
		}
		if i == 6 && gap == 0 && (length == 6 || (length == 5 && group(5) == 0xffff)) {
			return netip.AddrFrom4([4]byte(raw[12:])).AppendTo(dst)
		}
		dst = strconv.AppendUint(dst, group(i), 16)
	}
	return dst
}
