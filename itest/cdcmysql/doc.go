// Package cdcmysql tests the MySQL source against real servers: the conformance suite of database sources, the two paths of every
// type, and what only servers can show.
//
// The cases O01 to O50 are failures of other tools reported in public. Those of MySQL and MariaDB, and where they are tested:
//
//	O01  a change between a chunk and the log    TestVisibilityGap, TestSource, flows.TestKillWhileMySQLIsCopied and its kind
//	O03  collations that are not the byte order  TestSource (keys of kind text), TestFlowToPostgres
//	O04  bounds of composite keys                TestSource (keys of kind composite)
//	O10  restart inside a rows event             TestSource (wide transactions, crashes), big.TestMySQLTransactionKilledInTheMiddle
//	O11  a connection that breaks, with GTIDs    TestSource (killed connections)
//	O12  and without                             TestSourceByPlace
//	O22  two clients with one server id          TestServerIDsOfTwoJobs, TestServerIDTakenFromOutside
//	O23  the millionth file of the log           pkg/position, core.TestHistoryOfFiles
//	O24  log that is purged                      TestPurgedWhileRunning, TestLogIsLost, TestHistory
//	O25  MariaDB's GTIDs are of a domain         TestPrimarySwitch
//	O26  a log of another name                   TestPrimarySwitch
//	O27  a server that has purged                TestPrimarySwitch
//	O28  compressed transactions                 TestForms, TestSource and TestSourceByPlace (every other writer)
//	O29  engines without transactions            TestLog: their tables are left out, doctor says so, and stop nothing
//	O30  a server that searches for long         TestLongSeek
//	O31  a table that is gone                    TestLogStops, TestTablesOfARunningJob
//	O32  parts of documents                      TestLogStops, itest/mytypes
//	O33  gh-ost, pt-online-schema-change         TestShadowTable
//	O36  unsigned integers                       TestTypesAgree, itest/mytypes
//	O37  character sets                          TestTypesAgree, itest/mytypes
//	O38  negative times                          TestTypesAgree, itest/mytypes
//	O39  zero and partial dates                  TestTypesAgree, TestZeroDatesInKeys, itest/mytypes
//	O40  time zones                              TestTypesAgree, itest/mytypes
//	O41  labels                                  TestTypesAgree, TestLabelsChange, itest/mytypes
//	O45  a key changes                           TestLog, TestSource, flows
//	O46  changes of one key in one epoch         pkg/rows, itest/sinkmysql
//	O47  transactions larger than memory         big.TestMySQLHugeTransaction
//	O48  values larger than a message            TestServerIsKilled, also larger than the server's packets; itest/big
//
// Beside them: a server that is killed while it is copied and followed (TestServerIsKilled), a transaction whose beginning MariaDB
// leaves in its log when it is killed (TestTransactionIsBrokenOff), a server that is frozen or cut off, and one that is only at work for
// long (TestServerIsFrozen, TestServerIsCutOff, TestCopyWaitsForLock), two servers behind one address (TestLogOfAnotherServer), one
// that comes back without the end of its log (TestCopyIsAheadOfServer), distributed transactions, also those that were prepared before
// the job (TestDistributedTransactions).
//
// Role: the servers are started once per test binary; each test has databases of its own.
//
// Invariants: a test that needs another server, or another setting, starts one of its own.
//
// Failure: a failing test prints the seed with which it can be run again; see rig.Seed.
//
// Source: docs/architecture.md; the bug log of change data capture tools behind the cases.
package cdcmysql
