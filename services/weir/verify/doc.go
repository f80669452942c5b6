// Package verify is the product's own certificate of exactly once: `weir verify`.
//
// # Role
//
// [Run] takes a source and a target database and a list of failure classes ([Catalogue]). For each class and seed it makes scratch
// schemas, starts a mesh of separate processes of the running program with a NATS server of its own, opens a shop whose load depends
// on the seed, lets readers look at the target all the while, does the harm ([trial]), waits until the mesh has recovered by itself
// and the target has everything, and holds both sides against each other. The outcome is a [Report].
//
// Packages beside it serve the integration tests too: audit and shop, relay, process.
//
// # Invariants
//
//   - E1: a class passes only with proof that its fault happened ([Fault.Evidence]).
//   - E2: nothing of the product takes part in the audit but the word that it has caught up, and `epochs verify` on top of it.
//   - E3: at the user's databases only what was made here is touched: schemas, publications and slots with the run's id in their names.
//   - E4: faults meet a system at work: the load goes on from before the fault until the mesh has recovered.
//
// # Failure
//
// A run that is killed leaves schemas wv_<id>, and publications and slots named after them, behind; the processes end with their
// starter. A class whose fault did not fire, or that did not recover in time, fails.
package verify
