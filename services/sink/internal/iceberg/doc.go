// Package iceberg is the sink that writes Apache Iceberg tables: for each source table the changelog, the rows as they are now, or
// both, which change at once.
//
// Role: writers put Parquet files into the warehouse under names that nothing points at; the committer makes those of an epoch part
// of the tables. The catalog is a SQL database (SQLite, PostgreSQL) in the layout that all JDBC catalogs share, with the ledger
// beside it: one transaction moves the pointers of all tables of an epoch and the ledger's row. Or it is a REST catalog with the
// ledger as a table: one commit to several tables does the same, or, when the sink is told so, one after the other. No retry of the
// library is used: a commit is built on metadata that was read, applies only to that, and is built anew when the table has moved.
//
//	<warehouse>/<namespace>/<table>-<id>/data/<life>-<fence>-<writer>-<n>.parquet    data and equality deletes
//	<warehouse>/<namespace>/<table>-<id>/metadata/…                                  manifests and metadata, as Iceberg has them
//
// Invariants:
//   - I5: a file is nothing before a transaction of the catalog points at metadata that names it.
//   - I8: every such transaction reads the ledger's row under its lock and refuses a fence that is not the claim's. A REST catalog
//     has no lock: there the commit of an epoch holds only on the ledger's snapshot that was read, which a claim replaces.
//   - What one writer stages for a table in turn becomes one snapshot after the other: equality deletes reach older snapshots
//     only. Within a turn a key has one row (rows.Collapser).
//   - Columns are their field ids. A staged file fits every later form of its table, so a change of columns waits for no writer;
//     only the committer makes one, in order with the rows, which come to it over the bus when the table does not fit them yet.
//   - The epoch of a table is in its properties, set with the data: snapshots and their summaries expire.
//
// Failure, by where the power goes:
//   - Before the transaction: files that nothing names. A commit is repeated on the tables as they are; orphans of dead attempts
//     are collected once no durable epoch can name them.
//   - During it: all tables and the ledger, or none. A lost reply is resolved by the ledger. When tables change one after the
//     other: some of them, and each says by its properties that it has the epoch, so a repeat does the rest.
//   - During maintenance: the tables as they were before it, or after. It never changes rows, and its failure is no epoch's.
//   - A zombie: its files are orphans, its transaction is refused.
//
// Source: docs/iceberg.md; the table format's specification, version 2; docs/architecture.md, "Sinks: stage, then commit".
package iceberg
