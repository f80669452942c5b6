// Package bus is Weir's access to NATS JetStream and the only importer of the NATS client.
//
// Role: adapter. It knows the names of everything on the bus ([Assets]), moves messages of one attempt between subtasks
// ([Publisher], [Receiver]), holds what must be agreed on ([Bucket]), and carries facts, events, reports and state
// objects. Foreign errors become ours here, once (errors.go).
//
// Invariants:
//   - B1: order. What one Publisher sends is stored in that order, without repeats, up to the first failure; afterwards
//     the Publisher refuses everything.
//   - B2: a time-out is [ErrUnknown], never success and never failure.
//   - B3: a watch is never silently stale for longer than three heartbeats; doubt makes it say [Resync] and start again
//     from the beginning.
//   - B4: nothing is kept to be sent later while the connection is down.
//   - B5: every pull can carry the biggest message the server accepts.
//   - B6: acknowledgement floors, stream sequences and server-side deduplication prove nothing here: they go back after
//     a crash. Positions live in manifests, order in the envelope's sequence.
//
// Failure: memory streams vanish with their server, configuration included. Receivers then report [ErrStreamGone],
// watches resync and wait, [Conn.EnsureBase] makes the base anew. A denied subject looks like a time-out to its caller;
// the connection's error handler turns it into [ErrDenied] and logs the subject.
//
// Source: NATS ADR-6 (names), ADR-7 (numbered errors), ADR-8 (key-value), ADR-13 (pull), ADR-31 (direct get), ADR-43
// (message TTL and markers).
package bus
