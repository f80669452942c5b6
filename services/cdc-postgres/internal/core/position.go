package core

import (
	"errors"
	"fmt"
	"strconv"

	"weir.dev/weir/pkg/position"
)

// Torn names the part of a cut transaction that has been emitted. The zero value means "not cut".
type Torn struct {
	// Final is the LSN of the transaction's commit record, as its Begin message says.
	Final position.LSN `json:"final"`
	// Changes counts the change messages of the transaction already read, before any filter.
	Changes uint64 `json:"changes"`
	// Ord is the ordinal of the next row. It differs from Changes where one message makes several rows.
	Ord uint32 `json:"ord"`
}

// Position is a resume point of the log: the end of the last whole transaction, or any point behind it up to which
// nothing is left to read, and the part of the next transaction that has been emitted.
type Position struct {
	End  position.LSN `json:"end"`
	Torn Torn         `json:"torn,omitzero"`
}

// IsTorn reports whether the position lies inside a transaction.
func (p Position) IsTorn() bool { return p.Torn != Torn{} }

// The fields of the public form.
const (
	fieldLSN     = "lsn"
	fieldFinal   = "final"
	fieldChanges = "changes"
	fieldOrd     = "ord"
)

// Public is the form shown to people and kept in manifests and ledgers.
func (p Position) Public() position.Position {
	f := map[string]string{fieldLSN: p.End.String()}
	if p.IsTorn() {
		f[fieldFinal] = p.Torn.Final.String()
		f[fieldChanges] = strconv.FormatUint(p.Torn.Changes, 10)
		f[fieldOrd] = strconv.FormatUint(uint64(p.Torn.Ord), 10)
	}
	return position.New(position.PostgresLSN, f)
}

// ParsePosition reads the public form.
func ParsePosition(pub position.Position) (Position, error) {
	if pub.Type != position.PostgresLSN || pub.Version != 1 {
		return Position{}, fmt.Errorf("parse position %s: not %s version 1", pub, position.PostgresLSN)
	}
	var p Position
	var err error
	if p.End, err = position.ParseLSN(pub.Fields[fieldLSN]); err != nil {
		return Position{}, err
	}
	final, torn := pub.Fields[fieldFinal]
	if !torn {
		return p, nil
	}
	ord, err1 := strconv.ParseUint(pub.Fields[fieldOrd], 10, 32)
	changes, err2 := strconv.ParseUint(pub.Fields[fieldChanges], 10, 64)
	lsn, err3 := position.ParseLSN(final)
	if err := errors.Join(err1, err2, err3); err != nil {
		return Position{}, fmt.Errorf("parse position %s: %w", pub, err)
	}
	p.Torn = Torn{Final: lsn, Changes: changes, Ord: uint32(ord)}
	return p, nil
}
