// Package core holds the rules of reading PostgreSQL's log, as values and pure functions: which transactions a reader
// has already emitted, where it may be cut, what it may confirm, which columns identify a row, and the names of what
// it makes on the server.
//
// Invariants:
//   - I14: a [Position] is exclusive. Everything before it has been emitted, nothing at or after it.
//   - Only whole transactions are compared with the slot or confirmed to it; a cut transaction is sent again whole by
//     the server and its emitted part is skipped by count.
//   - Flushed is only ever the position of a committed epoch, before the first one the slot's own confirmed_flush, and
//     never zero.
//
// Failure: a log that does not continue where the position says is an error, never skipped.
//
// Source: PostgreSQL documentation, "Logical Decoding Concepts" and "Streaming Replication Protocol".
package core
