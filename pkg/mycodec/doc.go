// Package mycodec is MySQL's and MariaDB's side of the row types: what a server's type is called here, and how its cells are
// read.
//
// # Role
//
// OfLog resolves a column as the binary log's table map describes it, OfCatalog as information_schema does; for one column
// both give the same Codec. Width cuts a row image into cells, Decoder binds a codec to a builder's column and reads cells in
// the log's form or in the text form of a SELECT of Expr. Key makes of a cell what a copy orders and compares keys by, and
// Literal the SQL for it. Settings are what every session runs under whose cells are read here.
//
// # Invariants
//
//	I1  The log's form and the text form of one server value give one cell, one special text, one key.
//	I2  A value the logical type cannot hold (a zero date, a day that no month has) becomes a special in the server's text; it
//	    is never rounded, clipped or lost.
//	I3  Text arrives as UTF-8, decoded here on both paths from the column's own character set; no server converts it.
//	I4  No decoder panics, whatever the bytes.
//
// # Failure
//
// A cell that is not of its type is ErrCell: the bytes come from a session without Settings, or not from a server. The error
// does not show the value. A type or a character set that is not known here is ErrUnknown, when the codec is made.
//
// # Source
//
// MySQL's sql-common/my_time.cc, strings/decimal.cc, sql-common/json_binary.h and libbinlogevents; MariaDB's
// sql/log_event.h. itest/cdcmysql holds both paths of every type against each other on real servers.
package mycodec
