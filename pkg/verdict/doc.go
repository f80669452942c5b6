// Package verdict judges what a target shows against what its source did.
//
// # Role
//
// The guarantees of docs/architecture.md as functions over plain values: the same changes, each once; the order of each key; whole
// transactions; final rows; contiguous ledgers; an unbroken chain of manifests. They are written once and used by the bubble suites,
// by the integration tests and by `weir verify`, so that all of them mean the same by exactly once.
//
// # Invariants
//
//   - V1: pure: values in, an error out; no clock, no I/O.
//   - V2: what is compared are multisets, never sets: a change that is there twice is found, also when another one is missing.
//
// # Failure
//
// An error names the first few places where a guarantee does not hold; it shows keys and never other values, except [FinalRows].
package verdict
