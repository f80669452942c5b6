// Package harness starts the real servers and the real programs that the
// integration tests, the demo and the benchmarks run against: PostgreSQL,
// NATS and Weir's own binaries, each a process of its own.
//
// # Role
//
// Everything a flow needs from outside is here: private PostgreSQL clusters
// ([StartPostgres]), a NATS server ([StartNATS]), products built from this
// checkout ([BuildBinary], [StartProcess]) and faults by signal (Kill, Pause,
// Resume, Restart). The verdict is that of weir verify, in its package audit.
//
// Each Start function fails its test and cleans up after it; each Run function
// is the same for programs, returns errors and leaves Close to the caller.
//
// # Invariants
//
//   - H1: every server listens on a loopback port of its own and keeps its data
//     in a private folder; nothing already running on the machine is used.
//   - H2: only processes started here are ever signalled, by process id.
//   - H3: what was started ends with its starter, also when that is killed.
//   - H4: no row value and no password goes into an error or a report unless
//     the caller asks for it.
//   - H5: a port and a data folder survive Kill, Stop and Restart of their
//     server, so a client's URL stays right.
//
// # Failure
//
// A server that does not become ready fails its start with the end of its log.
// Logs stay in the server's folder until Close. Folders of a starter that was
// killed outright stay behind in the temporary folder, without a process.
//
// # Source
//
// proof.md's tiers: integration and failure classes run here. Needs Linux for
// whole-tree faults of PostgreSQL (/proc) and for H3 (parent death signal).
package harness
