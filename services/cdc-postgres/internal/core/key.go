package core

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	"weir.dev/weir/pkg/cdc"
)

// KeyForm is how the cells of a key column are written, so that a key found by a query, by the log and in a saved state is
// the same one. The forms are part of a life's state and never change.
type KeyForm string

// The forms.
const (
	KeyInt    KeyForm = "int"    // integers and oid, in bytewise order
	KeyUUID   KeyForm = "uuid"   // 16 bytes
	KeyBytes  KeyForm = "bytes"  // bytea
	KeyBool   KeyForm = "bool"   // one byte
	KeyText   KeyForm = "text"   // the text, in a collation that orders by bytes
	KeyServer KeyForm = "server" // the server's text; only the server knows the order
)

// KeyFormOf is the form for a built-in type; bytewise says that the column's collation orders by bytes.
func KeyFormOf(typeOID uint32, bytewise bool) KeyForm {
	switch typeOID {
	case 20, 21, 23, 26: // bigint, smallint, integer, oid
		return KeyInt
	case 2950:
		return KeyUUID
	case 17:
		return KeyBytes
	case 16:
		return KeyBool
	case 25, 1043: // text, character varying
		if bytewise {
			return KeyText
		}
	}
	return KeyServer
}

// KeyOrder is the order of keys with these forms; nil when only the server knows it.
func KeyOrder(forms []KeyForm) cdc.Order {
	if slices.Contains(forms, KeyServer) {
		return nil
	}
	return cdc.Bytewise{}
}

// Cell appends the cell of a value in the server's text form.
func (f KeyForm) Cell(dst, text []byte) ([]byte, error) {
	switch f {
	case KeyInt:
		v, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil {
			return dst, fmt.Errorf("key of form %s: not an integer", f)
		}
		return cdc.AppendInt(dst, v), nil
	case KeyUUID:
		n := len(dst)
		dst = append(dst, make([]byte, 16)...)
		if len(text) != 36 || !uuidBytes(dst[n:], text) {
			return dst[:n], fmt.Errorf("key of form %s: not a uuid", f)
		}
		return dst, nil
	case KeyBytes:
		if len(text) < 2 || text[0] != '\\' || text[1] != 'x' {
			return dst, fmt.Errorf("key of form %s: not in hexadecimal", f)
		}
		out, err := hex.AppendDecode(dst, text[2:])
		if err != nil {
			return dst, fmt.Errorf("key of form %s: not in hexadecimal", f)
		}
		return out, nil
	case KeyBool:
		if len(text) != 1 || (text[0] != 't' && text[0] != 'f') {
			return dst, fmt.Errorf("key of form %s: neither t nor f", f)
		}
		if text[0] == 't' {
			return append(dst, 1), nil
		}
		return append(dst, 0), nil
	case KeyText, KeyServer:
		return append(dst, text...), nil
	}
	return dst, fmt.Errorf("key of unknown form %q", f)
}

// uuidBytes reads the server's text of a uuid, which is in lower case with four hyphens.
func uuidBytes(dst, text []byte) bool {
	at := 0
	for i := range dst {
		if at < len(text) && text[at] == '-' {
			at++
		}
		if at+2 > len(text) {
			return false
		}
		hi, lo := nibble(text[at]), nibble(text[at+1])
		if hi < 0 || lo < 0 {
			return false
		}
		dst[i] = byte(hi<<4 | lo)
		at += 2
	}
	return at == len(text)
}

func nibble(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	}
	return -1
}

// Text is the inverse of Cell: the text by which the server is asked for a value.
func (f KeyForm) Text(cell []byte) ([]byte, error) {
	switch f {
	case KeyInt:
		if v, ok := cdc.Int(cell); ok {
			return strconv.AppendInt(nil, v, 10), nil
		}
	case KeyUUID:
		if len(cell) == 16 {
			return hex.AppendEncode(nil, cell), nil
		}
	case KeyBytes:
		return hex.AppendEncode([]byte(`\x`), cell), nil
	case KeyBool:
		if len(cell) == 1 && cell[0] <= 1 {
			return []byte{"ft"[cell[0]]}, nil
		}
	case KeyText, KeyServer:
		return cell, nil
	}
	return nil, fmt.Errorf("a key cell of %d bytes is not of form %q", len(cell), f)
}
