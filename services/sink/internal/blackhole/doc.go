// Package blackhole is the sink that keeps nothing: it counts rows and drops them. Benchmarks measure the mesh with it,
// newcomers try a source with it.
//
// Role: writers count; the committer remembers the last epoch of its attempt and checks that the next one follows it.
//
// Invariants:
//   - Its level is TRANSACTIONAL, and truthfully so: what is visible at the target is the same (nothing) before, during and
//     after every epoch, so no reader can ever see half of one or one twice.
//   - It has no ledger. Claim therefore returns the zero LedgerRow, which a leader accepts beside any manifest chain:
//     nothing that was visible can have been lost.
//   - Within an attempt the order of commits is checked as everywhere: LEDGER_DIVERGED when one does not follow the last.
//
// Failure: after a crash the first commit of the next attempt is taken as it comes.
//
// Source: docs/architecture.md.
package blackhole
