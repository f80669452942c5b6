package pgoutput

import "encoding/binary"

// The kinds of cells.
const (
	CellNull      = 'n'
	CellUnchanged = 'u' // an out-of-line value that the update did not touch and the log does not carry
	CellText      = 't'
	CellBinary    = 'b'
)

// The kinds of old rows.
const (
	OldNone = 0
	OldKey  = 'K' // only the columns of the replica identity are meant
	OldFull = 'O'
)

// Cell is one column of a row. Data is a view into the message and nil unless Kind is CellText or CellBinary.
type Cell struct {
	Kind byte
	Data []byte
}

// Change is an Insert, Update or Delete. Its slices belong to the Change and are overwritten by the next Parse.
type Change struct {
	Kind     byte
	Relation uint32
	OldKind  byte
	Old, New []Cell
}

// Parse decodes an Insert, Update or Delete message. After an error the Change holds nothing of use.
func (c *Change) Parse(b []byte) error {
	c.OldKind, c.Old, c.New = OldNone, c.Old[:0], c.New[:0]
	if len(b) < 6 {
		s := scan{b: b, at: len(b)}
		s.fail("cut short")
		return s.err
	}
	c.Kind, c.Relation = b[0], binary.BigEndian.Uint32(b[1:])
	part, at := b[5], 6
	var reason string
	switch {
	case c.Kind == KindInsert && part == 'N',
		c.Kind == KindUpdate && part == 'N':
		c.New, at, reason = parseTuple(b, at, c.New)
	case c.Kind == KindUpdate && (part == OldKey || part == OldFull):
		c.OldKind = part
		if c.Old, at, reason = parseTuple(b, at, c.Old); reason != "" {
			break
		}
		if at >= len(b) || b[at] != 'N' {
			reason = "want a new row"
			break
		}
		c.New, at, reason = parseTuple(b, at+1, c.New)
	case c.Kind == KindDelete && (part == OldKey || part == OldFull):
		c.OldKind = part
		c.Old, at, reason = parseTuple(b, at, c.Old)
	default:
		at, reason = 5, "unknown part"
	}
	if reason == "" && at != len(b) {
		reason = "bytes left over"
	}
	if reason != "" {
		s := scan{b: b, at: at}
		s.fail(reason)
		return s.err
	}
	return nil
}

// parseTuple appends the cells of the row at b[at:] and returns the offset behind it. It is written out by hand: it
// runs once for every row of the log.
func parseTuple(b []byte, at int, cells []Cell) ([]Cell, int, string) {
	if len(b)-at < 2 {
		return cells, at, "cut short"
	}
	n := int(binary.BigEndian.Uint16(b[at:]))
	at += 2
	for range n {
		if at >= len(b) {
			return cells, at, "cut short"
		}
		kind := b[at]
		switch kind {
		case CellText, CellBinary:
			if len(b)-at < 5 {
				return cells, at, "cut short"
			}
			size := int(binary.BigEndian.Uint32(b[at+1:]))
			at += 5
			if size > len(b)-at {
				return cells, at, "cut short"
			}
			cells = append(cells, Cell{Kind: kind, Data: b[at : at+size : at+size]})
			at += size
		case CellNull, CellUnchanged:
			cells = append(cells, Cell{Kind: kind})
			at++
		default:
			return cells, at, "unknown cell"
		}
	}
	return cells, at, ""
}
