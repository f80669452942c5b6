// Package weir is the command line and all services in one process.
//
// Role: `weir up` runs every service and an embedded NATS server; the other commands ask and read a mesh through NATS.
//
// Invariants: no semantics of its own. The services are the same code as in their own processes, and the commands use
// only what any other NATS client could use.
//
// Failure: SIGKILL leaves the data directory as it was; the next `weir up` goes on from the last durable epoch.
//
// Source: docs/architecture.md.
package weir
