// Package shop is the load of `weir verify`, the demo, the integration tests
// and the benchmarks: a small shop whose customers, products and orders keep changing.
//
// # Role
//
// [Schema] makes the tables at the source. A [Generator] draws transactions
// that look like an application's: inserts, updates and deletes over several
// tables, key changes, cascades, large values that stay untouched, and
// transactions that are rolled back. [Run] applies them at a given rate.
//
// # Invariants
//
//   - S1: a generator is a function of its seed: the same seed draws the same
//     transactions, whatever the database answers.
//   - S2: applied in order on an empty schema, every transaction succeeds.
//   - S3: after every committed transaction the total of each order is the sum
//     of its items, so [Torn] sees a copy that holds half a transaction.
//
// # Failure
//
// Run stops at the first error. The reply to a commit may be lost with the
// connection, so after an error generator and database may differ by one
// transaction; start again with an empty schema.
package shop
