// Package sinktest is the conformance suite of sinks: a sink is done when its suite passes.
//
// Role: [Run] plays the mesh around a connector - writers behind a hash edge, epochs, manifests, attempts - kills it before
// and after every call, and compares what a reader of the target sees with a model after every step.
//
// Invariants it checks:
//   - I5: nothing is visible before its epoch is committed, all of it afterwards, never a part.
//   - I8: an attempt with an old fence commits nothing once a newer one has claimed.
//   - I13: every call may be cut short before or after it took effect, and repeated by another process.
//   - The ledger follows the chain: an epoch applies once, in order, or not at all.
//
// Failure: a crashed attempt is abandoned as it is, without Close, as a killed process would leave it; Close is called when
// the test ends.
//
// Source: docs/architecture.md, "Sinks: stage, then commit"; the bug log behind the cases "one key many times", "delete and
// insert" and "key change".
package sinktest
