package core

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/position"
)

// Mark is what a chunk has seen: the transactions visible to the snapshot it was read in. Log positions cannot say that,
// because a transaction is logged before it becomes visible, and may wait for a standby in between.
type Mark struct {
	// Xmin, Xmax and Xip are those of pg_current_snapshot, 64 bits wide: visible is what is below Xmin, or below Xmax and
	// not in Xip. Xip grows. It holds top-level transactions only, as the log names them, prepared ones among them.
	Xmin, Xmax uint64
	Xip        []uint64
	// End is an end of the log read after the rows: whatever the snapshot sees was logged before it.
	End position.LSN
}

var _ cdc.Mark[uint32, position.LSN] = (*Mark)(nil)

// Contains reports whether the snapshot sees a transaction that the log has as committed. The log names it by 32 bits; it
// is the one nearest to Xmax, since PostgreSQL itself never lets ids that are in use differ by 2^31 or more.
func (m *Mark) Contains(xid uint32) bool {
	full := m.Xmax + uint64(int64(int32(xid-uint32(m.Xmax))))
	switch {
	case full < m.Xmin:
		return true
	case full >= m.Xmax:
		return false
	}
	_, running := slices.BinarySearch(m.Xip, full)
	return !running
}

// PassedBy reports that the log behind at has no transaction that the snapshot sees.
func (m *Mark) PassedBy(at position.LSN) bool { return at > m.End }

// NewMark takes the text of pg_current_snapshot and an end of the log read after the rows.
func NewMark(snapshot string, end position.LSN) (*Mark, error) {
	m := &Mark{End: end}
	bad := func(why error) error { return fmt.Errorf("snapshot %q: %w", snapshot, why) }
	part := strings.Split(snapshot, ":")
	if len(part) != 3 {
		return nil, bad(errors.New("not xmin:xmax:xip"))
	}
	var err1, err2 error
	m.Xmin, err1 = strconv.ParseUint(part[0], 10, 64)
	m.Xmax, err2 = strconv.ParseUint(part[1], 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return nil, bad(err)
	}
	for id := range strings.SplitSeq(part[2], ",") {
		if id == "" {
			continue
		}
		x, err := strconv.ParseUint(id, 10, 64)
		if err != nil {
			return nil, bad(err)
		}
		m.Xip = append(m.Xip, x)
	}
	if m.Xmin > m.Xmax || !slices.IsSorted(m.Xip) {
		return nil, bad(errors.New("ids out of order"))
	}
	return m, nil
}

// Encode is the form that ParseMark reads: the server's text of the snapshot, an @ and the end of the log.
func (m *Mark) Encode() []byte {
	b := strconv.AppendUint(nil, m.Xmin, 10)
	b = append(b, ':')
	b = strconv.AppendUint(b, m.Xmax, 10)
	b = append(b, ':')
	for i, x := range m.Xip {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, x, 10)
	}
	return append(append(b, '@'), m.End.String()...)
}

// Watermark is what people are shown of an encoded mark: the end of the log that was read after the rows.
func Watermark(b []byte) (string, error) {
	m, err := ParseMark(b)
	if err != nil {
		return "", err
	}
	return m.End.String(), nil
}

// ParseMark reads a mark back.
func ParseMark(b []byte) (*Mark, error) {
	snapshot, end, ok := strings.Cut(string(b), "@")
	if !ok {
		return nil, fmt.Errorf("mark %q: no end of the log", b)
	}
	lsn, err := position.ParseLSN(end)
	if err != nil {
		return nil, fmt.Errorf("mark %q: %w", b, err)
	}
	return NewMark(snapshot, lsn)
}
