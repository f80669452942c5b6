// Package schema holds changes of tables against the product: columns that are added, dropped, renamed and altered at a
// PostgreSQL source while rows are written, under every schema_change of a sink.
//
// # Role
//
// behaviours_test.go is the table of docs/schema-changes.md, one case per change: rows, DDL, rows, and what each sink then
// has. stops_test.go holds what the log cannot show and what a sink must refuse: the job stops, typed, with the remedy.
//
// # Invariants
//
//   - Under evolve the target's tables are the source's, names, types and rows.
//   - A change is made once, also when the process is killed at it.
//
// # Failure
//
// A typed stop names table, change and what can be chosen; what was durable before it stays.
package schema
