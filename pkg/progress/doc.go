// Package progress says how far a job is, from what its records and reports state, and why it does not move.
//
// Role: the pure core behind `weir status`, `weir top`, the progress service and its page. An [Observation] is everything
// that is known of one job at one moment; [Build] makes a [Status] of it, [CDCOf] the section that STIP-30 asks for. A
// [Tracker] keeps the newest report of each subtask. Package gather reads observations.
//
// Invariants:
//   - P1: a value is EXACT only when it can be computed again from the head, the manifests and the report it came from. What
//     is missing is missing: nothing is zero-filled, carried over from another attempt, or concluded from time passing.
//   - P2: the tasks of a source are not one snapshot of it: each keeps its own time, and disagreement shows as a mixed source.
//   - P3: startup, consumed, candidate, durable, completed and restored positions are six facts; none stands for another.
//   - P4: a source whose position rests is never called stalled unless its head is seen ahead and nothing behind it waits.
//   - P5: of a job at rest, or of another attempt, no report is shown.
//   - P6: a total is shown only when it is known; so is a share of it.
//
// Failure: none of its own; an observation in which something could not be read says less.
//
// Source: SeaTunnel STIP-30 (seatunnel#11364); docs/progress.md.
package progress
