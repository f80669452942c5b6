// Package position holds resume points in the source's own terms.
//
// Role: a [Position] is what a reader puts into an epoch's manifest and what it is given back when it
// starts again. The mesh carries it, shows it and compares it only within one [Type]; what its fields mean is
// known to the source that made it.
//
// Invariants:
//   - A position is exclusive: everything before it has been emitted, nothing at or after it.
//   - Two positions of different types are not comparable, never smaller or larger.
//   - No credentials and no row values: positions are shown to people and stored for ever.
//
// Source: SeaTunnel STIP-30 for the shape (type, version, string map); PostgreSQL
// "Streaming Replication Protocol" for the LSN form; MySQL "GTID Format and Storage" and MariaDB "Global Transaction ID" for
// sets of transactions.
package position
