// Package cdcpostgres is the PostgreSQL source: it follows the write-ahead log of one database through the plugin
// pgoutput and emits every committed change of the captured tables, in commit order, as row batches.
//
// Role: [Connector] makes an enumerator, which sets up publication and slot and hands the log to one reader, and that
// reader. The reader's loop (reader.go, apply.go) decodes and emits; its link (link.go) is everything that waits for
// the server: receiving, status messages, observing.
//
//	         SQL                          replication connection
//	keeper ──────► server ──────────────► link.receive ─► queue ─► reader.Poll ─► Output
//	(enumerator)     ▲  ▲                                              │
//	                 │  └── link.status ◄── flushed = committed epoch ─┘ Confirm
//	                 └───── link.observe (head, for people; end of a drain)
//
// Invariants:
//   - I4: barriers pass between transactions, or inside one that has more changes than epoch.max_transaction_rows.
//   - The loop that answers barriers runs no SQL; the catalog is read where messages are received.
//   - The server is told to forget only what lies before a committed epoch.
//   - A slot that a durable epoch names is never made again; missing or lost, it fails the job.
//   - What cannot be told apart or decoded stops the job with a code; no row is skipped, none is guessed.
//
// A table without a key is one chunk of any size: what exceeds a segment goes through the state stream, see pkg/cdc/halves.
//
// Failure: a broken connection ends the attempt. The next one reads from the last durable position, skips what lies
// before it by transaction, and what was emitted of a cut transaction by count.
//
// Source: PostgreSQL documentation, "Logical Decoding" and "Logical Streaming Replication Protocol".
package cdcpostgres
