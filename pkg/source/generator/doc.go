// Package generator is a source that makes rows up: for the quickstart, for benchmarks, and for tests that must know
// every row that ever left the source.
//
// Role: [Connector] opens one enumerator, which has nothing to decide, and readers that share the index space: reader r
// of n makes the rows r, r+n, r+2n, ... and owns their keys.
//
// Invariants:
//   - G1: row i is a function of the settings and i alone; a reader restored at a position makes the same rows again, with
//     the same transaction and ordinal.
//   - G2: a key belongs to one reader, so all its changes come from one place and keep their order.
//   - G3: the changes of a key are a possible history: an insert, updates, perhaps a delete, an insert again.
//   - A poll ends between two transactions, unless one is bigger than epoch.max_transaction_rows (then the cut is torn).
//
// Failure: none of its own; it keeps nothing outside the bus.
//
// Source: SplitMix64 (Steele, Lea, Flood, 2014) as the function from index to value.
package generator
