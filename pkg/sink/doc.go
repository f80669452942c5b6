// Package sink is the seam between the mesh and what it writes: writers that make rows safe but invisible, and one
// committer per sink that makes a whole epoch visible.
//
// Role: a connector implements [Connector]; the subtask runtime drives its halves.
//
// Invariants:
//   - I5: a committer applies an epoch only after the head record has named its manifest.
//   - One durable epoch is one step at the target, in order: commit N follows commit prev(N), never overtakes it.
//   - The ledger at the target is changed in the same step as the rows. Its row is (N): done. (prev N): apply.
//     Anything else: stop with LEDGER_DIVERGED, never "nothing to do".
//   - I8: a ledger claimed by a newer fence refuses older ones.
//   - I13: Stage, Claim and Commit may each be cut short and called again by another process.
//   - With dead letters a row is at the target or has a letter: letters are safe before the commit that leaves their rows out,
//     and a row with a letter stays out of every repetition.
//
// Failure: pieces staged by an attempt that died are unnamed and become garbage; a commit whose outcome is unknown
// is resolved by reading the ledger.
//
// Source: Flink's two-phase committing sink and Gazette's transactions in the target; docs/architecture.md.
package sink
