// Package cdcmysql is the MySQL and MariaDB source: it copies tables in parallel while writers go on, follows the binary log, and
// emits every committed change of the captured tables, in commit order, as row batches.
//
// Role: [Connector] makes an enumerator and readers. A reader's loop (reader.go, apply.go) decodes and emits; everything that
// waits for the server is in its link (link.go: the log) and its copier (copier.go: chunks, over a follower of the log of its
// own). What the shells of all database sources share is in pkg/cdc/halves.
//
//	         SQL                          replication connections
//	planner ──────► server ──────────────► link ─► queue ─► reader.Poll ─► Output
//	(enumerator)     ▲  │                                      ▲
//	                 │  └────────────────► follower ─┐         │ chunks
//	                 └──────────────────── copier ◄──┴─────────┘
//
// Invariants:
//   - I4: barriers pass between transactions, or inside one that has more rows than epoch.max_transaction_rows.
//   - The loops that answer barriers run no SQL.
//   - A chunk's mark is exact: its rows are the table's as of the mark, whatever order commits become visible in (copier.go).
//   - A table that no ranges of keys can be made of is one chunk of any size: what exceeds a segment goes through the state stream,
//     see pkg/cdc/halves.
//   - What cannot be told apart or decoded stops the job with a code; no row is skipped, none is guessed.
//
// Failure: a broken connection ends the attempt. The next one reads from the last durable position, and skips what was emitted
// of a cut transaction by count.
//
// Source: MySQL "The Binary Log", "Replication with Global Transaction Identifiers"; pkg/cdc for the algorithm.
package cdcmysql
