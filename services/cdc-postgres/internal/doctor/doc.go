// Package doctor judges a PostgreSQL server and its tables before a job reads them.
//
// Role: [Look] and [Tables] gather facts with catalog queries, everything else is pure: facts in, findings out. What the
// start of a source checks itself is judged by the start's own functions, either here ([pgrepl.Target.Check]) or by the
// caller.
//
// Invariants:
//   - D1: nothing is changed on the server, no lock is waited for and no table is read.
//   - D2: every remedy can be pasted: names are quoted, the database is named, a restart is said.
//   - D3: a fact that the role may not see is said to be unseen; it is never taken for good.
//
// Failure: a query that fails is a finding of its own, and the checks that need no answer of it go on.
//
// Source: PostgreSQL documentation, "Logical Replication" (restrictions, configuration settings), "System Views".
package doctor
