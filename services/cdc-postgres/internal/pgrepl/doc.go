// Package pgrepl talks to a PostgreSQL server: pinned sessions, slots and publications by SQL, and the replication
// connection with its status messages.
//
// Role: an adapter. Errors of pgx end here and become faults with a code and a remedy; messages of the log leave as
// chunks of whole protocol messages, views into the receive buffer.
//
// Invariants:
//   - No connection string, password or row value is in an error: of the server's answer only message and SQLSTATE are
//     repeated, never detail or hint.
//   - Every session pins the settings on which the text form of values depends, and says in application_name who it is.
//   - A session of somebody else is never ended; one of this life only when its fence is lower.
//   - Status messages are written here byte by byte: the server is told a flushed position of zero by nobody.
//
// Failure: a broken connection is a Transient fault. The server keeps what was not confirmed.
//
// Source: PostgreSQL documentation, "Streaming Replication Protocol" and "Message Formats".
package pgrepl
