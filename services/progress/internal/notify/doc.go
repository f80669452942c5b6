// Package notify tells a webhook what happens to jobs.
//
// Role: events are what the leader tells, and what changes between two views: that a job has caught up, and why it does not
// move. They are put into an outbox in the bucket weir_progress together with what they were concluded from, in one write, and
// sent from there in order.
//
// Invariants:
//   - N1: at least once: an event leaves the outbox only after the receiver has answered 2xx. Its id is made before it is stored
//     and stays the same, so that a receiver can tell repetitions.
//   - N2: of several instances one sends at a time; two that think so for a moment send the same ids.
//   - N3: a full outbox takes nothing in: notices wait in their stream, changes are told as one when there is room.
//   - N4: no event holds a position, a row's value or a secret; a body is signed when there is a secret.
//
// Failure: an instance that dies is followed by another one after the hold; what it had sent and not struck off comes again.
//
// Source: RFC 2104 for the signature; docs/progress.md.
package notify
