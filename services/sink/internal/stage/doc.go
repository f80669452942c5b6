// Package stage keeps an epoch's rows on the bus until their epoch is durable: the writer half of every sink that
// applies an epoch in one transaction of its target.
//
// Role: [Writer] collects batches per table, folds them ([Upserts], [Changes]), compresses them into pieces of a few MiB
// and puts those through sink.Store, several at once and while the epoch is still open; [Desc.Open] reads a piece back at
// the committer.
//
// Invariants:
//   - I13: a piece is a value. It depends on the rows only, so staging the same rows again gives the same bytes.
//   - Pieces of one table are in the order of its rows. Within one piece no key occurs twice, across pieces it may.
//   - One piece holds one table in one schema version; a schema change ends a piece.
//   - Memory is bounded by openLimit raw bytes and maxPuts compressed pieces, whatever the size of the epoch.
//
// Failure: pieces that no ack names are garbage and are collected with their attempt. A put that fails fails the attempt.
//
// Source: docs/architecture.md, "Bus-staged".
package stage
