// Package catalog reads what a server says of its tables in information_schema.
//
// Role: [List] finds every table, [Describe] its columns and its primary key, [Charsets] the names of the character sets that the
// log knows by the numbers of their collations.
//
// Failure: what cannot be read is an error of the session. A type that is not known is in the column, and matters only if the
// table is captured.
//
// Source: MySQL and MariaDB, "INFORMATION_SCHEMA Tables".
package catalog
