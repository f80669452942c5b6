package cdc

// Mark says what a chunk has seen, so that the log can go on exactly there. E is what the log tells of a change: it must be
// the same for all changes of one transaction (PostgreSQL: the transaction's 64-bit id; MySQL: its GTID, or the position
// of its end). P is a position between two transactions.
//
// A chunk is right with its mark when its rows are the table's as of a state that holds all changes of the transactions
// the mark contains, and of no other. How the adapter gets there is its own: PostgreSQL reads rows and mark in one
// snapshot; MySQL reads a span of the log beside the chunk and merges it in.
type Mark[E comparable, P any] interface {
	// Contains reports whether the rows of the chunk already hold the changes of e's transaction.
	Contains(e E) bool
	// PassedBy reports that no transaction behind p is contained. Once true it stays true for every later position. It may
	// be true later than it could be, never earlier.
	PassedBy(p P) bool
}
