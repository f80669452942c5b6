// Package copies is a stock of tables, one for each kind of key, that is copied while it is written to; and the record of
// what really happened to every row, against which a changelog is held.
//
// # Role
//
// [Fill] makes and fills the tables of the schema goods; [Open] lets writers change them until [Load.Close]. A trigger
// writes down every committed change, in a schema that no job captures. [Audit] compares.
//
// # Invariants
//
//   - C1: no value is written twice, so that a row's values tell which of its changes they are.
//   - C2: a row's changes are recorded in the order in which they were committed: each row has one writer.
//
// # Failure
//
// An audit names the first rows that are wrong, with what came and what was written.
package copies
