// Package scan reads the rows of a query into a builder, with the decoders that the log's rows go through.
//
// # Role
//
// An adapter for snapshot readers. Copy runs a query and hands over its rows as tuples, which are one piece of memory each
// and may be kept as they are. Bind resolves per column in which form the server is asked for it: binary where the codec
// knows the type's binary form, else text. Plan.List is what a SELECT names, Plan.Put takes a tuple.
//
// # Invariants
//
//	S1  A row read here is the row that the log gives for it, cell by cell: the same codec, and pgcodec's I1.
//	S2  Null is not empty.
//	S3  A cell costs no allocation of its own.
//
// # Failure
//
// Copy ends with the first error, of the server, the row function or the context, and leaves the connection usable or
// closed, never in the middle of a result. Rows that were put before are in the builder.
//
// # Source
//
// PostgreSQL documentation, "COPY", "Binary Format". A tuple is what lies there between the header and the trailer: the
// number of cells in two bytes, and of each its length in four, -1 for null, and its bytes. COPY has one form for all
// columns: those without a binary one are written as text by their output function before (see [Plan.List]). In a profile of a
// copy by the extended protocol the slice per cell was 6 % of the process where rows were decoded, and 9 % where they were kept
// and taken apart again; the server's part was the same.
package scan
