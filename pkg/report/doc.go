// Package report holds progress reports: immutable values a subtask swaps atomically and anybody may read without
// blocking a row or an epoch.
//
// Role: readers and enumerators make reports, nodes sample them each second, the progress service keeps the latest.
//
// Invariants:
//   - Every value carries its [Accuracy]; EXACT and BEST_EFFORT have a value, UNSUPPORTED and UNAVAILABLE have none.
//     Nothing is zero-filled or guessed.
//   - Reports are ordered by (fence, sequence), never by wall time.
//   - No credentials and no row values.
//
// Source: SeaTunnel STIP-30 (seatunnel#11364); docs/architecture.md.
package report
