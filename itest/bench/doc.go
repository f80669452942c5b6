// Package bench measures the product from end to end, as separate processes, against what one can expect of the machine
// it runs on.
//
// # Role
//
// [Run] measures every figure of proof.md §3 that this build has and returns a [Report]; `make bench` writes it to
// docs/bench/. Figures against a baseline are ratios of medians of interleaved runs, because the same binary differs by
// a third from one minute to the next on a shared machine.
//
// # Invariants
//
//   - Runs that are compared read the same log: the same slot, copied for each run, to the same end, with the same
//     options of the plugin.
//   - A clock starts when the server starts the session that reads the log, for the product and the baseline alike, and
//     stops when the epoch with the last row is committed: staged, proven, durable, visible.
//   - Both servers sync every commit (fsync=on).
//
// # Failure
//
// A run that does not end fails the benchmark. A figure that misses its target is marked in the report; time is no
// assertion anywhere.
package bench
