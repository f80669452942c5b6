// Package cli is the command line of Weir.
//
// Role: each command is one file; a command reads or writes the mesh through NATS only, so it works the same against
// `weir up` and a mesh.
//
// Invariants: every read command answers with --json in one envelope; every error a user can cause has a code, and the
// exit code follows from it; no secret and no row value is printed, except by `weir tail`, whose purpose they are.
//
// Failure: a command that is cut short leaves an intent that was either written or not; running it again is safe.
package cli
