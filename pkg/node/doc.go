// Package node is the shell of every service that hosts subtasks.
//
// Role: [Run] holds the process's lease, reads the head records, asks [job.Want] what to do and does it: it starts, informs
// and stops subtasks, drops external resources on request, and publishes progress reports. One loop owns all of it; what
// may wait runs beside the loop and posts its result.
//
// Invariants:
//   - N1: without a lease nothing runs: when it is lost, or may be, every subtask stops and the process takes part again
//     under a new incarnation.
//   - N2: a head record older than one already acted on is ignored; older ones for longer than a lease stop the job.
//   - N3: an attempt is started at most once, while STARTING, for this incarnation only (job.Want).
//   - N4: a subtask that ended is reported as failed only when a head record read afterwards still names its fence; the
//     loss of a data stream is not proof of being fenced, and being fenced is not a failure.
//   - Watches make it faster, never right: every second, and after every reconnect, all heads are read again.
//   - Readiness follows the work: a node without its lease, with heads not read for three leases, or with a failed attempt
//     that has not been replaced is not ready.
//
// Failure: a process that dies leaves its lease to expire and its facts to age; the leader starts the next attempt.
//
// Source: docs/architecture.md; Kubernetes' level-triggered controllers for "make yourself match the record".
package node
