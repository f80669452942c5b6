// Package catalog reads what the log does not say: which tables there are, their real keys, column numbers and types.
//
// Role: an adapter. The enumerator asks it once at the start; the receiving side of a reader asks it when the log
// describes a table, never the loop that answers barriers.
//
// Invariants:
//   - What it returns is the catalog as it is now. The log is older; whoever combines the two checks that they fit.
//   - Names are the server's own spelling, never quoted and never folded.
//
// Source: PostgreSQL documentation, "System Catalogs".
package catalog
