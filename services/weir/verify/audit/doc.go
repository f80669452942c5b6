// Package audit tells what a target must hold, from the source's own log, and what a reader of the target saw.
//
// # Role
//
// [Oracle] reads the same transactions as a job through a slot of its own, and [Binlog] as one more replica, both decoded by other
// code; [Changelog] reads what a changelog sink made of them; [Ledger] the sink's commits; [Reader] looks at the target while faults
// happen. Their likes for MySQL and MariaDB are named after it. What has to hold of all this is in pkg/verdict, which the bubble suite
// uses too.
//
// # Invariants
//
//   - A1: an oracle's transactions are those a job sees: it is opened before the first change.
//   - A2: values are compared as PostgreSQL's own text under the same settings; none of Weir's codecs takes part.
//   - A3: one look of a reader is one statement, hence one snapshot.
//
// # Failure
//
// A message that cannot be decoded, or a table without a key, is an error: an oracle that guesses proves nothing.
package audit
