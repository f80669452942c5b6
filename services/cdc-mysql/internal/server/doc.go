// Package server talks to one MySQL or MariaDB server: sessions for queries, and the binary log as a replica reads it.
//
// Role: [Target] is the server of one source. [Session] sends statements and gives rows as the server sends them, cell by cell,
// without a type in between. [Facts] are what a source has to know of the server. [Stream] is a replication connection: it
// asks for the log from a point on and yields events in order; rows stay as they were logged.
//
// Invariants:
//   - A connection is used by one goroutine; the end of a context closes it.
//   - Nothing is waited for that nobody would end: a connection on which nothing comes is kept only while the server says that it is at
//     work for it (line.go), and what people should know of a wait is in [Target.Waits].
//   - No stream connects again by itself: the log may then go on elsewhere than it was left.
//   - An event that this package does not know ends the stream, unless the server marks it as one to ignore.
//
// Failure: errors of the server come out as faults with codes; what a person wrote into the URL never does.
//
// Source: MySQL "Replication Protocol", COM_BINLOG_DUMP_GTID; MariaDB "COM_BINLOG_DUMP".
package server
