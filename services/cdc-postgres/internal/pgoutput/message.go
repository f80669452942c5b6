package pgoutput

import "weir.dev/weir/pkg/position"

// The first bytes of the messages.
const (
	KindBegin    = 'B'
	KindCommit   = 'C'
	KindOrigin   = 'O'
	KindRelation = 'R'
	KindType     = 'Y'
	KindInsert   = 'I'
	KindUpdate   = 'U'
	KindDelete   = 'D'
	KindTruncate = 'T'
	KindMessage  = 'M'
)

// unixEpoch is 1970-01-01 in PostgreSQL's clock, which counts microseconds from 2000-01-01.
const unixEpoch = -946_684_800_000_000

// Begin opens a transaction.
type Begin struct {
	// Final is the LSN of the transaction's commit record: its identity, known from the first row on.
	Final position.LSN
	// Time of the commit at the source, in microseconds since 1970-01-01 UTC.
	Time int64
	Xid  uint32
}

// ParseBegin decodes a Begin message.
func ParseBegin(b []byte) (Begin, error) {
	s := scan{b: b}
	s.kind(KindBegin)
	m := Begin{Final: position.LSN(s.uint64()), Time: int64(s.uint64()) - unixEpoch, Xid: s.uint32()}
	return m, s.end()
}

// Commit closes a transaction.
type Commit struct {
	// Final is the LSN of the commit record, the same as in Begin.
	Final position.LSN
	// End is the LSN after the commit record: the position after the transaction.
	End position.LSN
}

// ParseCommit decodes a Commit message.
func ParseCommit(b []byte) (Commit, error) {
	s := scan{b: b}
	s.kind(KindCommit)
	s.byte() // flags, none defined
	m := Commit{Final: position.LSN(s.uint64()), End: position.LSN(s.uint64())}
	s.uint64() // commit time, the same as in Begin
	return m, s.end()
}

// Identity says which columns of the old row the log carries: REPLICA IDENTITY of the table.
type Identity byte

// The replica identities.
const (
	IdentityDefault Identity = 'd'
	IdentityNothing Identity = 'n'
	IdentityFull    Identity = 'f'
	IdentityIndex   Identity = 'i'
)

// RelationColumn is a column as the log describes it: no nullability, no default, no attribute number.
type RelationColumn struct {
	// Key marks a column of the replica identity; under FULL every column is marked.
	Key      bool
	Name     string
	TypeOID  uint32
	Modifier int32
}

// Relation describes a table as of its place in the log. It comes before the first change of the table on a connection
// and again after its definition changed.
type Relation struct {
	OID      uint32
	Schema   string
	Name     string
	Identity Identity
	Columns  []RelationColumn
}

// ParseRelation decodes a Relation message.
func ParseRelation(b []byte) (Relation, error) {
	s := scan{b: b}
	s.kind(KindRelation)
	m := Relation{OID: s.uint32(), Schema: s.text(), Name: s.text(), Identity: Identity(s.byte())}
	if m.Schema == "" {
		m.Schema = "pg_catalog" // the plugin's abbreviation
	}
	n := int(s.uint16())
	for i := 0; i < n && s.err == nil; i++ {
		c := RelationColumn{Key: s.byte()&1 != 0, Name: s.text(), TypeOID: s.uint32(), Modifier: int32(s.uint32())}
		m.Columns = append(m.Columns, c)
	}
	switch m.Identity {
	case IdentityDefault, IdentityNothing, IdentityFull, IdentityIndex:
	default:
		s.fail("unknown replica identity")
	}
	return m, s.end()
}

// Truncate empties tables.
type Truncate struct {
	Cascade, RestartIdentity bool
	Relations                []uint32
}

// ParseTruncate decodes a Truncate message.
func ParseTruncate(b []byte) (Truncate, error) {
	s := scan{b: b}
	s.kind(KindTruncate)
	n := int(s.uint32())
	flags := s.byte()
	m := Truncate{Cascade: flags&1 != 0, RestartIdentity: flags&2 != 0}
	for i := 0; i < n && s.err == nil; i++ {
		m.Relations = append(m.Relations, s.uint32())
	}
	return m, s.end()
}

// ParseOther checks the form of the messages whose content the reader does not use: Origin, Type and Message.
func ParseOther(b []byte) error {
	s := scan{b: b}
	switch kind := s.byte(); kind {
	case KindOrigin:
		s.uint64()
		s.text()
	case KindType:
		s.uint32()
		s.text()
		s.text()
	case KindMessage:
		s.byte()
		s.uint64()
		s.text()
		s.take(int(s.uint32()))
	default:
		s.at = 0
		s.fail("unknown message")
	}
	return s.end()
}
