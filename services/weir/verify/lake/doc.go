// Package lake reads Iceberg tables for audits: what they hold now, every change, the ledger, and what a reader sees meanwhile.
//
// # Role
//
// A [Lake] is a catalog in SQLite with tables in local files. [Lake.Pin] takes one moment of it: the pointers of all tables and the
// ledger's row, read by one statement. [Pin.Content] and [Pin.Changes] scan tables with the Iceberg library, deletes applied; [Judge]
// has the same tables read by ClickHouse, which shares no code with either.
//
// # Invariants
//
//   - A1: nothing of the sink takes part: catalog and ledger are read with SQL of this package's own.
//   - A2: cells are text as PostgreSQL writes it, so that they can be compared with a source's log.
//   - A3: a [Pin] is one moment: tables are read from the metadata files that it names, whatever has been committed since.
//
// # Failure
//
// A metadata file that has been collected meanwhile is an error; a reader looks again. A column of a type without a text form, too.
package lake
