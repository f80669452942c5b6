// Package mysql applies epochs to one database of a MySQL or MariaDB server.
//
// Role: rows are staged on the bus; [Committer] reads them back and applies an epoch in one transaction with the ledger row.
// Whole rows go straight into a table that has only its key, by INSERT .. ON DUPLICATE KEY UPDATE of many rows; deletes, rows
// that lack columns, and all rows of a table with further unique indexes go through a temporary table of the session and
// statements over sets. Statements are text: rows differ in number and columns from piece to piece.
//
// Invariants:
//   - I8: the ledger row is locked before anything of an epoch is written, and a row with another fence ends the commit.
//   - A commit begins when its tables fit. DDL commits what is open, so none runs within the transaction; each change of a
//     table is made by looking at what is there, and may be made again after a crash.
//   - ON DUPLICATE KEY UPDATE is used only where the key is the only unique index: it would change another row else.
//   - Keys that differ are two rows: a key column of text has a binary collation that does not pad.
//   - Values are never rounded or cut without a word: the session is strict. What the server has no form for is null, counted.
//   - The lock of the session's name (GET_LOCK) tells which session is an older attempt's; a successor ends that one, no other.
//
// Failure: a session whose statement broke off is closed, and the next one ends it at the server before it reads the ledger: so
// a commit of unknown outcome is looked up when nothing can change it any more.
//
// Source: docs/architecture.md, "Sinks: stage, then commit"; the manuals of MySQL 8.0 to 9 and MariaDB 10.6 on implicit
// commits, GET_LOCK and INSERT .. ON DUPLICATE KEY UPDATE.
package mysql
