// Package verify runs `weir verify` as its users do, and shows that its audit can fail.
//
// # Role
//
// The five classes that every certificate has, under a small load; then the same with a row planted in the target, which has to be
// found. More classes and seeds: ITEST_VERIFY="--failure all --seeds 20", or `make eo-verify`.
package verify
