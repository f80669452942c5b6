package core

import (
	"weir.dev/weir/pkg/position"
)

// Txn is the identity of a transaction in the log. It is comparable; which field is set is the family's.
type Txn struct {
	GTID  position.GTID
	Maria position.MariaGTID
	// Start is where a transaction without a name begins.
	Start position.BinlogPos
}

// String is the transaction's name, or where it begins.
func (t Txn) String() string {
	switch {
	case t.GTID.N != 0:
		return t.GTID.String()
	case t.Maria.N != 0:
		return t.Maria.String()
	}
	return t.Start.String()
}

// Number is a transaction as the columns of a row carry it: its number, and something of who numbered it.
func (t Txn) Number() (n uint64, by uint32) {
	switch {
	case t.GTID.N != 0:
		var sum uint32
		for _, b := range t.GTID.UUID {
			sum = sum*16_777_619 ^ uint32(b)
		}
		for _, b := range []byte(t.GTID.Tag) {
			sum = sum*16_777_619 ^ uint32(b)
		}
		return t.GTID.N, sum
	case t.Maria.N != 0:
		return t.Maria.N, t.Maria.Domain
	}
	return t.Start.Seq<<40 | t.Start.Pos, 0
}

// Point is a place between two transactions of a log.
type Point struct {
	Family position.Type         `json:"family"`
	GTIDs  position.GTIDSet      `json:"gtids,omitzero"`
	Maria  position.MariaGTIDSet `json:"maria,omitzero"`
	Binlog position.BinlogPos    `json:"binlog,omitzero"`
}

// Contains reports whether a transaction lies before the point.
func (p *Point) Contains(t Txn) bool {
	switch p.Family {
	case position.MySQLGTID:
		return p.GTIDs.Contains(t.GTID)
	case position.MariaDBGTID:
		return p.Maria.Contains(t.Maria)
	default:
		order, ok := t.Start.Compare(p.Binlog)
		return ok && order < 0
	}
}

// Has reports whether everything before o lies before p.
func (p *Point) Has(o *Point) bool {
	switch p.Family {
	case position.MySQLGTID:
		return p.GTIDs.ContainsSet(o.GTIDs)
	case position.MariaDBGTID:
		return p.Maria.ContainsSet(o.Maria)
	default:
		order, ok := o.Binlog.Compare(p.Binlog)
		return ok && order <= 0
	}
}

// Pass moves the point behind a transaction that ends at a place in the files.
func (p *Point) Pass(t Txn, end position.BinlogPos) {
	switch p.Family {
	case position.MySQLGTID:
		p.GTIDs.Add(t.GTID)
	case position.MariaDBGTID:
		p.Maria.Add(t.Maria)
	default:
		p.Binlog = end
	}
}

// Idle takes the server's statement that it is at a place in its files, and no transaction open. A log that is read again from
// before the point does not move it.
func (p *Point) Idle(at position.BinlogPos) {
	if order, ok := p.Binlog.Compare(at); p.Family == position.MySQLBinlog && (!ok || order < 0) {
		p.Binlog = at
	}
}

// Join moves the point behind everything that lies before o, which is of its family.
func (p *Point) Join(o *Point) {
	switch p.Family {
	case position.MySQLGTID:
		p.GTIDs.AddSet(o.GTIDs)
	case position.MariaDBGTID:
		p.Maria.AddSet(o.Maria)
	default:
		p.Idle(o.Binlog)
	}
}

// Clone returns a point that Pass does not move.
func (p *Point) Clone() Point {
	return Point{Family: p.Family, GTIDs: p.GTIDs.Clone(), Maria: p.Maria.Clone(), Binlog: p.Binlog}
}

// fields are the point's part of a position.
func (p *Point) fields() map[string]string {
	switch p.Family {
	case position.MySQLGTID:
		return map[string]string{position.FieldGTIDs: p.GTIDs.String()}
	case position.MariaDBGTID:
		return map[string]string{position.FieldGTIDs: p.Maria.String()}
	default:
		return map[string]string{position.FieldBinlog: p.Binlog.String()}
	}
}

// Public is the form shown to people.
func (p *Point) Public() position.Position { return position.New(p.Family, p.fields()) }
