// Package cdcpostgres holds the integration tests of the PostgreSQL source: a real server, the connector's two halves,
// and a driver that stands in for the subtask runtime and the coordinator.
//
// The cases O07 to O48 are failures of other tools reported in public; each test says which one it is.
package cdcpostgres
