// Package sourcetest is the conformance suite of database sources: a source is done when its suite passes.
//
// Role: [Run] plays the mesh around a connector in one process - an enumerator, readers, channels with barriers, epochs,
// attempts - while writers change the database, crashes it at any moment and starts it again with other numbers of readers,
// and holds every row that comes out against what was written.
//
// Invariants it checks:
//   - At rest the rows at the sink equal those of the database.
//   - Each row comes exactly once, as read or as change: a read or insert of a row that is there, and a change or delete of
//     one that is not, are refused when they come; and the values of every row are a run of those it had, up to the last,
//     with none left out and none twice.
//   - Every state restores, with any number of readers, also when epochs were skipped.
//   - A drained source has given everything that was there when the drain began, an unfinished snapshot included.
//
// Failure: a crash cancels the attempt and closes its halves, as the end of a process closes connections; nothing else of it
// reaches the next attempt but the last durable epoch.
//
// Source: docs/architecture.md; pkg/cdc for the algorithm; the bug log of change data capture tools behind the cases.
package sourcetest
