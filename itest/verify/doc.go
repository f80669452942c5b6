// Package verify runs `weir verify` as its users do, and shows that its audit can fail.
//
// # Role
//
// The five classes that every certificate has, under a small load; one of them from MySQL to Iceberg, with ClickHouse as a judge; then
// a class with a row planted in the target, which has to be found. More classes and seeds: ITEST_VERIFY="--failure all --seeds 20",
// ITEST_VERIFY_LAKE, or `make eo-verify`.
package verify
