// Package source is the seam between the mesh and what it reads: an enumerator that decides what is read and readers
// that read it.
//
// Role: a connector implements [Connector]; the subtask runtime drives its halves from one loop per subtask.
//
// Invariants:
//   - I4: the barrier is emitted by the reading loop itself, in band, at a safe point: between chunks in a snapshot,
//     between transactions in a log. Poll returns only at safe points; Snapshot is called only between two Polls.
//   - Neither Poll nor Snapshot runs SQL or waits for the source longer than its wake channel allows.
//   - A cut is exclusive: everything before it has been emitted, nothing at or after it.
//   - Upstream is told to forget (slot, collectors) only what Confirm names, and Confirm names only committed epochs.
//
// Failure: a reader that returns an error ends the attempt; the next one restores from the last durable cut.
//
// Source: FLIP-27 (split enumerator and readers); docs/architecture.md.
package source
