// Package epoch is the pure core of consistent cuts: aligning barriers, tallying channels, describing an epoch in a
// manifest and chaining manifests.
//
// Role: subtasks use [Align] to find their cut and [Tally] to count what crossed each channel; the coordinator builds
// a [Manifest] from their acks, checks that it balances and links it to its predecessor.
//
// Invariants:
//   - I5: an epoch is durable only when the head record names its manifest; nothing here makes it so.
//   - Both ends of every channel counted the same messages, rows and hash, or the manifest is not built.
//   - A manifest is immutable and its bytes are canonical: the same facts give the same digest.
//   - Each manifest names the digest of the one before it, so the history can be audited by anyone.
//
// Failure: a skipped epoch leaves no manifest; what was staged for it is named again by the next ack.
//
// Source: Carbone et al., "Lightweight Asynchronous Snapshots for Distributed Dataflows" (arXiv:1506.08603) for
// aligned barriers; docs/architecture.md for tallies and the chain.
package epoch
