// Package flows kills the product: separate processes under load, SIGKILL at random moments, NATS included.
//
// # Role
//
// proof.md's promise in the large. What has to hold is in package rig, and for tables that are copied in package copies;
// here is only the harm that is done.
//
// # Invariants
//
//   - A run is repeated by its seed (ITEST_SEED), as far as real processes repeat anything.
//   - A kill counts only when the process ran before it and was ended by it.
//
// # Failure
//
// Times from kill to the next durable epoch are printed and never judged: machines differ.
package flows
