// Package mycopies is package copies for MySQL and MariaDB: a stock of tables, one for each kind of key, that is copied while it
// is written to, and the record of what really happened to every row.
//
// # Role
//
// [Fill] makes and fills the tables of the database goods; [Open] lets writers change them until [Load.Close]. Triggers write
// down every committed change, in a database that no job captures. [Audit] holds a changelog of PostgreSQL against it,
// [Compare] a copy against the tables themselves.
//
// # Invariants
//
//   - C1: a row is not given the same value twice, so that its values tell which of its changes they are.
//   - C2: a row's changes are recorded in the order in which they were committed: each row has one writer.
//   - C3: keys are told apart by their bytes, as the target does, also where the source's collation takes them for one.
//
// # Failure
//
// Audit and Compare name the first rows that are wrong, with what is at either side.
package mycopies
