// Package scan reads the rows of a query into a builder, with the decoders that the log's rows go through.
//
// # Role
//
// An adapter for snapshot readers. Bind resolves per column in which form the server is asked for it: binary where the
// codec knows the type's binary form, else text. Plan.List is what a SELECT names, Plan.Put takes a row, Query runs the
// statement.
//
// # Invariants
//
//	S1  A row read here is the row that the log gives for it, cell by cell: the same codec, and pgcodec's I1.
//	S2  Null is not empty.
//	S3  A cell costs no allocation of its own.
//
// # Failure
//
// Query ends with the first error, of the server, the row function or the context, and leaves the connection usable or
// closed, never in the middle of a result. Rows that were put before are in the builder.
//
// # Source
//
// PostgreSQL documentation, "Extended Query". Measured with 1,000,000 rows of 10 columns (PostgreSQL 15, processor
// seconds of server and client): COPY in text 1.0 and 0.58 without the client's unescaping, COPY in binary 0.44 and 0.28,
// the extended protocol in text 0.64 and 0.41, in binary 0.42 and 0.33. COPY has one form for all columns and fails on a
// type without a binary one; the extended protocol chooses per column and has parameters.
package scan
