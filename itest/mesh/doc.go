// Package mesh runs Weir as its users do: every service a process of its own beside a NATS server, or all of them in one
// `weir up`, asked by the command line.
//
// # Role
//
// [Start] and [Up] start the product from this checkout; [Mesh.Weir] runs a command; [Records] reads the head records
// beside it, for what a command line is too slow or too polite to tell: which process holds what, and when exactly an
// epoch became durable.
//
// # Invariants
//
//   - M1: processes get their values by environment or by files under [Mesh.Secret], never by argument.
//   - M2: everything a process or a command ever wrote stays readable until the test ends ([Mesh.Outputs]).
//
// # Failure
//
// A process that does not become ready fails the test with the end of its log. When a test fails, the ends of all logs
// go to it.
package mesh
