package core

import (
	"strconv"

	"weir.dev/weir/pkg/position"
)

// Torn names the part of a cut transaction that has been emitted. The zero value means "not cut".
type Torn struct {
	Txn string `json:"txn"`
	// Events counts the rows events of the transaction already read, before any filter.
	Events uint64 `json:"events"`
	// Ord is the ordinal of the next row.
	Ord uint32 `json:"ord"`
}

// Position is a resume point: the end of the last whole transaction, and the part of the next one that has been emitted.
type Position struct {
	Before Point `json:"before"`
	Torn   Torn  `json:"torn,omitzero"`
}

// IsTorn reports whether the position lies inside a transaction.
func (p *Position) IsTorn() bool { return p.Torn != Torn{} }

// The fields of the public form that say how much of an open transaction lies before a position.
const (
	fieldOpen   = "open"
	fieldEvents = "events"
	fieldOrd    = "ord"
)

// Public is the form shown to people and kept in manifests and ledgers.
func (p *Position) Public() position.Position {
	f := p.Before.fields()
	if p.IsTorn() {
		f[fieldOpen] = p.Torn.Txn
		f[fieldEvents] = strconv.FormatUint(p.Torn.Events, 10)
		f[fieldOrd] = strconv.FormatUint(uint64(p.Torn.Ord), 10)
	}
	return position.New(p.Before.Family, f)
}
