// Package sink is the service that makes rows visible: PostgreSQL, MySQL, files, Iceberg tables, NATS
// subjects, and a black hole for benchmarks.
//
// Role: [Connectors] gives the runtime the writers and committers of each type; [ReadLedger] reads a target's ledger for
// audits. What a commit may do is decided in internal/core; internal/stage keeps rows on the bus until their epoch is
// durable; one package for each target does the rest.
//
// Invariants:
//   - I5: nothing is visible at a target before its epoch's commit; a whole epoch is visible after it.
//   - I8: a claimed ledger refuses every older fence, and a successor ends what an older attempt left running.
//   - The ledger changes in the same step as the rows, so a commit can be repeated by anybody: its row says what is done.
//   - No error, log line or metric holds a row value or a password.
//
// Failure: a target that is down or busy is a transient fault; the runtime repeats the commit for as long as it takes. What a
// person has to repair is permanent and names table, column and remedy.
//
// Source: docs/architecture.md, "Sinks: stage, then commit".
package sink
