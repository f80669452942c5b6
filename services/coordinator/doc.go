// Package coordinator decides: it turns job specs into plans, places subtasks, takes epochs, makes manifests durable,
// notices what has died and starts attempts anew. It never touches a row, a source or a sink.
//
// Role: one instance leads by lease, the others stand by. The leader is the loop around pkg/job's Step: one goroutine
// owns all jobs, takes events from its mailbox, asks Step, and has the effects performed (internal/exec), whose answers
// come back as events. Nodes get no orders: they watch the head records this service writes.
//
//	intents ─┐                         ┌─► heads, plans, manifests (CAS, create-only)
//	leases ──┼─► mailbox ─► Step ─► effects ─► data streams (create, delete)
//	facts ───┤       ▲                 └─► events for people
//	probes ──┘       └── answers ◄─────────┘
//
// Invariants:
//   - One term per leadership. A leader writes its term into every head before anything else; from then on nothing an
//     older leader writes can land.
//   - A term that does not exceed every head's means that the registry went back: BUS_REGRESSED, stop.
//   - For one lease period after a takeover or a reconnect no process is declared dead because it is missing.
//   - A leader whose lease is lost stops acting and flushes nothing.
//
// Failure: a leader that dies leaves its heads as they are; attempts go on, facts are repeated, and the successor goes
// on from the heads. Effects may be performed twice.
//
// Source: docs/architecture.md; the observe, decide, act cycle follows etcd raft's Ready and multigres' recovery loop.
package coordinator
