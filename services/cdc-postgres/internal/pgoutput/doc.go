// Package pgoutput decodes the messages of PostgreSQL's logical replication plugin pgoutput, protocol version 1.
//
// Role: the reader hands it the payload of one XLogData message at a time. Nothing is allocated for a row: cells are
// views into the payload and the slices that hold them are used again for the next message.
//
// Invariants:
//   - No input makes it panic, and what it returns never reaches outside the input (fuzzed).
//   - A message is accepted only when all of its bytes are understood. A byte left over, or one missing, is an error:
//     guessing here would be a silent difference at the sink.
//   - Decoding and encoding again gives the same bytes.
//
// Failure: a malformed message is an error that names the message and the offset, never its content.
//
// Source: PostgreSQL documentation, "Logical Replication Message Formats".
package pgoutput
