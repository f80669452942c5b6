// Package control is what people may ask of a mesh and what they may read of it.
//
// Role: commands go in as intents, by compare-and-swap; answers are read from heads, plans, manifests and reports. It is
// the same against `weir up` and a mesh of services.
//
// Invariants:
//   - Users never write heads. An intent is answered when the head says so, or when the head is where the intent wanted it.
//   - A read is a view of the moment: nothing is decided on it that a compare-and-swap does not check again.
//
// Failure: a command that dies has either written its intent or not; asking again is safe.
package control
