// Package mytypes holds every MySQL and MariaDB type against the product: its extremes arrive the same by a snapshot and by
// the binary log, in a PostgreSQL target, in JSON and in Parquet so that a reader can use them.
//
// # Role
//
// matrix_test.go is the matrix: a family of types is a table, a column of it is a type with its values. A new type is a
// line there. The tests run the whole product against a server in another time zone: rows are copied, then the server
// makes each of them once more with another id, and those come by the log.
//
// # Invariants
//
//   - A row that came by the log is, byte by byte, the one that was copied, in every sink.
//   - The goldens of what both servers have are the same for both.
//   - A character set that is decoded here gives what the server's own conversion gives, for every character of it.
//
// # Failure
//
// -update rewrites the goldens. ITEST_SEED repeats the random values of a run.
package mytypes
