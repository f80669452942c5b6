// Package process runs programs that faults happen to: ended by SIGKILL, frozen, started again under the same arguments.
//
// # Role
//
// The hands of `weir verify` and of the integration tests. [Run] starts a program and waits until it is ready, [FreePort] finds it a
// port that stays its own while it is down.
//
// # Invariants
//
//   - P1: only processes that were started here are ever signalled, by process id.
//   - P2: nothing that a process wrote is lost by a SIGKILL: its output goes to a file.
//   - P3: what was started ends with its starter, also when that is killed (Linux: parent death signal).
//
// # Failure
//
// A program that does not become ready fails its start with the end of its log.
package process
