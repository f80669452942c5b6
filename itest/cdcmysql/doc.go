// Package cdcmysql tests the MySQL source against real servers: the conformance suite of database sources, the two paths of every
// type, and what only servers can show.
//
// Role: the servers are started once per test binary; each test has databases of its own.
//
// Invariants: a test that needs another server, or another setting, starts one of its own.
//
// Failure: a failing test prints the seed with which it can be run again; see rig.Seed.
//
// Source: docs/architecture.md; the bug log of change data capture tools behind the cases.
package cdcmysql
