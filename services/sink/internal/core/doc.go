// Package core holds the decisions of every sink as pure functions: may this fence claim this ledger, what does a commit
// have to do, and in which order do the pieces of an epoch take effect.
//
// Role: the adapters read a ledger row and describe pieces; core answers; the adapters act.
//
// Invariants:
//   - I8: a row with another fence than one's own never leads to [Apply].
//   - [Apply] is answered only for the row that the commit names as its predecessor: there is no "nothing to do".
//   - The same row and the same commit give the same verdict in any process, so a commit may be repeated by anybody.
//   - Pieces of one table keep their writer's order; what a truncate swallowed is never applied.
//
// Failure: none; values in, values out.
//
// Source: docs/architecture.md, "Sinks: stage, then commit".
package core
