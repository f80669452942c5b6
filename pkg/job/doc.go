// Package job holds the head record of a job and its state machine.
//
// Role: the head record is the one thing everybody agrees on. The leader moves it by compare-and-swap, driven by the
// pure function Step(State, Event) -> (State, []Effect); nodes watch it and make themselves match it, driven by the
// pure function Want(Head, Self) -> []Action. Coordinator and node are the loops around the two.
//
// Invariants (docs/architecture.md):
//   - Only the leader writes a head, always by CAS on the revision it last read; a CAS whose outcome is unknown is
//     resolved by reading back.
//   - fence, nextEpoch and term never go back; no epoch id is ever derived from durable, none is used twice.
//   - I5: durable is only what the head's chain reaches; the CAS that names a manifest is the commit point.
//   - A head is never deleted; a missing head means stop, never "unlocked".
//   - Nobody acts on a (term, fence, revision) below one it has seen.
//
// Failure: a leader that dies leaves a head its successor takes over by raising the term; attempts go on.
//
// Source: docs/architecture.md; Arroyo's epoch records and Gazette's registers for "claim by conditional write".
package job
