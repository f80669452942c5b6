package position

import (
	"cmp"
	"strconv"
)

// Compare orders two positions of one family: -1, 0 or +1. ok is false when they do not compare: another family or
// version, or fields this build does not know. Only the part that can be confirmed upstream counts; where inside a
// transaction a cut lies does not.
func Compare(a, b Position) (order int, ok bool) {
	if a.Type != b.Type || a.Version != b.Version {
		return 0, false
	}
	switch a.Type {
	case PostgresLSN:
		x, errX := ParseLSN(a.Fields["lsn"])
		y, errY := ParseLSN(b.Fields["lsn"])
		return cmp.Compare(x, y), errX == nil && errY == nil
	case Generator:
		x, errX := strconv.ParseUint(a.Fields["next"], 10, 64)
		y, errY := strconv.ParseUint(b.Fields["next"], 10, 64)
		return cmp.Compare(x, y), errX == nil && errY == nil
	case MySQLGTID:
		x, errX := ParseGTIDSet(a.Fields[FieldGTIDs])
		y, errY := ParseGTIDSet(b.Fields[FieldGTIDs])
		return within(x.ContainsSet(y), y.ContainsSet(x), errX == nil && errY == nil)
	case MariaDBGTID:
		x, errX := ParseMariaGTIDSet(a.Fields[FieldGTIDs])
		y, errY := ParseMariaGTIDSet(b.Fields[FieldGTIDs])
		return within(x.ContainsSet(y), y.ContainsSet(x), errX == nil && errY == nil)
	case MySQLBinlog:
		x, errX := ParseBinlogPos(a.Fields[FieldBinlog])
		y, errY := ParseBinlogPos(b.Fields[FieldBinlog])
		order, ok := x.Compare(y)
		return order, ok && errX == nil && errY == nil
	}
	return 0, false
}

// within orders sets by containment; those that each have something of their own do not compare.
func within(aHasB, bHasA, readable bool) (order int, ok bool) {
	switch {
	case !readable || (!aHasB && !bHasA):
		return 0, false
	case aHasB && bHasA:
		return 0, true
	case aHasB:
		return 1, true
	}
	return -1, true
}
