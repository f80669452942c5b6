package core

import (
	"encoding/json"
	"fmt"

	"weir.dev/weir/pkg/cdc"
)

// Mark is the point as of which the rows of a chunk are the table's.
type Mark struct{ at Point }

var _ cdc.Mark[Txn, *Point] = (*Mark)(nil)

// NewMark makes a mark of a point that nobody moves any more.
func NewMark(at Point) *Mark { return &Mark{at} }

// Contains implements cdc.Mark.
func (m *Mark) Contains(t Txn) bool { return m.at.Contains(t) }

// PassedBy implements cdc.Mark.
func (m *Mark) PassedBy(p *Point) bool { return p.Has(&m.at) }

// At is the mark's point.
func (m *Mark) At() *Point { return &m.at }

// Encode is the form that states keep.
func (m *Mark) Encode() ([]byte, error) { return json.Marshal(m.at) }

// Watermark is what people are shown of an encoded mark: the point, in the words of its family.
func Watermark(b []byte) (string, error) {
	m, err := ParseMark(b)
	if err != nil {
		return "", err
	}
	for _, text := range m.at.fields() { // of each family there is one
		return text, nil
	}
	return "", nil
}

// ParseMark reads what Encode wrote.
func ParseMark(b []byte) (*Mark, error) {
	var m Mark
	if err := json.Unmarshal(b, &m.at); err != nil {
		return nil, fmt.Errorf("mark of a chunk: %w", err)
	}
	return &m, nil
}
