package position

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// BinlogPos is a place in the binary log of one server: a file and a byte in it. The zero value is none. Places compare
// within one base name only, where the files' numbers do, which are no texts: binlog.999999 is before binlog.1000000.
type BinlogPos struct {
	Base string // the file's name before the last dot
	Seq  uint64 // the number behind it
	Pos  uint64
}

// NewBinlogPos makes a place of a file's name and a byte.
func NewBinlogPos(file string, pos uint64) (BinlogPos, error) {
	dot := strings.LastIndexByte(file, '.')
	if dot <= 0 {
		return BinlogPos{}, fmt.Errorf("binary log %q: want name.number", file)
	}
	seq, err := strconv.ParseUint(file[dot+1:], 10, 63)
	if err != nil {
		return BinlogPos{}, fmt.Errorf("binary log %q: want name.number", file)
	}
	return BinlogPos{Base: file[:dot], Seq: seq, Pos: pos}, nil
}

// ParseBinlogPos reads what String writes.
func ParseBinlogPos(s string) (BinlogPos, error) {
	file, at, ok := strings.Cut(s, ":")
	pos, err := strconv.ParseUint(at, 10, 64)
	if !ok || err != nil {
		return BinlogPos{}, fmt.Errorf("parse binary log position %q: want file:position", s)
	}
	return NewBinlogPos(file, pos)
}

// IsZero reports whether there is no place.
func (p BinlogPos) IsZero() bool { return p.Base == "" }

// File is the file's name as the server writes it, with at least six digits.
func (p BinlogPos) File() string { return fmt.Sprintf("%s.%06d", p.Base, p.Seq) }

// String is file:position.
func (p BinlogPos) String() string { return p.File() + ":" + strconv.FormatUint(p.Pos, 10) }

// Compare orders two places; ok is false between files of different base names.
func (p BinlogPos) Compare(o BinlogPos) (order int, ok bool) {
	return cmp.Or(cmp.Compare(p.Seq, o.Seq), cmp.Compare(p.Pos, o.Pos)), p.Base == o.Base
}

// MarshalText implements encoding.TextMarshaler.
func (p BinlogPos) MarshalText() ([]byte, error) {
	if p.IsZero() {
		return nil, nil
	}
	return []byte(p.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *BinlogPos) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*p = BinlogPos{}
		return nil
	}
	read, err := ParseBinlogPos(string(text))
	*p = read
	return err
}
