// Package types holds every PostgreSQL type against the product: its extremes arrive the same by the log and by a
// snapshot, in a PostgreSQL target exactly, in JSON and Parquet so that a reader can use them.
//
// # Role
//
// matrix_test.go is the matrix: a family of types is a table, a column of it is a type with its values. A new type is a
// line there. The tests run the whole product; a [path] says how the rows get into it.
//
// # Invariants
//
//   - The copy's columns have the source's text, row by row, as two servers under the same settings print it.
//   - What came out as JSON is what the codecs make of a SELECT, in text and in binary form, byte by byte.
//   - The goldens of JSON and Parquet are the same for every version of the server.
//
// # Failure
//
// WEIR_PG_BIN chooses the server; every version from 14 on has to pass. -update rewrites the goldens.
package types
