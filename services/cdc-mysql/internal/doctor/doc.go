// Package doctor judges a MySQL or MariaDB server before a job reads it: settings of the log, rights of the account, and tables.
//
// Role: [Look] asks the server and changes nothing; the methods of [Facts] make findings of what it said. The errors that a start
// would end with come from the start's own functions, in package server and in the service.
//
// Invariants:
//   - A remedy has the real names, quoted, and is meant for an administrator; on MySQL it survives a restart (SET PERSIST).
//   - What the account cannot see is never said to be well: the servers hide tables without a right on them.
//
// Failure: what cannot be asked is an error of the session.
//
// Source: MySQL "Binary Logging Options and Variables", "Privileges Provided by MySQL"; MariaDB "GRANT".
package doctor
