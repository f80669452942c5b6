// Package iceberg tests the Iceberg sink with real servers: PostgreSQL as source and as catalog, an object store, processes that
// are killed, and ClickHouse as a judge that shares no code with Weir.
package iceberg
