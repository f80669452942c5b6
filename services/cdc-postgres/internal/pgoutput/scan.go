package pgoutput

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Error says where a message could not be understood. It never carries content.
type Error struct {
	Message byte
	Offset  int
	Reason  string
}

func (e *Error) Error() string {
	return fmt.Sprintf("pgoutput message %q at byte %d: %s", e.Message, e.Offset, e.Reason)
}

// scan reads one message from left to right. After the first failure every read returns zero and err is set.
type scan struct {
	b   []byte
	at  int
	err error
}

func (s *scan) fail(reason string) {
	if s.err != nil {
		return
	}
	var kind byte
	if len(s.b) > 0 {
		kind = s.b[0]
	}
	s.err = &Error{Message: kind, Offset: s.at, Reason: reason}
}

func (s *scan) take(n int) []byte {
	if s.err != nil {
		return nil
	}
	if n < 0 || n > len(s.b)-s.at {
		s.fail("cut short")
		return nil
	}
	s.at += n
	return s.b[s.at-n : s.at : s.at]
}

func (s *scan) byte() byte {
	if b := s.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (s *scan) uint16() uint16 {
	if b := s.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (s *scan) uint32() uint32 {
	if b := s.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (s *scan) uint64() uint64 {
	if b := s.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (s *scan) text() string {
	if s.err != nil {
		return ""
	}
	n := bytes.IndexByte(s.b[s.at:], 0)
	if n < 0 {
		s.fail("text without an end")
		return ""
	}
	t := string(s.b[s.at : s.at+n])
	s.at += n + 1
	return t
}

// kind consumes the first byte, which the caller has already switched on.
func (s *scan) kind(want byte) {
	if got := s.byte(); s.err == nil && got != want {
		s.at = 0
		s.fail(fmt.Sprintf("want message %q", want))
	}
}

func (s *scan) end() error {
	if s.err == nil && s.at != len(s.b) {
		s.fail("bytes left over")
	}
	return s.err
}
