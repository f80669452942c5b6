// Package rows is what the data plane carries: row batches of one table and one schema version on Apache Arrow,
// with the one logical type system all sources and sinks share.
//
// # Role
//
// A reader fills a Builder and flushes a Batch; Batch.Encode and Decoder.Decode are its wire form, one Arrow IPC stream;
// a Splitter divides batches by key over channels; a Collapser reduces an epoch to its net effect for keyed sinks.
// A Codec knows everything that depends on a logical type and is resolved once per column per schema.
// The package knows no database: wire forms live in pgcodec and its siblings, which bind to Builder.Column.
//
// # Invariants
//
//	I1  A source value has one canonical value, whatever path or encoding it came by.
//	I2  A key's group never changes: not with the number of subtasks, not when its column is widened, not between releases.
//	I3  Absent, null and special are three things, and every transformation here keeps them apart.
//	I4  A batch is immutable; what is derived from it shares memory and may outlive it.
//	I5  Decode of arbitrary bytes is an error or a batch whose every accessor is in bounds.
//
// # Failure
//
// The package is pure: it does no I/O, reads no clock and keeps no state between calls except buffers.
// Malformed messages are ErrMalformed and fail the attempt; the next attempt rereads from the source.
//
// # Source
//
// Arrow columnar format and IPC 1.5; batches use plain storage types with weir.* field metadata rather than Arrow extension
// types, because what an extension type decodes to depends on which packages a process happens to import.
package rows
