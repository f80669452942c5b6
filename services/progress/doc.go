// Package progress is the service that shows how far jobs are.
//
// Role: it reads heads, facts and reports each second, keeps the latest of each in the bucket weir_progress, and serves them:
// as JSON (/v1), as events (/v1/events), as metrics (/metrics) and as a page (/). What is shown and why a job does not move
// is decided by pkg/progress, for the command line alike.
//
// Invariants:
//   - S1: it reads only; nothing in the mesh waits for it, and any number of instances may run.
//   - S2: latest only: what a job's attempt said goes when the attempt is over, and late reports cannot bring it back.
//   - S3: positions, splits and tables are shown to people in details, never as labels of metrics.
//   - S4: answers are bounded; what is left out says so.
//   - S5: with a token configured, nothing about jobs is answered without it.
//
// Failure: an instance that dies leaves records that the others write on; a restarted one has the current view within a
// second. While the bus is away the view gets old, /readyz turns red and answers are refused with 503.
//
// Source: SeaTunnel STIP-30 (seatunnel#11364); RFC 9457 for errors; WHATWG server-sent events; docs/progress.md.
package progress
