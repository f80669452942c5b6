// Package apply shows what becomes of a job that goes on with other tables, or with another log, each service a process of
// its own.
//
// # Role
//
// Tests only. `weir job apply` adds, removes and brings back tables under load, with a process killed in the middle; two
// sources of a job live on one server; a slot that was dropped, made again or lost is a typed stop, and the command that the
// stop names mends the job.
//
// # Invariants
//
//   - In the end the copy equals the source row by row, and a changelog has every row once, as read or as change.
//   - What an error advises is done as it is written.
//
// # Failure
//
// A failing test names the tables and the first rows that differ.
package apply
