// Package plan turns a job spec into what an attempt runs, in three steps, each a pure function with a fingerprint.
//
// Role: spec -> [Model] (stages and links) -> [Partitioned] (parallelism, channels, key groups) -> [Deployment]
// (subtasks on nodes, windows). The coordinator plans; nodes execute and never reinterpret.
//
// Invariants:
//   - I2: a key belongs to one of 128 key groups, a group to one subtask by contiguous ranges; neither depends on a
//     process, a machine or an attempt.
//   - I3: the partitioned plan is the only source of topology.
//   - I14: every edge has its window before an attempt starts.
//   - The same inputs give the same bytes: maps are written in the order of their keys.
//
// Failure: a plan is written create-only under (fence, term) and named by the head record; one that no head names
// is garbage.
//
// Source: docs/architecture.md; the model/partitioned/deployment split follows nop-stream's plans.
package plan
