// Package pgcodec is PostgreSQL's side of the row types: what a server's type is called here, and how its cells are read
// and written.
//
// # Role
//
// ForOID, ArrayOf, Verbatim and Opaque resolve a column's type once. Codec.Decoder binds it to a builder's column and
// reads cells in the server's text or binary form, as pgoutput, a query and COPY send them. BindField does the reverse
// for one column of a batch: fields of a binary COPY. SQLType names the type a target column gets, UserType the one it
// could get where the target has it, StageType the type whose binary form BindField writes. Settings are what every
// session runs under whose text forms are read or written here.
//
// # Invariants
//
//	I1  Text and binary form of one server value give one cell, one special text.
//	I2  A value the logical type cannot hold becomes a special in the server's text; it is never rounded, clipped or lost.
//	    So does an array that is no list: of several dimensions, counted from elsewhere than 1, with a special element.
//	I3  What a decoder took in, a field writes back: the server stores an equal value.
//	I4  No decoder panics, whatever the bytes.
//
// # Failure
//
// A cell that is not of its type is ErrCell: the bytes come from a session without Settings, or not from a server. The
// error does not show the value. The builder is then in the middle of a row and of no further use.
//
// # Source
//
// PostgreSQL's send, recv, in and out functions (src/backend/utils/adt); testdata/server.tsv was written by a server.
package pgcodec
