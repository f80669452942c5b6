package minidb

import (
	"encoding/binary"
	"errors"
	"slices"
)

// Visibility is PostgreSQL's kind of mark: what a snapshot sees, and where the log was written to when it was taken. Events
// are transaction ids, positions are lengths of the log.
type Visibility struct {
	// Next is the first id not given yet, Running the ids below it that the snapshot does not see.
	Next    uint64
	Running []uint64
	Written uint64
}

// Contains implements cdc.Mark.
func (m *Visibility) Contains(xid uint64) bool {
	if xid >= m.Next {
		return false
	}
	_, running := slices.BinarySearch(m.Running, xid)
	return !running
}

// PassedBy implements cdc.Mark: what the snapshot sees was in the log before it was taken.
func (m *Visibility) PassedBy(end uint64) bool { return end >= m.Written }

// Executed is MySQL's kind of mark: everything logged up to a point. Events are places in the log, from 1.
type Executed struct{ Upto uint64 }

// Contains implements cdc.Mark.
func (m *Executed) Contains(place uint64) bool { return place <= m.Upto }

// PassedBy implements cdc.Mark.
func (m *Executed) PassedBy(end uint64) bool { return end >= m.Upto }

// Bytes is the mark's form.
func (m *Visibility) Bytes() []byte {
	b := binary.AppendUvarint(nil, m.Next)
	b = binary.AppendUvarint(b, m.Written)
	for _, x := range m.Running {
		b = binary.AppendUvarint(b, x)
	}
	return b
}

// Bytes is the mark's form.
func (m *Executed) Bytes() []byte { return binary.AppendUvarint(nil, m.Upto) }

// ErrMark says that bytes are no mark.
var ErrMark = errors.New("not a mark")

// ParseVisibility reads Visibility's form.
func ParseVisibility(b []byte) (*Visibility, error) {
	v, err := uvarints(b)
	if err != nil || len(v) < 2 {
		return nil, ErrMark
	}
	return &Visibility{Next: v[0], Written: v[1], Running: v[2:]}, nil
}

// ParseExecuted reads Executed's form.
func ParseExecuted(b []byte) (*Executed, error) {
	v, err := uvarints(b)
	if err != nil || len(v) != 1 {
		return nil, ErrMark
	}
	return &Executed{Upto: v[0]}, nil
}

func uvarints(b []byte) (all []uint64, err error) {
	for len(b) > 0 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, ErrMark
		}
		all, b = append(all, v), b[n:]
	}
	return all, nil
}
