// Package iceberg tests the Iceberg sink with real servers: PostgreSQL and MySQL as sources, PostgreSQL as catalog, an S3
// server behind a network that fails, processes that are killed, and ClickHouse as a judge that shares no code with Weir.
package iceberg
