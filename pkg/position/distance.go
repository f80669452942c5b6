package position

import "strconv"

// Unit is what a distance within one family is counted in.
type Unit string

// The units. There is none that all families share.
const (
	Bytes        Unit = "bytes"
	Transactions Unit = "transactions"
	Rows         Unit = "rows"
)

// Distance is how much lies between two positions of one family, 0 when a is not before b. ok is false where that has no
// meaning: other families, files of a binary log with others between them, or sets of transactions that each have something
// of their own.
func Distance(a, b Position) (n uint64, unit Unit, ok bool) {
	order, ok := Compare(a, b)
	if !ok {
		return 0, "", false
	}
	unit = map[Type]Unit{
		PostgresLSN: Bytes, MySQLBinlog: Bytes, MySQLGTID: Transactions, MariaDBGTID: Transactions, Generator: Rows,
	}[a.Type]
	if order >= 0 {
		return 0, unit, true
	}
	switch a.Type {
	case PostgresLSN:
		x, _ := ParseLSN(a.Fields["lsn"])
		y, _ := ParseLSN(b.Fields["lsn"])
		return uint64(y - x), unit, true
	case MySQLBinlog:
		x, _ := ParseBinlogPos(a.Fields[FieldBinlog])
		y, _ := ParseBinlogPos(b.Fields[FieldBinlog])
		return y.Pos - x.Pos, unit, x.Seq == y.Seq
	case MySQLGTID:
		x, _ := ParseGTIDSet(a.Fields[FieldGTIDs])
		y, _ := ParseGTIDSet(b.Fields[FieldGTIDs])
		for _, spans := range y.Minus(x).of {
			for _, s := range spans {
				n += s.last - s.first + 1
			}
		}
		return n, unit, true
	case MariaDBGTID:
		x, _ := ParseMariaGTIDSet(a.Fields[FieldGTIDs])
		y, _ := ParseMariaGTIDSet(b.Fields[FieldGTIDs])
		for domain, last := range y.last {
			n += last.N - min(last.N, x.last[domain].N)
		}
		return n, unit, true
	case Generator:
		return number(b) - number(a), unit, true
	}
	return 0, "", false
}

// number is a generator's next row; Compare has read it.
func number(p Position) uint64 {
	n, _ := strconv.ParseUint(p.Fields["next"], 10, 64)
	return n
}
