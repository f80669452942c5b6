// Package core is the pure part of the MySQL source: where a log is, what a chunk has seen, and which statements matter.
//
// Role: [Point] is a place between two transactions in one of three families - what MySQL had executed, what MariaDB had, or a
// place in a server's files. [Tracker] follows the transactions of one log and makes [Position]s of them. [Mark] is a Point in
// the form of pkg/cdc. [Classify] reads as much of a statement as says which tables it empties or removes.
//
// Invariants:
//   - The open transaction is never in a position's set; how much of it was emitted stands beside it.
//   - A transaction is cut between two rows events; the server bounds those by binlog_row_event_max_size.
//
// Failure: the package does no I/O. A log that does not continue where it was left is an error.
//
// Source: MySQL "GTID Life Cycle"; MariaDB "Global Transaction ID".
package core
