// Package dlq shows what becomes of rows that a target cannot take, with separate processes.
//
// # Role
//
// The whole way of a dead letter: found at the commit, kept on the bus, shown, replayed, discarded; and without dlq, that
// the job stops where the row is.
//
// # Invariants
//
//   - A row is at the target or has a letter, never both, never neither, whatever is killed when.
//   - An epoch that a target refuses is not reported as committed, and nothing of it is visible.
//
// # Failure
//
// Moments are proven, not hoped for: a process is killed when some of an epoch's letters are there and not all.
package dlq
